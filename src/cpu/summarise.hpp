// summarise.hpp - statistics of the features on the CPU, with the bits of the reference.
#pragma once

#include <cstdint>

#include "cpu/context.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// summaries[p] receives the statistics of problems[p]; mean and variance only with want_moments.
void summarise(Data &data, const PgkmProblem *problems, std::int64_t n_problems, bool want_moments,
               PgkmSummary *summaries);

} // namespace pgkm::cpu
