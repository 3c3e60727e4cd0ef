// refine.hpp - a search for a better optimum, from where the iterations of k-means came to rest.
//
// Iterations move no centroid past full neighbours: where a cluster was left with two centroids and two others share
// one, it stays so. A round splits the clusters of the largest inertia in two, iterates shortly, joins as many pairs of
// clusters that cost least (join.hpp), and iterates shortly again. What came of it is kept if the inertia has fallen. A
// round that gains too little halves the number of splits of the next. None left: the search ends, and what it found is
// brought to rest. Such searches: Kaukoranta, Fränti, Nevalainen (1998), split and merge; Fritzke (2020), breathing
// k-means.
//
// All sums are the backend's, which are exact, and choices go by them and by draws of the seed alone. So the result is
// the same for every backend and order of rows. The cost is that of about 20 to 50 iterations, and d k^2 / 2
// multiply-adds a round.
#pragma once

#include <cstdint>

#include "engine/kmeans/fits.hpp"

namespace pgkm {

// Rounds end after so many in any case; nearly all searches take fewer than 12.
inline constexpr std::int32_t most_refine_rounds = 100;
// Iterations after a split and after a join.
inline constexpr std::int32_t split_iterations = 3;
inline constexpr std::int32_t join_iterations = 5;
// The first round splits one cluster in so many.
inline constexpr std::int32_t clusters_per_split = 8;
// The share of the inertia that a round gains, or the next splits fewer.
inline constexpr double least_refine_gain = 1e-3;

// Improves the centroids where fit() left the problems, for all groups together. n_iter goes on counting; converged
// and shift become those of the last iterations. Throws Error.
template <typename T>
void refine(Fits<T> &fits, std::uint32_t restart);

} // namespace pgkm
