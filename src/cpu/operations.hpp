// operations.hpp - the calls of the backend's table, of which each folder has its own (backend/backend.h says what
// they do). All throw Error.
#pragma once

#include "cpu/context.hpp"

namespace pgkm::cpu {

// sums/: summaries[p] receives the statistics of problems[p]; mean and variance only with want_moments.
void summarise(Data &data, const PgkmProblem *problems, std::int64_t n_problems, std::int32_t want_moments,
               PgkmSummary *summaries);
// moments[p] receives sums and products of problems[p]'s rows.
void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

// seed/: sets the centroids of each problem and lowers its k to the number of distinct rows found.
void seed(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params);

// fit/: Lloyd's iterations, and one assignment to fixed centroids.
void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params);
void assign(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments);

// mixture/: the E step and the sums of the M step. Throws Error(PGKM_INVALID) where squares overflow.
// Copies of the sums of large mixtures take 256 MB, so that there are some threads' worth of them.
inline constexpr std::int64_t most_mixture_values = 32 << 20;
void em_step(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
             PgkmMixtureSums *sums);

// reduce/: a user's reduction. Throws Error(PGKM_INVALID) where a row fails, with reduced[p].fault set.
void reduce(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction *reduction,
            PgkmReduced *reduced);

} // namespace pgkm::cpu
