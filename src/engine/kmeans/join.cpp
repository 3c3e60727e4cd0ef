// join.cpp - pairwise nearest neighbours among centroids.
//
// Each cluster keeps its cheapest partner among those before it. A join makes some of these stale: the union's, and
// those that were one of the two. What is left for these costs no less, so their costs stay lower bounds; 0 is the
// union's own. The union itself may be cheaper than its halves were by what rounding moved its centre. So each cluster
// behind it looks at it at once, and every bound is one of costs as they are computed. A stale partner is looked for
// again only when it is the next in turn, and few ever are.
#include "engine/kmeans/join.hpp"

#include <algorithm>
#include <cmath>

#include "engine/api.h"
#include "numeric/index.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {
namespace {

// Multiply-adds that one more thread is worth starting for.
constexpr double thread_operations = 4e6;

// Between two polls.
constexpr std::int32_t clusters_at_once = 64;

class Joiner {
  public:
    Joiner(Centres &centres, const Monitor &monitor)
        : centres_(centres), monitor_(monitor), costs_(at(centres.k())), partners_(at(centres.k()), -1),
          stale_(at(centres.k()), 0), alive_(at(centres.k()), 1)
    {
    }

    void run(std::int32_t k, ThreadPool &pool)
    {
        const double operations = 0.5 * centres_.d * centres_.k() * centres_.k();
        const double useful = std::min<double>(pool.size(), 1.0 + operations / thread_operations);
        parallel_for(pool, centres_.k(), static_cast<std::int64_t>(useful),
                     [&](std::int64_t i, int) { find_partner(static_cast<std::int32_t>(i)); });
        for (std::int32_t left = centres_.k(); left > k;)
            left -= join_next();
        close_ranks();
    }

  private:
    // From the first on, none after one that costs nothing.
    void find_partner(std::int32_t i)
    {
        costs_[at(i)] = INFINITY;
        partners_[at(i)] = -1;
        stale_[at(i)] = 0;
        for (std::int32_t first = 0; first < i && costs_[at(i)] > 0.0; first += clusters_at_once)
            for_squares(i, first, std::min(first + clusters_at_once, i),
                        [&](std::int32_t j, double square) { consider(i, j, square); });
    }

    void consider(std::int32_t i, std::int32_t j, double square)
    {
        const double x = mass(i), y = mass(j), cost = x == 0.0 || y == 0.0 ? 0.0 : x / (x + y) * y * square;
        if (alive_[at(i)] != 0 && alive_[at(j)] != 0 &&
            (cost < costs_[at(i)] || (cost == costs_[at(i)] && j < partners_[at(i)]))) {
            costs_[at(i)] = cost;
            partners_[at(i)] = j;
        }
    }

    // The squared distances from a cluster to those from `first` to before `last`.
    template <typename Body>
    void for_squares(std::int32_t i, std::int32_t first, std::int32_t last, const Body &body) const
    {
        double squares[clusters_at_once];
        for (std::int32_t j = first; j < last;) {
            monitor_.poll();
            const std::int32_t end = std::min(j + clusters_at_once, last);
            pgkm_distances(centroid(i), centroid(j), end - j, centres_.d, squares);
            for (const double *square = squares; j < end; ++j)
                body(j, *square++);
        }
    }

    // 1 when two were joined, 0 when the next in turn was stale.
    int join_next()
    {
        monitor_.poll();
        const auto kept = static_cast<std::int32_t>(std::min_element(costs_.begin(), costs_.end()) - costs_.begin());
        if (stale_[at(kept)] != 0) {
            find_partner(kept);
            return 0;
        }
        const std::int32_t gone = partners_[at(kept)];
        unite(gone, kept);
        for (std::size_t i = 0; i < partners_.size(); ++i)
            if (partners_[i] == gone || partners_[i] == kept)
                stale_[i] = 1;
        costs_[at(kept)] = 0.0;
        for_squares(kept, kept + 1, centres_.k(), [&](std::int32_t i, double square) { consider(i, kept, square); });
        return 1;
    }

    void unite(std::int32_t gone, std::int32_t kept)
    {
        const double x = mass(gone), y = mass(kept);
        const double share = x == 0.0 ? 0.0 : x / (x + y); // 1 beside an empty one: no rounding then
        const double *from = centroid(gone);
        double *to = centres_.centroids.data() + std::int64_t{kept} * centres_.d;
        if (std::vector<std::int32_t> &ids = centres_.ids;
            !ids.empty() && (x > y || (x == y && ids[at(gone)] < ids[at(kept)])))
            ids[at(kept)] = ids[at(gone)];
        for (std::int32_t f = 0; f < centres_.d; ++f)
            to[f] = share == 1.0 ? from[f] : to[f] + share * (from[f] - to[f]);
        centres_.masses[at(kept)] += x;
        alive_[at(gone)] = 0;
        costs_[at(gone)] = INFINITY;
        partners_[at(gone)] = -1;
    }

    void close_ranks()
    {
        std::int32_t kept = 0;
        for (std::int32_t i = 0; i < centres_.k(); ++i) {
            if (alive_[at(i)] == 0)
                continue;
            std::copy_n(centroid(i), centres_.d, centres_.centroids.begin() + std::int64_t{kept} * centres_.d);
            if (!centres_.ids.empty())
                centres_.ids[at(kept)] = centres_.ids[at(i)];
            centres_.masses[at(kept++)] = mass(i);
        }
        centres_.centroids.resize(at(std::int64_t{kept} * centres_.d));
        centres_.masses.resize(at(kept));
        if (!centres_.ids.empty())
            centres_.ids.resize(at(kept));
    }

    const double *centroid(std::int32_t i) const { return centres_.centroids.data() + std::int64_t{i} * centres_.d; }
    double mass(std::int32_t i) const { return centres_.masses[at(i)]; }

    Centres &centres_;
    const Monitor &monitor_;
    // Of each cluster: the cheapest before it and what it costs; infinity and -1 for none.
    std::vector<double> costs_;
    std::vector<std::int32_t> partners_;
    std::vector<char> stale_; // the true cost may be higher
    std::vector<char> alive_;
};

} // namespace

void join_clusters(Centres &centres, std::int32_t k, ThreadPool &pool, const Monitor &monitor)
{
    if (k < centres.k())
        Joiner(centres, monitor).run(k, pool);
}

} // namespace pgkm
