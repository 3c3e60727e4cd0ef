// radius.hpp - more clusters, until each row lies near its centroid: option max_radius.
#pragma once

#include "engine/kmeans/fits.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Goes on from fits of the problems: each cluster that has a row beyond the radius gets another centroid at the
// farthest of these, of several equally far ones at that of least content, and iterations go on from all; until there
// is no such cluster. Raises k of the problems. Throws Error: PGKM_INVALID where centroids are less precise than the
// radius.
template <typename T>
void keep_within_radius(Fits<T> &fits);

} // namespace pgkm
