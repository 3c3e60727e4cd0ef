// reduce.hpp - PgkmBackend::reduce: users' reductions by kernels that are generated and compiled for each.
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

// reduced[p] receives the reduction of problems[p]'s rows, of type T and without weights. Throws Error:
// PGKM_UNSUPPORTED where this device or its compiler cannot, or a row fails; PGKM_INVALID where a total is no number;
// others as everywhere.
template <typename T>
void reduce_problems(Data &data, const PgkmProblem *problems, std::int64_t n_problems, const PgkmReduction &reduction,
                     PgkmReduced *reduced);

} // namespace pgkm::cuda
