// em_step.hpp - the CPU backend's em_step().
#pragma once

#include "cpu/context.hpp"

namespace pgkm::cpu {

void em_step(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
             PgkmMixtureSums *sums);

} // namespace pgkm::cpu
