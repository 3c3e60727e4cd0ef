// spread.hpp (generate) - outputs whose elements are dealt out to threads (Output::spread), as text.
#pragma once

#include "backend/generate/kernel.hpp"
#include "backend/generate/text.hpp"

namespace pgkm::generate {

// spread_NAME() for each such output: adds the value of one element and row to `total`; false where the row fails. A
// float64 value may be no number: the caller looks at the total.
void write_spread(Text &text, const Program &program, const Plan &plan, const Rows &rows);

// Within the loop over blocks of rows: the threads add up their elements of the block's rows.
void write_spread_loop(Text &text, const Program &program, const Plan &plan);

} // namespace pgkm::generate
