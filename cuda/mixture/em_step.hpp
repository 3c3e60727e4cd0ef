// em_step.hpp - the E step of EM with the sums of the M step (PgkmBackend::em_step).
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

template <typename T>
void em_step_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
                      PgkmMixtureSums *sums);

} // namespace pgkm::cuda
