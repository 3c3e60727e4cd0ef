// lloyd.hpp - iterations of Lloyd over one problem, and one assignment with what is summed over it, by any assigner.
#pragma once

#include <memory>

#include "cpu/fit/iteration.hpp"

namespace pgkm::cpu {

// Until labels rest, the shift is small, or max_iter. index: of the problem, for reports; labels: n, -1 each.
template <typename T>
void iterate(Iteration<T> &iteration, PgkmProblem &problem, std::int64_t index, const PgkmFitParams &params,
             const std::int32_t *labels);

template <typename T>
void assign_by(Assigner<T> &assigner, const Data &data, ThreadPool &pool, const PgkmProblem &problem,
               PgkmAssignment &out);

} // namespace pgkm::cpu
