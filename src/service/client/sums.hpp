// sums.hpp - moments(), em_step() and reduce() of the client's table: the generalised reductions.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::service {

// Of the service that this process has heard of last; before that, yes: a call tells.
void note_reduce(bool has_reduce);

PgkmStatus client_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error);
PgkmStatus client_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error);
PgkmStatus client_reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                         const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error);

} // namespace pgkm::service
