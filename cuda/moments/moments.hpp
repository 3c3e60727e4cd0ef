// moments.hpp - the plugin's moments().
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

template <typename T>
void sum_moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

} // namespace pgkm::cuda
