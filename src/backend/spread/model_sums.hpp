// model_sums.hpp - the functions of the table that sum in float64: for PCA and mixtures.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::spread {

PgkmStatus spread_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error);
PgkmStatus spread_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error);

} // namespace pgkm::spread
