// network.hpp - moves rows between clusters until every size is within its bounds, at the least cost.
//
// A row counts by its amount, which is 1 or stands for its weight. Of a row that is larger than what a cluster may take
// a part moves, which is a row of its own from then on.
//
// Which rows go to which clusters is a transportation problem. Its nodes are the clusters and one more, the outside:
// cluster j sends as many rows there as its bounds allow. Each cluster has a price. A row lies where its squared
// distance plus the price is least, so that assignment is the cheapest of those with the same sizes. From there rows
// move along cheapest paths from clusters with too many to clusters with too few, and prices rise so that this remains
// true (Ahuja, Magnanti, Orlin: Network Flows, 1993, sections 9.7 and 9.8). One search finds the cheapest paths to all
// clusters with too few. Rows then follow every path whose steps no earlier path has used up.
//
// A step from j to l is the row of j that costs least to move there. All of them would be n x k moves, and few are
// needed. So the network knows for each pair what a move costs at least. A search that comes to such a step asks for
// the cheapest moves of that pair, and goes on.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "cpu/sizes/path_kernels.hpp"
#include "numeric/index.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// A row, by its place, in another cluster: the cost there less the cost where it is.
struct Move {
    double cost;
    std::int64_t place;

    bool operator<(const Move &other) const { return cost != other.cost ? cost < other.cost : place < other.place; }
};

// What the network asks about the rows. The cost of a row in a cluster is its squared distance.
class RowCosts {
  public:
    virtual ~RowCosts() = default;
    // The moves of all rows that are in `from` now. A row that came there more than once may be there as often.
    virtual std::vector<Move> moves(std::int32_t from, std::int32_t to) = 0;
    virtual std::int64_t amount(std::int64_t place) const = 0;
    // Changes the label of a row, or of so much of it. The place of what has moved; none where it joins the rest of its
    // row, whose moves are known. What it costs in each cluster is in costs().
    virtual std::int64_t move(std::int64_t place, std::int32_t to, std::int64_t amount) = 0;
    virtual const std::vector<double> &costs() const = 0;
    virtual std::int32_t label(std::int64_t place) const = 0;
    // Counts memory of the network; below 0: as given back.
    virtual void hold(std::int64_t bytes) = 0;
    virtual void poll() const = 0;
};

class Network {
  public:
    // bounds: k. prices: k, under which the rows of these sizes are where they cost least. floors: k x k, what a move
    // from cluster j to l costs at least; floors[j * k + l] stays the caller's, and is written to.
    Network(const std::vector<PgkmSizeBounds> &bounds, const std::vector<std::int64_t> &sizes,
            const std::vector<double> &prices, double *floors, const PathKernels &kernels);

    // Amounts that are too many somewhere. None: all sizes are within their bounds.
    std::int64_t excess() const;

    // Moves rows until none are too many.
    void settle(RowCosts &rows);

    // k, the price of the outside taken off.
    std::vector<double> prices() const;

  private:
    // The moves of a pair that are known: all up to `known`, in a heap; those of rows that are elsewhere by now stay
    // until they come up.
    struct Arc {
        std::int32_t to;
        Move known;
        std::vector<Move> moves;
        std::size_t asked; // moves, the last time
    };
    std::int32_t outside() const { return static_cast<std::int32_t>(arcs_.size()); }
    std::int32_t before(std::int32_t v) const { return static_cast<std::int32_t>(before_[at(v)]); }
    double *floors(std::int32_t from) { return floors_ + static_cast<std::ptrdiff_t>(from) * outside(); }
    Arc *find_arc(std::int32_t from, std::int32_t to);
    const Move *cheapest(std::int32_t from, Arc &arc) const;
    double reduced(double cost, std::int32_t from, std::int32_t to) const;
    void ask_for_moves(std::int32_t from, std::int32_t to);
    bool is_end(std::int32_t v) const { return v == outside() || surplus_[at(v)] < 0; }
    void find_paths(std::int32_t source, std::int64_t wanted);
    bool is_exact(std::int32_t to);
    void measure(std::int32_t to);
    double least_cost(std::int32_t from, std::int32_t to);
    std::int32_t look_around(std::int32_t from);
    void raise_prices();
    std::int64_t follow_path(std::int32_t last);
    std::int64_t free_amount();
    void take_step(std::int32_t from, std::int32_t to, std::int64_t amount);

    const PathKernels *kernels_;
    std::vector<PgkmSizeBounds> bounds_;
    std::vector<std::vector<Arc>> arcs_; // of each cluster, those that were asked for, ascending
    std::vector<double> prices_;         // k + 1
    double *floors_;                     // k x k
    std::vector<std::int64_t> surplus_;  // k + 1: rows too many; below 0: too few
    std::vector<std::int64_t> sent_;     // k: rows that go outside
    RowCosts *rows_ = nullptr;
    // Of the last search. Of k + 1 nodes: the distance, as far as it is known; the same, infinity once it is settled;
    // the node before it. Then nodes by distance, of them those with too few rows, and a path from its end.
    std::vector<double> distances_, open_;
    std::vector<std::int64_t> before_; // as wide as a distance
    std::vector<std::int32_t> settled_, ends_, path_;
};

} // namespace pgkm::cpu
