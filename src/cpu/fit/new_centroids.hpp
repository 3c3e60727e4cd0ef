// new_centroids.hpp - the update step of an iteration, spread over the threads.
#pragma once

#include "cpu/sums/cluster_sums.hpp"

namespace pgkm::cpu {

// Writes problem.centroids (k x d) and returns their summed squared shift, as relocate_empty_clusters() and
// update_centroids() of backend/update.hpp do. labels: one for each row, those that made the sums. Throws Error.
template <typename T>
double new_centroids(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const ClusterSums<T> &sums,
                     const std::int32_t *labels);

} // namespace pgkm::cpu
