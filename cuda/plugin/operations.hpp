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
