// reduce.hpp - what a user's reduction costs in memory, and what it is of no rows; cpu/operations.hpp has the call.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Bytes that a reduction of n rows of d values takes on so many threads, its results aside.
double reduce_bytes(const PgkmReduction &program, std::int32_t d, std::int64_t n, int threads);

// What no rows come to.
void reduce_nothing(const PgkmOpen &open, const PgkmReduction &program, PgkmReduced &out);

} // namespace pgkm::cpu
