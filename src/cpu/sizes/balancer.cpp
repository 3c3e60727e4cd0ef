// balancer.cpp - prices for a sample of the rows, then for all.
#include "cpu/sizes/balancer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

// A sample has at least so many rows, and so many of each cluster.
constexpr std::int64_t least_sample = 1024;
constexpr std::int64_t sample_of_cluster = 4;
constexpr std::int64_t rows_per_poll = 1 << 16;
// A price is 0 beside one that is larger by this.
constexpr double negligible = 1e-9;

} // namespace

template <typename T>
Balancer<T>::Balancer(const Rows<T> &rows, const RowNumber *order, const PgkmSizeBounds *bounds)
    : rows_(rows, order), bounds_(bounds), prices_(at(rows.k), 0.0), labels_(rows_.budget(), at(rows.n)),
      squares_(rows_.budget(), at(rows.n)), room_(rows_.budget(), at(rows.n)),
      floors_(rows_.budget(), at(rows.k) * at(rows.k)), costs_(at(rows.k))
{
}

template <typename T>
void Balancer<T>::assign(const T *centroids, std::int32_t *labels)
{
    rows_.set_centroids(centroids);
    find_prices(rows_.n());
    rows_.put_by_row(labels_.data(), labels);
}

// For the first `count` places.
template <typename T>
std::vector<PgkmSizeBounds> Balancer<T>::bounds_of(std::int64_t count) const
{
    const auto part = [&](std::int64_t rows) { return Int128{rows} * count; };
    const std::int64_t n = rows_.n();
    std::vector<PgkmSizeBounds> bounds(bounds_, bounds_ + rows_.k());
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
    std::vector<std::int64_t> sizes;
    for (const std::vector<std::int64_t> &members : members_)
        sizes.push_back(static_cast<std::int64_t>(members.size()));
    return Network(bounds_of(count), sizes, prices_, floors_.data());
}

// Brings prices_ and the labels of the first `count` places to their optimum.
template <typename T>
void Balancer<T>::find_prices(std::int64_t count)
{
    Network network = begin(count);
    const std::int64_t sample = count / 4;
    // Under the prices of a sample sizes are off by about so much anyway.
    const double expected = std::sqrt(static_cast<double>(count) * rows_.k());
    if (static_cast<double>(network.excess()) > expected &&
        sample >= std::max(least_sample, sample_of_cluster * rows_.k())) {
        find_prices(sample);
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

template <typename T>
const std::vector<double> &Balancer<T>::move(std::int64_t place, std::int32_t to)
{
    rows_.distances_of(place, costs_.data());
    labels_[at(place)] = to;
    squares_[at(place)] = costs_[at(to)];
    members_[at(to)].push_back(place);
    return costs_;
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
