// moments.hpp - the CPU backend's moments().
#pragma once

#include "cpu/context.hpp"

namespace pgkm::cpu {

// Bytes that the moments of n rows take: copies of the sums, and a block of rows for each thread.
double moments_bytes(std::int64_t n, std::int32_t d, int threads);

void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

} // namespace pgkm::cpu
