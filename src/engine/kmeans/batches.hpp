// batches.hpp - mini-batches instead of iterations over all rows (Sculley, "Web-scale k-means clustering", 2010).
//
// Rows lie in batch order (rows/batch_order.hpp). A step assigns the rows of one batch and moves each centroid towards
// the mean of those that chose it, by their share in all the mass that the centroid has seen. max_iter counts passes
// over all rows. A run ends when a pass moves the centroids by at most the tolerance.
//
// The sums of a batch are the backend's integers, so that every backend gives the same centroids.
#pragma once

#include <cstdint>

#include "engine/kmeans/fits.hpp"

namespace pgkm {

// First centroids are chosen among so many rows: the first in batch order, which are a random sample.
std::int64_t rows_to_seed(const FitTask &task, const PgkmProblem &problem);

// Moves the centroids of each problem, and writes n_iter, converged and shift as the backend's fit does. Throws Error.
template <typename T>
void fit_batches(Fits<T> &fits);

} // namespace pgkm
