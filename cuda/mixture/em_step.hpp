// em_step.hpp (mixture) - the E step of EM with the sums of the M step (PgkmBackend::em_step).
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

// For each of n_problems problems and mixtures: log-likelihood, masses (k), first sums (k x d) and second sums about
// the means, and labels where sums[p].labels is set, all on the host. T: the type of the rows. PGKM_INVALID
// where features are so large that their squares overflow; PGKM_CANCELLED, PGKM_LIMIT and faults of
// the device as everywhere.
template <typename T>
void em_step_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
                      PgkmMixtureSums *sums);

} // namespace pgkm::cuda
