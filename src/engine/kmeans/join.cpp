// join.cpp - pairwise nearest neighbours among centroids.
//
// Each cluster keeps its cheapest partner among those before it. A join makes some of these stale: the union's, and
// those that were one of the two. Their costs stay lower bounds, since a union is never cheaper to join than the
// cheaper of its halves. So a stale partner is looked for again only when it is the next in turn, and few ever are.
#include "engine/kmeans/join.hpp"

#include <algorithm>
#include <cmath>

#include "engine/api.h"
#include "numeric/index.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {
namespace {

// Multiply-adds that one more thread is worth starting for, and between two polls.
constexpr double thread_operations = 4e6;
constexpr std::int64_t poll_operations = 1 << 22;

// What rounding may add to or take from a cost that is a lower bound.
constexpr double certain = 1.0 - 1e-9;

class Joiner {
  public:
    Joiner(Centres &centres, const Monitor &monitor)
        : centres_(centres), monitor_(monitor), partners_(at(centres.k())), alive_(at(centres.k()), 1)
    {
    }

    void run(std::int32_t k, std::int32_t threads)
    {
        const double operations = 0.5 * centres_.d * centres_.k() * centres_.k();
        const double useful = std::min<double>(threads, 1.0 + operations / thread_operations);
        parallel_for(centres_.k(), static_cast<std::int64_t>(useful),
                     [&](std::int64_t i, int) { find_partner(static_cast<std::int32_t>(i)); });
        for (std::int32_t left = centres_.k(); left > k;)
            left -= join_next();
        close_ranks();
    }

  private:
    struct Partner {
        double cost = INFINITY;
        std::int32_t index = -1;
        bool stale = false; // the true cost may be higher
    };

    double cost(std::int32_t a, std::int32_t b, double square) const
    {
        const double x = centres_.masses[at(a)], y = centres_.masses[at(b)];
        return x == 0.0 || y == 0.0 ? 0.0 : x / (x + y) * y * square;
    }

    void find_partner(std::int32_t i)
    {
        const std::int32_t block =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(poll_operations / centres_.d, 1, 4096));
        std::vector<double> squares(at(std::min(block, i)));
        Partner best;
        for (std::int32_t first = 0; first < i; first += block) {
            monitor_.poll();
            const std::int32_t count = std::min(block, i - first);
            pgkm_distances(centroid(i), centroid(first), count, centres_.d, squares.data());
            for (std::int32_t j = first; j < first + count; ++j) {
                const double costs = cost(i, j, squares[at(j - first)]);
                if (alive_[at(j)] != 0 && costs < best.cost)
                    best = {costs, j, false};
            }
        }
        partners_[at(i)] = best;
    }

    // 1 when two were joined, 0 when the next in turn was stale.
    int join_next()
    {
        monitor_.poll();
        const auto next = std::min_element(partners_.begin(), partners_.end(),
                                           [](const Partner &a, const Partner &b) { return a.cost < b.cost; });
        const auto kept = static_cast<std::int32_t>(next - partners_.begin());
        if (next->stale) {
            find_partner(kept);
            return 0;
        }
        const std::int32_t gone = next->index;
        unite(gone, kept);
        for (Partner &partner : partners_)
            if (partner.index == gone || partner.index == kept)
                make_stale(partner); // the union's own, too
        return 1;
    }

    static void make_stale(Partner &partner)
    {
        if (!partner.stale)
            partner.cost *= certain;
        partner.stale = true;
    }

    void unite(std::int32_t gone, std::int32_t kept)
    {
        const double x = centres_.masses[at(gone)], y = centres_.masses[at(kept)];
        const double share = x == 0.0 ? 0.0 : x / (x + y);
        const double *from = centroid(gone);
        double *to = centres_.centroids.data() + std::int64_t{kept} * centres_.d;
        for (std::int32_t f = 0; f < centres_.d; ++f)
            to[f] += share * (from[f] - to[f]);
        centres_.masses[at(kept)] += x;
        alive_[at(gone)] = 0;
        partners_[at(gone)] = {};
    }

    void close_ranks()
    {
        std::int32_t kept = 0;
        for (std::int32_t i = 0; i < centres_.k(); ++i) {
            if (alive_[at(i)] == 0)
                continue;
            std::copy_n(centroid(i), centres_.d, centres_.centroids.begin() + std::int64_t{kept} * centres_.d);
            centres_.masses[at(kept++)] = centres_.masses[at(i)];
        }
        centres_.centroids.resize(at(std::int64_t{kept} * centres_.d));
        centres_.masses.resize(at(kept));
    }

    const double *centroid(std::int32_t i) const { return centres_.centroids.data() + std::int64_t{i} * centres_.d; }

    Centres &centres_;
    const Monitor &monitor_;
    std::vector<Partner> partners_; // k; none for the first and for those that are gone
    std::vector<char> alive_;       // k
};

} // namespace

void join_clusters(Centres &centres, std::int32_t k, std::int32_t threads, const Monitor &monitor)
{
    if (k < centres.k())
        Joiner(centres, monitor).run(k, threads);
}

} // namespace pgkm
