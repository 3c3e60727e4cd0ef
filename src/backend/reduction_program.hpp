// reduction_program.hpp - what must hold of a user's reduction before a backend gets it, and how much work it is.
#pragma once

#include "backend/reduction.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Throws Error for a program that does not obey backend/reduction.h with rows of d values: PGKM_INVALID, or PGKM_LIMIT
// where it is too large.
void check_program(const PgkmReduction &program, std::int32_t d);

// Values in all objects, and cells. Of a program that was checked.
std::int64_t values_in(const PgkmReduction &program);
std::int64_t cells_in(const PgkmReduction &program);

// Plain operations: for each row, and once.
struct ProgramWork {
    double row;
    double once;
};
ProgramWork program_work(const PgkmReduction &program);

} // namespace pgkm
