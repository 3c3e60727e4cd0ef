// updates.hpp (generate) - the function of one row: (i, v) = process(row); R[i] = R[i] op v.
#pragma once

#include "backend/generate/expressions.hpp"
#include "backend/generate/kernel.hpp"

namespace pgkm::generate {

// process(): changes R by one row; false where the row fails.
void write_process(Text &text, const Program &program, const Plan &plan, const Rows &rows);

// measure(): raises the largest magnitudes of integer sums by those of one row; false where it fails.
void write_measure(Text &text, const Program &program, const Plan &plan, const Rows &rows);

} // namespace pgkm::generate
