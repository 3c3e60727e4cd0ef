// cluster_sums.hpp - sums over labelled rows, of which the indices of a clustering are made.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

// In float64. Rows are summed in blocks and blocks in order, so that the sums do not depend on the number of threads.
struct LabelledRows {
    const PgkmPoints points;
    const std::int32_t *const labels;
    const std::int32_t k;
    ThreadPool &pool;
    const std::function<void()> poll; // may throw

    // Of each cluster the weighted distances to its mean; then of all rows their squares, and the silhouettes relative
    // to the centroids, or 0 where these are NULL: k + 2. Means and centroids: k x d.
    std::vector<double> spreads(const double *means, const double *centroids) const;
};

// How many rows all rows count for: one of weight w for w.
double mass_of_all(const std::vector<double> &masses);

double square_distance(const double *a, const double *b, std::int32_t d);

} // namespace pgkm
