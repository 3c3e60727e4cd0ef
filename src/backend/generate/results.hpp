// results.hpp (generate) - from the words of R, as the kernels leave them, to what a reduction returns.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/generate/layout.hpp"

namespace pgkm::generate {

// Exponents of the scales of integer sums, from the largest magnitudes that the kernel `magnitudes` found (bits).
std::vector<int> scale_exponents(const std::vector<std::uint64_t> &largest);

// Writes values and counts from the words of R, which are changed. Throws Error(PGKM_INVALID), with out.fault set,
// where a total is out of range.
void read_results(const PgkmReduction &program, const Words &words, std::vector<std::uint64_t> &total,
                  const std::vector<int> &exponents, PgkmReduced &out);

} // namespace pgkm::generate
