// new_centroids.hpp - the update step of an iteration, spread over the threads.
#pragma once

#include "cpu/sums/cluster_sums.hpp"

namespace pgkm::cpu {

// Writes the new centroids and returns their summed squared shift, as the engine's
// relocate_empty_clusters() and update_centroids() do; labels are those that made the sums.
template <typename T>
double new_centroids(const Rows<T> &rows, const PgkmProblem &problem, PgkmMetric metric, const ClusterSums<T> &sums,
                     const std::int32_t *labels);

} // namespace pgkm::cpu
