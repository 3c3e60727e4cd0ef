// balancer.cpp - prices for a sample of the rows, then for all.
#include "cpu/sizes/balancer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "backend/size_units.hpp"
#include "cpu/sizes/packer.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {
namespace {

// A sample has at least so many rows, and so many of each cluster.
constexpr std::int64_t least_sample = 1024;
constexpr std::int64_t sample_of_cluster = 4;
constexpr std::int64_t rows_per_poll = 1 << 16;
constexpr std::int32_t nowhere = -1; // the label of what has gone, and its place
// A price is 0 beside one that is larger by this.
constexpr double negligible = 1e-9;

} // namespace

template <typename T>
Balancer<T>::Balancer(const Rows<T> &rows, const RowNumber *order, const PgkmSizeBounds *bounds, int size_exponent)
    : rows_(rows, order), bounds_(bounds, bounds + rows.k), size_exponent_(size_exponent), prices_(at(rows.k), 0.0),
      labels_(rows_.budget(), at(rows.n)), squares_(rows_.budget(), at(rows.n)), room_(rows_.budget(), at(rows.n)),
      floors_(rows_.budget(), at(rows.k) * at(rows.k)), costs_(at(rows.k))
{
    if (rows.weights != nullptr)
        weigh(rows, order);
}

// Of rows with the same values the heavier ones come first. So places depend on contents alone. Amounts are
// multiples of the largest unit that divides all weights, and bounds are such multiples that a sum can have.
template <typename T>
void Balancer<T>::weigh(const Rows<T> &rows, const RowNumber *order)
{
    order_ = Buffer<RowNumber>(rows_.budget(), at(rows.n));
    amounts_ = Buffer<std::int64_t>(rows_.budget(), at(rows.n));
    std::copy_n(order, rows.n, order_.data());
    for (RowNumber *first = order_.begin(), *last = first; first != order_.end(); first = last) {
        if ((first - order_.begin()) % rows_per_poll == 0)
            poll();
        while (last != order_.end() && compare_content(rows.row(*first), rows.row(*last), rows.d) == 0)
            ++last;
        std::sort(first, last, [&](RowNumber a, RowNumber b) { return rows.weights[a] > rows.weights[b]; });
    }
    for (std::int64_t i = 0; i < rows.n; ++i) {
        amounts_[at(i)] = size_units(rows.weights[order_[at(i)]], size_exponent_);
        unit_ = std::gcd(unit_, amounts_[at(i)]);
    }
    for (std::int64_t &amount : amounts_)
        amount /= unit_;
    for (PgkmSizeBounds &bounds : bounds_)
        bounds = {(bounds.least - 1) / unit_ + 1, bounds.most / unit_};
    const std::int64_t total = amount_of(rows.n);
    Int128 least = 0, most = 0;
    for (const PgkmSizeBounds &bounds : bounds_) {
        least += bounds.least <= bounds.most ? bounds.least : Int128{total} + 1;
        most += bounds.most;
    }
    if (least > total || most < total)
        throw Error(PGKM_INVALID, "weights are multiples of " +
                                      weight_text(static_cast<double>(unit_), size_exponent_) +
                                      ": no sums of them keep within the bounds");
    rows_.set_order(order_.data());
}

template <typename T>
void Balancer<T>::assign(const T *centroids, std::int32_t *labels)
{
    rows_.set_centroids(centroids);
    find_prices(rows_.n());
    if (amounts_.size() > 0)
        settle_whole_rows();
    rows_.put_by_row(labels_.data(), labels);
}

// No row is divided any more: it belongs wholly where most of it was. Whether some rows were divided.
template <typename T>
bool Balancer<T>::put_together()
{
    bool were_divided = false;
    for (const auto &[row, parts] : divided_) {
        std::int64_t largest = row, whole = amounts_[at(row)];
        for (const std::int64_t part : parts) {
            were_divided = were_divided || (amounts_[at(part)] > 0 && whole > 0);
            whole += amounts_[at(part)];
            if (amounts_[at(part)] > amounts_[at(largest)])
                largest = part;
        }
        labels_[at(row)] = label(largest);
        amounts_[at(row)] = whole;
    }
    divided_.clear();
    parts_.clear();
    return were_divided;
}

// The last assignment stays where this one is no better, or does not keep the bounds. So the inertia falls.
template <typename T>
void Balancer<T>::settle_whole_rows()
{
    const bool is_first = kept_.size() == 0;
    if (is_first)
        kept_ = Buffer<std::int32_t>(rows_.budget(), at(rows_.n()));
    if (put_together()) {
        Packer<T> packer(rows_, bounds_.data(), amounts_.data());
        const std::int64_t missed = packer.pack(labels_.data());
        if (missed > 0 && is_first)
            throw Error(PGKM_INVALID,
                        "no clusters of whole rows were found that keep within the bounds of their weights: "
                        "the best ones miss them by " +
                            weight_text(static_cast<double>(missed) * static_cast<double>(unit_), size_exponent_) +
                            " in all");
        if (!is_first && (missed > 0 || packer.cost(kept_.data()) <= packer.cost(labels_.data()))) {
            packer.improve(kept_.data());
            std::copy_n(kept_.data(), rows_.n(), labels_.data());
        }
    }
    std::copy_n(labels_.data(), rows_.n(), kept_.data());
}

template <typename T>
std::int64_t Balancer<T>::amount_of(std::int64_t count) const
{
    return amounts_.size() == 0 ? count : std::accumulate(amounts_.begin(), amounts_.begin() + count, std::int64_t{0});
}

// For the first `count` places.
template <typename T>
std::vector<PgkmSizeBounds> Balancer<T>::bounds_of(std::int64_t count) const
{
    const std::int64_t counted = amount_of(count), n = amount_of(rows_.n());
    const auto part = [&](std::int64_t rows) { return Int128{rows} * counted; };
    std::vector<PgkmSizeBounds> bounds = bounds_;
    for (PgkmSizeBounds &of_cluster : bounds)
        of_cluster = {static_cast<std::int64_t>(part(of_cluster.least) / n),
                      static_cast<std::int64_t>((part(of_cluster.most) + n - 1) / n)};
    return bounds;
}

// A price that is only what rounding left of 0 would have its cluster filled up, or emptied, at no gain.
template <typename T>
void Balancer<T>::forget_small_prices()
{
    double largest = 0.0;
    for (const double price : prices_)
        largest = std::max(largest, std::fabs(price));
    for (double &price : prices_)
        if (std::fabs(price) <= largest * negligible)
            price = 0.0;
}

template <typename T>
Network Balancer<T>::begin(std::int64_t count)
{
    forget_small_prices();
    rows_.assign(count, prices_, labels_.data(), squares_.data());
    members_.assign(prices_.size(), {});
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % rows_per_poll == 0)
            poll();
        members_[at(labels_[at(i)])].push_back(i);
    }
    std::vector<std::int64_t> sizes(members_.size(), 0);
    for (std::int64_t i = 0; i < count; ++i)
        sizes[at(label(i))] += amount(i);
    return Network(bounds_of(count), sizes, prices_, floors_.data(), path_kernels(rows_.instruction_set()));
}

// Brings prices_ and the labels of the first `count` places to their optimum.
template <typename T>
void Balancer<T>::find_prices(std::int64_t count)
{
    Network network = begin(count);
    const std::int64_t sample = count / 4;
    // Under the prices of a sample sizes are off by about so much anyway.
    const double expected = std::sqrt(static_cast<double>(count) * rows_.k());
    const double excess =
        static_cast<double>(network.excess()) * (static_cast<double>(count) / static_cast<double>(amount_of(count)));
    if (excess > expected && sample >= std::max(least_sample, sample_of_cluster * rows_.k())) {
        find_prices(sample);
        put_together();
        network = begin(count);
    }
    if (network.excess() == 0)
        return;
    rows_.find_floors(members_, squares_.data(), floors_.data());
    network.settle(*this);
    prices_ = network.prices();
    rows_.budget().give_back(std::exchange(held_, 0));
}

// --- what the network asks ---

template <typename T>
std::vector<Move> Balancer<T>::moves(std::int32_t from, std::int32_t to)
{
    std::vector<std::int64_t> &members = members_[at(from)];
    std::erase_if(members, [&](std::int64_t place) { return label(place) != from; });
    if (members.size() > room_.size()) { // some came more than once
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
    }
    rows_.distances_to(to, members, room_.data());
    std::vector<Move> moves(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
        moves[i] = {room_[i] - squares_[at(members[i])], members[i]};
    return moves;
}

// Parts of a row that meet are one again, so that they do not become ever smaller.
template <typename T>
std::int64_t Balancer<T>::move(std::int64_t place, std::int32_t to, std::int64_t amount)
{
    if (amounts_.size() > 0) {
        const std::int64_t row = row_of(place), there = part_in(row, to);
        if (there < 0 && amount < amounts_[at(place)]) {
            const std::int64_t part = new_part(row);
            amounts_[at(place)] -= amount;
            amounts_[at(part)] = amount;
            place = part;
        } else if (there >= 0) {
            amounts_[at(there)] += amount;
            amounts_[at(place)] -= amount;
            if (amounts_[at(place)] == 0)
                labels_[at(place)] = nowhere;
            return nowhere;
        }
    }
    rows_.distances_of(place, costs_.data());
    labels_[at(place)] = to;
    squares_[at(place)] = costs_[at(to)];
    members_[at(to)].push_back(place);
    return place;
}

template <typename T>
std::int64_t Balancer<T>::row_of(std::int64_t place) const
{
    return place < rows_.n() ? place : parts_[at(place - rows_.n())];
}

// The place of the part of a row that is in a cluster; below 0: none.
template <typename T>
std::int64_t Balancer<T>::part_in(std::int64_t row, std::int32_t cluster) const
{
    if (label(row) == cluster)
        return row;
    const auto parts = divided_.find(row);
    if (parts != divided_.end())
        for (const std::int64_t part : parts->second)
            if (label(part) == cluster)
                return part;
    return nowhere;
}

// A place for one: where none of the row is any more, or behind all others.
template <typename T>
std::int64_t Balancer<T>::new_part(std::int64_t row)
{
    if (const std::int64_t part = part_in(row, nowhere); part != nowhere)
        return part;
    const std::int64_t part = rows_.n() + std::ssize(parts_);
    if (at(part) >= amounts_.size()) {
        const auto enlarge = [&](auto &values) {
            auto larger = std::remove_reference_t<decltype(values)>(rows_.budget(), at(part + part / 8 + 64));
            std::copy(values.begin(), values.end(), larger.begin());
            values = std::move(larger);
        };
        enlarge(order_);
        enlarge(amounts_);
        enlarge(labels_);
        enlarge(squares_);
        enlarge(room_);
        rows_.set_order(order_.data());
    }
    constexpr std::int64_t bytes_per_part = 128;
    hold(bytes_per_part);
    parts_.push_back(row);
    divided_[row].push_back(part);
    order_[at(part)] = order_[at(row)];
    return part;
}

template <typename T>
void Balancer<T>::hold(std::int64_t bytes)
{
    if (bytes > 0)
        rows_.budget().take(static_cast<std::uint64_t>(bytes));
    else
        rows_.budget().give_back(static_cast<std::uint64_t>(-bytes));
    held_ += static_cast<std::uint64_t>(bytes);
}

template class Balancer<float>;
template class Balancer<double>;

} // namespace pgkm::cpu
