// network.cpp - successive shortest paths between clusters.
#include "engine/sizes/network.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
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

} // namespace

Network::Network(const SizeBounds &bounds, const std::vector<std::int64_t> &sizes, const std::vector<double> &prices)
    : bounds_(bounds), arcs_(sizes.size()), prices_(prices), reaches_(sizes.size(), 0.0), distances_(sizes.size() + 1),
      before_(sizes.size() + 1)
{
    prices_.push_back(0.0);
    first_prices_ = prices_;
    std::int64_t all = 0, sent = 0;
    for (std::size_t j = 0; j < sizes.size(); ++j) {
        // A cluster that costs sends all that it may have, one that is paid for sends no more than it must.
        const std::int64_t out = prices[j] > 0.0   ? bounds.most
                                 : prices[j] < 0.0 ? bounds.least
                                                   : std::clamp(sizes[j], bounds.least, bounds.most);
        sent_.push_back(out);
        surplus_.push_back(sizes[j] - out);
        all += sizes[j];
        sent += out;
    }
    surplus_.push_back(sent - all);
    for (const std::int64_t surplus : surplus_)
        excess_ += std::max<std::int64_t>(surplus, 0);
}

std::vector<double> Network::prices() const
{
    std::vector<double> prices(prices_.begin(), prices_.end() - 1);
    for (double &price : prices)
        price -= prices_.back();
    return prices;
}

// Moves that cost just as much are not among them.
Move Network::known_at_first(std::int32_t from, std::int32_t to) const
{
    return {reaches_[at(from)] + first_prices_[at(from)] - first_prices_[at(to)], -1};
}

Network::Arc &Network::arc(std::int32_t from, std::int32_t to)
{
    std::vector<Arc> &arcs = arcs_[at(from)];
    auto arc = std::lower_bound(arcs.begin(), arcs.end(), to, [](const Arc &a, std::int32_t b) { return a.to < b; });
    if (arc == arcs.end() || arc->to != to)
        arc = arcs.insert(arc, Arc{to, known_at_first(from, to), {}});
    return *arc;
}

void Network::add(std::int32_t from, std::int32_t to, const Move &move)
{
    std::vector<Move> &moves = arc(from, to).moves;
    moves.push_back(move);
    std::push_heap(moves.begin(), moves.end(), later);
}

void Network::settle(RowCosts &rows)
{
    rows_ = &rows;
    while (excess_ > 0) {
        find_path();
        raise_prices();
        follow_path();
    }
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

// The cost of a step, or what it is at least.
Network::Reached Network::step(std::int32_t from, Arc &arc) const
{
    const Move *move = cheapest(from, arc);
    return {reduced(move == nullptr ? arc.known.cost : move->cost, from, arc.to), arc.to, from, move != nullptr};
}

// Calls body(step) for each step from a node, with its reduced cost, that may be of use: wanted(node, cost) says so of
// what it costs at least, and of any node where that is nowhere.
template <typename Wanted, typename Body>
void Network::for_steps(std::int32_t from, Wanted &&wanted, Body &&body)
{
    if (from == outside()) {
        for (std::int32_t j = 0; j < outside(); ++j)
            if (sent_[at(j)] > bounds_.least)
                body(Reached{reduced(0.0, from, j), j, from, true});
        return;
    }
    if (sent_[at(from)] < bounds_.most)
        body(Reached{reduced(0.0, from, outside()), outside(), from, true});
    const auto look_at = [&](Arc &arc) {
        const double least = arc.moves.empty() ? arc.known.cost : arc.moves.front().cost;
        if (wanted(arc.to, reduced(least, from, arc.to)))
            body(step(from, arc));
    };
    // Where prices of other clusters have not risen, the cheapest of the pairs without an arc.
    const double rise = prices_[at(from)] - first_prices_[at(from)];
    if (!wanted(nowhere, std::max(0.0, reaches_[at(from)] - rise))) {
        for (Arc &arc : arcs_[at(from)])
            look_at(arc);
        return;
    }
    auto arc = arcs_[at(from)].begin();
    for (std::int32_t j = 0; j < outside(); ++j)
        if (arc != arcs_[at(from)].end() && arc->to == j) {
            look_at(*arc++);
        } else if (j != from) {
            const double least = reduced(known_at_first(from, j).cost, from, j);
            if (wanted(j, least))
                body(Reached{least, j, from, false});
        }
}

// Makes more moves of a pair known: the cheapest of all that there are now. What was known at first came of sums that
// were rounded, so that moves of just that cost may not be among them.
void Network::ask_for_moves(std::int32_t from, Arc &arc)
{
    std::vector<Move> moves = rows_->moves(from, arc.to);
    arc.asked = std::max(least_asked + moves.size() / asked_share, 2 * arc.asked);
    if (arc.asked < moves.size()) {
        const auto end = moves.begin() + static_cast<std::ptrdiff_t>(arc.asked);
        std::nth_element(moves.begin(), end - 1, moves.end());
        arc.known = *(end - 1);
        moves.erase(end, moves.end());
    } else {
        arc.known = {infinity, -1};
    }
    std::make_heap(moves.begin(), moves.end(), later);
    arc.moves = std::move(moves);
}

// Dijkstra's search from all nodes with too many rows to the nearest with too few. A step whose cost is not known is
// looked at when it comes up.
void Network::find_path()
{
    std::priority_queue<Reached, std::vector<Reached>, std::greater<>> open;
    std::fill(distances_.begin(), distances_.end(), infinity);
    std::fill(before_.begin(), before_.end(), nowhere);
    settled_.clear();
    double shortest = infinity; // of the paths to nodes with too few
    // distances_ are those that are known.
    const auto is_nearer = [&](std::int32_t node, double distance) {
        return distance < shortest && (node == nowhere || distance < distances_[at(node)]);
    };
    const auto reach = [&](double so_far, Reached step) {
        step.distance += so_far;
        if (!is_nearer(step.node, step.distance))
            return;
        if (step.known) {
            distances_[at(step.node)] = step.distance;
            before_[at(step.node)] = step.from;
            if (surplus_[at(step.node)] < 0)
                shortest = step.distance;
        }
        open.push(step);
    };
    for (std::int32_t v = 0; v <= outside(); ++v)
        if (surplus_[at(v)] > 0)
            reach(0.0, {0.0, v, nowhere, true});
    for (;;) {
        if (open.empty())
            throw Error(PGKM_INTERNAL, "rows that are too many have no place to go");
        const Reached next = open.top();
        open.pop();
        if (next.known ? next.distance > distances_[at(next.node)] || next.from != before_[at(next.node)]
                       : next.distance >= distances_[at(next.node)])
            continue;
        if (!next.known) {
            Arc &pair = arc(next.from, next.node);
            ask_for_moves(next.from, pair);
            reach(distances_[at(next.from)], step(next.from, pair));
            continue;
        }
        settled_.push_back(next.node);
        rows_->poll();
        if (surplus_[at(next.node)] < 0)
            return;
        for_steps(
            next.node, [&](std::int32_t node, double cost) { return is_nearer(node, next.distance + cost); },
            [&](const Reached &step) { reach(next.distance, step); });
    }
}

// By what they are nearer to the beginning than the path's end, so that no step costs less than nothing, and those of
// the path nothing.
void Network::raise_prices()
{
    const double length = distances_[at(settled_.back())];
    for (const std::int32_t v : settled_)
        prices_[at(v)] += length - distances_[at(v)];
}

// As often as it costs nothing: rows that are equal follow one another.
void Network::follow_path()
{
    path_.clear();
    for (std::int32_t v = settled_.back(); v != nowhere; v = before_[at(v)])
        path_.push_back(v);
    const std::int32_t first = path_.back(), last = path_.front();
    do {
        for (std::size_t i = 0; i + 1 < path_.size(); ++i) // from its end: a row takes one step
            take_step(path_[i + 1], path_[i]);
        surplus_[at(first)] -= 1;
        surplus_[at(last)] += 1;
        excess_ -= 1;
    } while (surplus_[at(first)] > 0 && surplus_[at(last)] < 0 && path_is_free());
}

bool Network::path_is_free()
{
    for (std::size_t i = 0; i + 1 < path_.size(); ++i) {
        const std::int32_t from = path_[i + 1], to = path_[i];
        double cost = 0.0;
        if (from == outside() || to == outside()) {
            if (from == outside() ? sent_[at(to)] <= bounds_.least : sent_[at(from)] >= bounds_.most)
                return false;
        } else {
            const Move *move = cheapest(from, arc(from, to));
            if (move == nullptr)
                return false;
            cost = move->cost;
        }
        if (reduced(cost, from, to) > 0.0)
            return false;
    }
    return true;
}

void Network::take_step(std::int32_t from, std::int32_t to)
{
    if (from == outside()) {
        sent_[at(to)] -= 1;
        return;
    }
    if (to == outside()) {
        sent_[at(from)] += 1;
        return;
    }
    const std::int64_t place = cheapest(from, arc(from, to))->place;
    const std::vector<double> &costs = rows_->move(place, to);
    // What it can do from there, as far as such moves are known.
    auto next = arcs_[at(to)].begin();
    for (std::int32_t j = 0; j < outside(); ++j) {
        const bool listed = next != arcs_[at(to)].end() && next->to == j;
        const Move move = {costs[at(j)] - costs[at(to)], place};
        const Move known = listed ? next->known : known_at_first(to, j);
        if (j != to && !(known < move)) {
            if (!listed)
                next = arcs_[at(to)].insert(next, Arc{j, known, {}});
            next->moves.push_back(move);
            std::push_heap(next->moves.begin(), next->moves.end(), later);
            ++next;
        } else if (listed) {
            ++next;
        }
    }
}

} // namespace pgkm
