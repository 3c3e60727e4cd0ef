// seed.hpp - initial centroids on the CPU, with the bits of the reference (test/reference/seed.hpp).
#pragma once

#include <cstdint>

#include "cpu/context.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Sets the centroids of every problem and lowers its k to the number of distinct rows found.
void seed(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams &params);

} // namespace pgkm::cpu
