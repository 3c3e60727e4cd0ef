// reduce.hpp - what a user's reduction costs in memory, and copies of R that several processes fill; cpu/operations.hpp
// has the call.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Bytes that a reduction of n rows of d values takes on so many threads, its results aside.
double reduce_bytes(const PgkmReduction &program, std::int32_t d, std::int64_t n, int threads);

// Whether its result depends on the order of the rows: it has float64 sums.
bool is_ordered(const PgkmReduction &program);

// Bytes of shared copies.
std::int64_t copies_bytes(const PgkmReduction &program, std::int64_t count);

// What a process does with its rows: first all do the one, then all do the other.
enum class CopyStep { measure, fill };

// Reduces rows into one of the copies, in one thread. Throws Error(PGKM_INVALID) where a row fails.
void reduce_into(const PgkmOpen &open, const PgkmPoints &points, const PgkmReduction &reduction,
                 const PgkmCopies &shared, std::int64_t copy, CopyStep step);

// Brings the copies together; without memory: what no rows come to. Throws Error(PGKM_INVALID) with out.fault set where
// a total is no number.
void finish_copies(const PgkmOpen &open, const PgkmReduction &reduction, const PgkmCopies &shared, PgkmReduced &out);

} // namespace pgkm::cpu
