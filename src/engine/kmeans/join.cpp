// join.cpp - pairwise nearest neighbours among centroids.
//
// Each cluster keeps its cheapest partner among those before it. A join makes some of these stale: the union's, and
// those that were one of the two. What is left for these costs no less, so their costs stay lower bounds; 0 is the
// union's own. The union itself may be cheaper than its halves were by what rounding moved its centre. So each cluster
// behind it looks at it at once, and every bound is one of costs as they are computed. A stale partner is looked for
// again only when it is the next in turn, and few ever are.
// With few features a partner is looked for along the axis in which centroids lie farthest apart.
#include "engine/kmeans/join.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/api.h"
#include "numeric/index.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {
namespace {

// Multiply-adds that one more thread is worth starting for, and between two polls.
constexpr double thread_operations = 4e6;
constexpr std::int64_t poll_operations = 1 << 22;

// With more features the distance along one of them says too little.
constexpr std::int32_t most_features_of_axis = 16;

// What rounding may add to a lower bound of a cost, or take from the cost.
constexpr double certain = 1.0 - 1e-9;

class Joiner {
  public:
    Joiner(Centres &centres, const Monitor &monitor)
        : centres_(centres), monitor_(monitor), costs_(at(centres.k())), partners_(at(centres.k()), -1),
          stale_(at(centres.k()), 0), alive_(at(centres.k()), 1), order_(at(centres.k()))
    {
        find_axis();
        std::iota(order_.begin(), order_.end(), 0);
        std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) { return before(a, b); });
        for (std::int32_t i = 0; i < centres.k(); ++i)
            if (mass(i) == 0.0)
                empty_.push_back(i);
            else
                least_mass_ = std::min(least_mass_, mass(i));
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
    // The feature in which centroids lie farthest apart.
    void find_axis()
    {
        double widest = -1.0;
        for (std::int32_t f = 0; f < centres_.d; ++f) {
            monitor_.poll();
            double low = centroid(0)[f], high = low;
            for (std::int32_t i = 1; i < centres_.k(); ++i) {
                low = std::min(low, centroid(i)[f]);
                high = std::max(high, centroid(i)[f]);
            }
            if (high - low > widest) {
                widest = high - low;
                axis_ = f;
            }
        }
    }

    bool before(std::int32_t a, std::int32_t b) const
    {
        const double x = centroid(a)[axis_], y = centroid(b)[axis_];
        return x != y ? x < y : a < b;
    }

    void find_partner(std::int32_t i)
    {
        monitor_.poll();
        costs_[at(i)] = INFINITY;
        partners_[at(i)] = -1;
        stale_[at(i)] = 0;
        if (mass(i) == 0.0)
            for (std::int32_t j = 0; j < i && partners_[at(i)] < 0; ++j)
                consider(i, j, 0.0);
        for (auto j = empty_.begin(); j != empty_.end() && *j < i && partners_[at(i)] < 0; ++j)
            if (mass(*j) == 0.0)
                consider(i, *j, 0.0);
        if (partners_[at(i)] >= 0)
            return;
        if (centres_.d <= most_features_of_axis)
            search_along_axis(i);
        else
            search_all(i);
    }

    void consider(std::int32_t i, std::int32_t j, double square)
    {
        const double x = mass(i), y = mass(j), cost = x == 0.0 || y == 0.0 ? 0.0 : x / (x + y) * y * square;
        if (alive_[at(j)] != 0 && (cost < costs_[at(i)] || (cost == costs_[at(i)] && j < partners_[at(i)]))) {
            costs_[at(i)] = cost;
            partners_[at(i)] = j;
        }
    }

    void search_all(std::int32_t i)
    {
        const auto block = static_cast<std::int32_t>(std::clamp<std::int64_t>(poll_operations / centres_.d, 1, 4096));
        std::vector<double> squares(at(std::min(block, i)));
        for (std::int32_t first = 0; first < i; first += block) {
            monitor_.poll();
            const std::int32_t count = std::min(block, i - first);
            pgkm_distances(centroid(i), centroid(first), count, centres_.d, squares.data());
            for (std::int32_t j = first; j < first + count; ++j)
                consider(i, j, squares[at(j - first)]);
        }
    }

    // From the cluster's own place to both sides, the nearer next one first, until the distance along the axis alone
    // costs more than the best.
    void search_along_axis(std::int32_t i)
    {
        constexpr std::int32_t batch = 8; // distances at once
        double rows[batch * most_features_of_axis], squares[batch];
        std::int32_t indices[batch];
        const double x = mass(i), least = x / (x + least_mass_) * least_mass_ * certain;
        const double here = centroid(i)[axis_];
        auto right = place_of(i), left = right++;
        for (bool ended = false; !ended;) {
            std::int32_t count = 0;
            while (count < batch && !ended) {
                const double down = left == order_.begin() ? INFINITY : here - centroid(left[-1])[axis_];
                const double up = right == order_.end() ? INFINITY : centroid(*right)[axis_] - here;
                const double gap = std::min(down, up);
                ended = gap == INFINITY || least * (gap * gap) > costs_[at(i)];
                const std::int32_t j = ended ? i : down <= up ? *--left : *right++;
                if (j < i) {
                    std::copy_n(centroid(j), centres_.d, rows + count * centres_.d);
                    indices[count++] = j;
                }
            }
            pgkm_distances(centroid(i), rows, count, centres_.d, squares);
            for (std::int32_t c = 0; c < count; ++c)
                consider(i, indices[c], squares[c]);
        }
    }

    std::vector<std::int32_t>::iterator place_of(std::int32_t i)
    {
        return std::lower_bound(order_.begin(), order_.end(), i,
                                [&](std::int32_t a, std::int32_t b) { return before(a, b); });
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
        look_at(kept);
        return 1;
    }

    // Those behind the union that may be cheaper to join with it than with their partners.
    void look_at(std::int32_t kept)
    {
        const double y = mass(kept), here = centroid(kept)[axis_];
        const auto per_poll = static_cast<std::int32_t>(poll_operations / centres_.d + 1);
        for (std::int32_t i = kept + 1; i < centres_.k(); ++i) {
            if (i % per_poll == 0)
                monitor_.poll();
            const double x = mass(i), gap = centroid(i)[axis_] - here;
            if (alive_[at(i)] == 0 || x / (x + y) * y * certain * (gap * gap) > costs_[at(i)])
                continue;
            double square = 0.0;
            pgkm_distances(centroid(i), centroid(kept), 1, centres_.d, &square);
            consider(i, kept, square);
        }
    }

    void unite(std::int32_t gone, std::int32_t kept)
    {
        const double x = mass(gone), y = mass(kept);
        const double share = x == 0.0 ? 0.0 : x / (x + y); // 1 beside an empty one: no rounding then
        order_.erase(place_of(gone));
        order_.erase(place_of(kept));
        const double *from = centroid(gone);
        double *to = centres_.centroids.data() + std::int64_t{kept} * centres_.d;
        for (std::int32_t f = 0; f < centres_.d; ++f)
            to[f] = share == 1.0 ? from[f] : to[f] + share * (from[f] - to[f]);
        centres_.masses[at(kept)] += x;
        order_.insert(place_of(kept), kept);
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
            centres_.masses[at(kept++)] = mass(i);
        }
        centres_.centroids.resize(at(std::int64_t{kept} * centres_.d));
        centres_.masses.resize(at(kept));
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
    std::int32_t axis_ = 0;
    std::vector<std::int32_t> order_; // those alive, along the axis
    std::vector<std::int32_t> empty_; // those of no mass at the beginning
    double least_mass_ = INFINITY;    // of the others
};

} // namespace

void join_clusters(Centres &centres, std::int32_t k, std::int32_t threads, const Monitor &monitor)
{
    if (k < centres.k())
        Joiner(centres, monitor).run(k, threads);
}

} // namespace pgkm
