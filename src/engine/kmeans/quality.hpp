// quality.hpp - internal indices of a clustering: how compact and separated its clusters are.
#pragma once

#include <functional>
#include <vector>

#include "engine/kmeans/fit.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

// Davies-Bouldin and Calinski-Harabasz indices of a model's labels, relative to the means of the
// labelled rows (as in scikit-learn), the simplified silhouette relative to its centroids, and the Bayesian information
// criterion; not the silhouette. The model has means and masses; find_spreads() gives the spreads of LabelledRows
// (rows/cluster_sums.hpp). The figures do not depend on the number of threads. *ratios, unless NULL, gets for each
// cluster what the Davies-Bouldin index is the mean of, where that is defined. Throws Error(PGKM_CANCELLED).
PgkmQuality quality_of(const Model &model, const std::function<std::vector<double>()> &find_spreads, ThreadPool &pool,
                       const Monitor &monitor, std::vector<double> *ratios = nullptr);

} // namespace pgkm
