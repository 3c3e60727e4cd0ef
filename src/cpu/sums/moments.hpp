// moments.hpp - what the moments of rows cost in memory; cpu/operations.hpp has the call.
#pragma once

#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Bytes that the moments of n rows of d features take on so many threads: copies of the sums, and a block of
// rows for each thread. Labels of weighted rows are not among them.
double moments_bytes(std::int64_t n, std::int32_t d, int threads, bool weighted);

} // namespace pgkm::cpu
