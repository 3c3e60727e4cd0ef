// network.hpp - moves rows between clusters until every size is within its bounds, at the least cost.
//
// Which rows go to which clusters is a transportation problem. Its nodes are the clusters and one more, the outside:
// cluster j sends between `least` and `most` of its rows there. Each cluster has a price. A row lies where its squared
// distance plus the price is least, so that assignment is the cheapest of those with the same sizes. From there rows
// move along cheapest paths from clusters with too many to clusters with too few, one row each step, and prices rise
// so that this remains true (successive shortest paths; Ahuja, Magnanti, Orlin: Network Flows, 1993, section 9.7).
//
// A step from j to l is the row of j that costs least to move there. All of them would be n x k moves, and few are
// needed. So the network knows the cheapest moves of each pair of clusters up to some cost. What is not known costs at
// least as much: a search that comes to such a step asks for more moves of that pair, and goes on.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/sizes/bounds.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

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
    // Changes the label of a row. What it costs in each cluster, valid until the next call.
    virtual const std::vector<double> &move(std::int64_t place, std::int32_t to) = 0;
    virtual std::int32_t label(std::int64_t place) const = 0;
    virtual void poll() const = 0;
};

class Network {
  public:
    // prices: k, under which the rows of these sizes are where they cost least.
    Network(const SizeBounds &bounds, const std::vector<std::int64_t> &sizes, const std::vector<double> &prices);

    // Rows that are too many somewhere. None: all sizes are within their bounds.
    std::int64_t excess() const { return excess_; }
    // Of cluster j: rows too many, or below 0 too few.
    std::int64_t surplus(std::size_t j) const { return surplus_[j]; }

    // To begin with: moves from cluster j that cost less than `reach` more than staying, prices counted, are those that
    // add() is given.
    void set_reach(std::int32_t j, double reach) { reaches_[static_cast<std::size_t>(j)] = reach; }
    void add(std::int32_t from, std::int32_t to, const Move &move);

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
        std::size_t asked = 0; // moves, the last time
    };
    // A node that a search may come to.
    struct Reached {
        double distance;
        std::int32_t node, from;
        bool known; // else the distance is at least this

        bool operator>(const Reached &other) const
        {
            return std::pair(distance, node) > std::pair(other.distance, other.node);
        }
    };

    std::int32_t outside() const { return static_cast<std::int32_t>(arcs_.size()); }
    Move known_at_first(std::int32_t from, std::int32_t to) const;
    Arc &arc(std::int32_t from, std::int32_t to);
    const Move *cheapest(std::int32_t from, Arc &arc) const;
    double reduced(double cost, std::int32_t from, std::int32_t to) const;
    Reached step(std::int32_t from, Arc &arc) const;
    template <typename Wanted, typename Body>
    void for_steps(std::int32_t from, Wanted &&wanted, Body &&body);
    void ask_for_moves(std::int32_t from, Arc &arc);
    void find_path();
    void raise_prices();
    void follow_path();
    bool path_is_free();
    void take_step(std::int32_t from, std::int32_t to);

    SizeBounds bounds_;
    std::vector<std::vector<Arc>> arcs_;        // of each cluster, ascending; pairs without one: known_at_first()
    std::vector<double> prices_, first_prices_; // k + 1
    std::vector<double> reaches_;               // k
    std::vector<std::int64_t> surplus_;         // k + 1: rows too many; below 0: too few
    std::vector<std::int64_t> sent_;            // k: rows that go outside
    std::int64_t excess_ = 0;
    RowCosts *rows_ = nullptr;
    // Of the last search.
    std::vector<double> distances_;
    std::vector<std::int32_t> before_, settled_, path_;
};

} // namespace pgkm
