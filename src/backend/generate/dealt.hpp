// dealt.hpp (generate) - sums whose elements are dealt out to the threads of a block, in place of the rows.
#pragma once

#include "backend/generate/kernel.hpp"

namespace pgkm::generate {

// A function of a row, which adds the value of one element to `total`; false where the row fails. A float64 value may
// be no number: the caller looks at the total.
void write_element(Text &text, const Program &program, const Plan &plan, const Rows &rows, const Output &output);

// Within the loop over blocks of rows: the threads add up their elements of the block's rows, of all outputs that are
// dealt out.
void write_dealt(Text &text, const Program &program, const Plan &plan);

} // namespace pgkm::generate
