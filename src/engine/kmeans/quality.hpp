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
// labelled rows (as in scikit-learn), and the simplified silhouette relative to its centroids. The
// figures do not depend on the number of threads. Throws Error(PGKM_CANCELLED).
PgkmQuality quality_of(const Model &model, const ClusterSums &sums, int threads, const Monitor &monitor);

// The Bayesian information criterion of a model as a mixture of spheres of one variance, to which rows belong wholly;
// masses are those of its clusters. NaN where every row is a centroid.
double information_criterion(const Model &model, const std::vector<double> &masses);

} // namespace pgkm
