// quality.hpp - internal indices of a clustering: how compact and separated its clusters are.
#pragma once

#include "engine/kmeans/fit.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Davies-Bouldin and Calinski-Harabasz indices of a model's labels, relative to the means of the
// labelled rows (as in scikit-learn), and the simplified silhouette relative to its centroids.
// `points` are the rows as the model saw them; the model has labels. The figures do not depend on
// the number of threads. Throws Error(PGKM_CANCELLED).
PgkmQuality quality_of(const PgkmPoints &points, const Model &model, int threads, const Monitor &monitor);

} // namespace pgkm
