// radius.hpp - more clusters, until each row lies near its centroid: option max_radius.
#pragma once

#include <vector>

#include "engine/kmeans/fitter.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Goes on from fits of the problems, with their centroids (T is the points' element type): each cluster that has a row
// beyond the radius gets another centroid at the farthest of these, of several equally far ones at that of least
// content, and iterations go on from all; until there is no such cluster. Raises k of the problems, which look into
// `centroids`. Throws Error: PGKM_INVALID where centroids are less precise than the radius.
template <typename T>
void keep_within_radius(const LoadedRows &rows, const FitTask &task, Session &session, Monitor &monitor,
                        std::vector<PgkmProblem> &problems, std::vector<std::vector<T>> &centroids);

} // namespace pgkm
