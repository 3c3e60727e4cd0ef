// network.cpp - shortest paths between clusters, many at a time.
#include "cpu/sizes/network.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int32_t nowhere = -1;
// Moves of a pair that are asked for: so many and one in so many, or twice as many as before.
constexpr std::size_t least_asked = 32;
constexpr std::size_t asked_share = 64;

// std's heaps have the largest on top.
bool later(const Move &a, const Move &b)
{
    return b < a;
}

// Where the arc to a node is, or belongs.
auto place_of(auto &arcs, std::int32_t to)
{
    return std::lower_bound(arcs.begin(), arcs.end(), to,
                            [](const auto &arc, std::int32_t node) { return arc.to < node; });
}

} // namespace

Network::Network(const std::vector<PgkmSizeBounds> &bounds, const std::vector<std::int64_t> &sizes,
                 const std::vector<double> &prices, double *floors, const PathKernels &kernels)
    : kernels_(&kernels), bounds_(bounds), arcs_(sizes.size()), prices_(prices), floors_(floors),
      distances_(sizes.size() + 1), open_(sizes.size() + 1), before_(sizes.size() + 1)
{
    prices_.push_back(0.0);
    std::int64_t all = 0, sent = 0;
    for (std::size_t j = 0; j < sizes.size(); ++j) {
        // A cluster that costs sends all that it may have, one that is paid for sends no more than it must.
        const auto [least, most] = bounds[j];
        const std::int64_t out = prices[j] > 0.0 ? most : prices[j] < 0.0 ? least : std::clamp(sizes[j], least, most);
        sent_.push_back(out);
        surplus_.push_back(sizes[j] - out);
        all += sizes[j];
        sent += out;
    }
    surplus_.push_back(sent - all);
}

std::int64_t Network::excess() const
{
    std::int64_t excess = 0;
    for (const std::int64_t surplus : surplus_)
        excess += std::max<std::int64_t>(surplus, 0);
    return excess;
}

std::vector<double> Network::prices() const
{
    std::vector<double> prices(prices_.begin(), prices_.end() - 1);
    for (double &price : prices)
        price -= prices_.back();
    return prices;
}

// Clusters first, which may leave the outside with too many.
void Network::settle(RowCosts &rows)
{
    rows_ = &rows;
    for (std::int32_t v = 0; v <= outside(); ++v)
        for (std::int64_t wanted = 1; surplus_[at(v)] > 0;) {
            find_paths(v, std::min(wanted, surplus_[at(v)]));
            raise_prices();
            std::int64_t moved = 0;
            for (const std::int32_t last : ends_)
                moved += follow_path(last);
            wanted = 2 * moved;
        }
}

Network::Arc *Network::find_arc(std::int32_t from, std::int32_t to)
{
    const auto arc = place_of(arcs_[at(from)], to);
    return arc == arcs_[at(from)].end() || arc->to != to ? nullptr : &*arc;
}

// The first move of a row that is still there, where it is known to be the first of all; or NULL.
const Move *Network::cheapest(std::int32_t from, Arc &arc) const
{
    std::vector<Move> &moves = arc.moves;
    while (!moves.empty() && rows_->label(moves.front().place) != from) {
        std::pop_heap(moves.begin(), moves.end(), later);
        moves.pop_back();
    }
    return moves.empty() ? nullptr : &moves.front();
}

// Never below 0 but for rounding.
double Network::reduced(double cost, std::int32_t from, std::int32_t to) const
{
    return std::max(0.0, cost + prices_[at(to)] - prices_[at(from)]);
}

// Makes the cheapest moves of a pair known, of all that there are now.
void Network::ask_for_moves(std::int32_t from, std::int32_t to)
{
    Arc *arc = find_arc(from, to);
    if (arc == nullptr) {
        std::vector<Arc> &arcs = arcs_[at(from)];
        rows_->hold(sizeof(Arc));
        arc = &*arcs.insert(place_of(arcs, to), Arc{to, {}, {}, 0});
    }
    std::vector<Move> moves = rows_->moves(from, to);
    const std::size_t before = std::exchange(
        arc->asked, std::min(moves.size(), std::max(least_asked + moves.size() / asked_share, 2 * arc->asked)));
    if (arc->asked < moves.size()) {
        const auto end = moves.begin() + static_cast<std::ptrdiff_t>(arc->asked);
        std::nth_element(moves.begin(), end - 1, moves.end());
        arc->known = *(end - 1);
    } else {
        arc->known = {infinity, -1};
    }
    rows_->hold((static_cast<std::int64_t>(arc->asked) - static_cast<std::int64_t>(before)) *
                static_cast<std::int64_t>(sizeof(Move)));
    arc->moves.assign(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(arc->asked));
    std::make_heap(arc->moves.begin(), arc->moves.end(), later);
}

// Dijkstra's search from a node with too many rows to the nearest ones with too few, up to `wanted` of them: paths to
// several seldom share a step. A cluster's search ends at the outside. What a step costs at least counts until the
// search comes to it.
void Network::find_paths(std::int32_t source, std::int64_t wanted)
{
    std::fill(distances_.begin(), distances_.end(), infinity);
    std::fill(open_.begin(), open_.end(), infinity);
    settled_.clear();
    ends_.clear();
    distances_[at(source)] = open_[at(source)] = 0.0;
    before_[at(source)] = nowhere;
    std::int32_t next = source;
    while (open_[at(next)] < infinity) {
        if (!is_exact(next)) {
            measure(next);
            next = kernels_->least_of(open_.data(), outside() + 1);
            continue;
        }
        rows_->poll();
        settled_.push_back(next);
        open_[at(next)] = infinity;
        if (next != source && is_end(next)) {
            ends_.push_back(next);
            if (next == outside() || static_cast<std::int64_t>(ends_.size()) == wanted)
                return;
        }
        next = look_around(next);
    }
    if (ends_.empty())
        throw Error(PGKM_INTERNAL, "rows that are too many have no place to go");
}

// Whether the last step to a node costs what the search took it to cost. If not, its floor has risen.
bool Network::is_exact(std::int32_t to)
{
    const std::int32_t from = before(to);
    if (from == nowhere || from == outside() || to == outside())
        return true;
    double &floor = floors(from)[to];
    const double taken = floor;
    Arc *arc = find_arc(from, to);
    const Move *move = arc == nullptr ? nullptr : cheapest(from, *arc);
    if (move == nullptr) {
        ask_for_moves(from, to);
        arc = find_arc(from, to);
        move = cheapest(from, *arc);
    }
    floor = move == nullptr ? infinity : move->cost;
    return floor <= taken;
}

// Finds the distance of an open node again.
void Network::measure(std::int32_t to)
{
    double &distance = distances_[at(to)];
    distance = infinity;
    for (const std::int32_t from : settled_) {
        const double through = distances_[at(from)] + least_cost(from, to);
        if (through < distance) {
            distance = through;
            before_[at(to)] = from;
        }
    }
    open_[at(to)] = distance;
}

// What a step costs at least; infinity: it cannot be taken.
double Network::least_cost(std::int32_t from, std::int32_t to)
{
    if (from == outside())
        return sent_[at(to)] > bounds_[at(to)].least ? reduced(0.0, from, to) : infinity;
    if (to == outside())
        return sent_[at(from)] < bounds_[at(from)].most ? reduced(0.0, from, to) : infinity;
    return reduced(floors(from)[to], from, to);
}

// Takes the steps from a node that has been settled. Returns the nearest open node.
std::int32_t Network::look_around(std::int32_t from)
{
    const double so_far = distances_[at(from)], own = prices_[at(from)];
    const double beyond = so_far + (from == outside() ? infinity : least_cost(from, outside()));
    const SearchedNodes nodes = {outside(), distances_.data(), open_.data(), before_.data()};
    const auto reach = [&](std::int32_t to, double distance) {
        if (distance < distances_[at(to)]) {
            distances_[at(to)] = open_[at(to)] = distance;
            before_[at(to)] = from;
        }
    };
    reach(outside(), beyond);
    if (from != outside())
        kernels_->take_steps(nodes, from, so_far, own, floors(from), prices_.data());
    else
        for (std::int32_t j = 0; j < outside(); ++j)
            reach(j, so_far + least_cost(from, j));
    const std::int32_t nearest = kernels_->least_of(open_.data(), outside());
    return open_[at(nearest)] < open_[at(outside())] ? nearest : outside();
}

// By what they are nearer to the beginning than the last node, so that no step costs less than nothing, and those of
// the paths nothing.
void Network::raise_prices()
{
    const double length = distances_[at(settled_.back())];
    for (const std::int32_t v : settled_)
        prices_[at(v)] += length - distances_[at(v)];
}

// As often as it costs nothing: rows that are equal follow one another. Returns how often.
std::int64_t Network::follow_path(std::int32_t last)
{
    std::int64_t count = 0;
    path_.clear();
    for (std::int32_t v = last; v != nowhere; v = before(v))
        path_.push_back(v);
    const std::int32_t first = path_.back();
    while (surplus_[at(first)] > 0 && is_end(last)) {
        std::int64_t amount = std::min(surplus_[at(first)], free_amount());
        if (last != outside())
            amount = std::min(amount, -surplus_[at(last)]);
        if (amount <= 0)
            return count;
        ++count;
        for (std::size_t i = 0; i + 1 < path_.size(); ++i) // from its end: a row takes one step
            take_step(path_[i + 1], path_[i], amount);
        surplus_[at(first)] -= amount;
        surplus_[at(last)] += amount;
    }
    return count;
}

// What can take each step at no more than it cost when the path was found: floors say how much that was.
std::int64_t Network::free_amount()
{
    std::int64_t amount = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i + 1 < path_.size() && amount > 0; ++i) {
        const std::int32_t from = path_[i + 1], to = path_[i];
        std::int64_t step = 0;
        if (from == outside())
            step = sent_[at(to)] - bounds_[at(to)].least;
        else if (to == outside())
            step = bounds_[at(from)].most - sent_[at(from)];
        else if (const Move *move = cheapest(from, *find_arc(from, to));
                 move != nullptr && move->cost <= floors(from)[to])
            step = rows_->amount(move->place);
        amount = std::min(amount, step);
    }
    return amount;
}

void Network::take_step(std::int32_t from, std::int32_t to, std::int64_t amount)
{
    if (from == outside()) {
        sent_[at(to)] -= amount;
        return;
    }
    if (to == outside()) {
        sent_[at(from)] += amount;
        return;
    }
    const std::int64_t place = rows_->move(cheapest(from, *find_arc(from, to))->place, to, amount);
    if (place == nowhere)
        return;
    const std::vector<double> &costs = rows_->costs();
    // What it can do from there.
    double *least = floors(to);
    for (std::int32_t j = 0; j < outside(); ++j)
        least[j] = std::min(least[j], costs[at(j)] - costs[at(to)]);
    for (Arc &arc : arcs_[at(to)]) {
        const Move move = {costs[at(arc.to)] - costs[at(to)], place};
        if (arc.known < move)
            continue;
        arc.moves.push_back(move);
        std::push_heap(arc.moves.begin(), arc.moves.end(), later);
    }
}

} // namespace pgkm::cpu
