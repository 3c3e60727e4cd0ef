// quality.hpp - internal indices of a clustering: how compact and separated its clusters are.
#pragma once

#include <functional>
#include <vector>

#include "engine/kmeans/fit.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// The sums over a model's rows that its indices are made of, as in LabelledRows (rows/cluster_sums.hpp).
struct ClusterSums {
    std::function<std::vector<double>()> totals;
    std::function<std::vector<double>(const std::vector<double> &means)> spreads;
};

// Davies-Bouldin and Calinski-Harabasz indices of a model's labels, relative to the means of the
// labelled rows (as in scikit-learn), the simplified silhouette relative to its centroids, and the Bayesian information
// criterion; not the silhouette. `masses` are those of the clusters. The figures do not depend on the number of
// threads. Throws Error(PGKM_CANCELLED).
PgkmQuality quality_of(const Model &model, const ClusterSums &sums, const std::vector<double> &masses, int threads,
                       const Monitor &monitor);

} // namespace pgkm
