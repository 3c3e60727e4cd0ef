// moments.hpp - PgkmBackend::moments: the sums that PCA is made of.
#pragma once

#include "plugin/context.hpp"

namespace pgkm::cuda {

// For each of n_problems problems: sums (d) of deviations from moments[p].shift (d) and the lower triangle of their
// products, cross (d (d + 1) / 2), all float64 on the host, and the mass of the rows. T: their type. PGKM_CANCELLED,
// PGKM_LIMIT and errors of the device as everywhere.
template <typename T>
void sum_moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

} // namespace pgkm::cuda
