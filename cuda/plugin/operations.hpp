// operations.hpp - what the table's functions do, per element type.
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

template <typename T>
void summarise_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, bool want_moments,
                        PgkmSummary *summaries);
template <typename T>
void seed_problem(Data &data, PgkmProblem &problem, const PgkmSeedParams &params);
template <typename T>
void fit_problem(Data &data, PgkmProblem &problem, std::int32_t index, const PgkmFitParams &params);
template <typename T>
void assign_problem(Data &data, const PgkmProblem &problem, PgkmAssignment &out);

// For each of n_problems problems: sums (d) of deviations from moments[p].shift (d) and the lower triangle of their
// products, cross (d (d + 1) / 2), all float64 on the host, and the mass of the rows. T: their type. PGKM_CANCELLED,
// PGKM_LIMIT and errors of the device as everywhere.
template <typename T>
void sum_moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

// For each of n_problems problems and mixtures: log-likelihood, masses (k), first sums (k x d) and second sums about
// the means, and labels where sums[p].labels is set, all on the host. T: the type of the rows. PGKM_INVALID
// where features are so large that their squares overflow; PGKM_CANCELLED, PGKM_LIMIT and faults of
// the device as everywhere.
template <typename T>
void em_step_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmMixture *mixtures,
                      PgkmMixtureSums *sums);

// reduced[p] receives the reduction of problems[p]'s rows, of type T and without weights. Throws Error:
// PGKM_UNSUPPORTED where this device or its compiler cannot, or a row fails; PGKM_INVALID where a total is no number;
// others as everywhere.
template <typename T>
void reduce_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction &reduction,
                     PgkmReduced *reduced);

// The features' ranges of a problem's rows, from the last summarise() or computed now.
Box feature_box(Data &data, const PgkmProblem &problem);

// Calls body(T{}) with the points' element type.
template <typename Body>
void with_element(const Data &data, Body &&body)
{
    if (data.host.element == PGKM_FLOAT32)
        body(float{});
    else
        body(double{});
}

} // namespace pgkm::cuda
