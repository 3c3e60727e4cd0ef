// join.hpp - joins clusters that cost least to lose.
//
// Two clusters of masses a and b become one at their mean. The inertia then grows by at most a b / (a + b) times the
// squared distance of their centroids (Ward 1963). The pair of the least growth is joined first, as in Equitz'
// pairwise nearest neighbours (1989), until few enough clusters are left. Only centroids and masses are looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {

// Clusters in float64.
struct Centres {
    std::vector<double> centroids; // k x d
    std::vector<double> masses;    // k, in any unit; 0 for an empty one, which is joined at no cost
    std::int32_t d;
    std::vector<std::int32_t> ids = {}; // k, or empty: the union of two goes on as the heavier, of equal ones the lower

    std::int32_t k() const { return static_cast<std::int32_t>(masses.size()); }
};

// Leaves `k` of them, 1 <= k <= centres.k(), in their order; the union of two stands where the later one stood. Of
// pairs of equal cost the one whose later cluster comes first is joined, then that whose earlier one does. About d K^2
// / 2 multiply-adds for K clusters at the beginning, on threads of the pool.
void join_clusters(Centres &centres, std::int32_t k, ThreadPool &pool, const Monitor &monitor);

} // namespace pgkm
