// balancer.cpp - prices for a sample of the rows, then for all.
#include "engine/sizes/balancer.hpp"

#include <algorithm>
#include <cmath>

#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// A sample has at least so many rows, and so many of each cluster.
constexpr std::int64_t least_sample = 1024;
constexpr std::int64_t sample_of_cluster = 4;
// Rows of a cluster whose moves are known at first: so many, one in so many, and so many for each that is too many.
constexpr std::int64_t first_of_cluster = 16;
constexpr std::int64_t first_share = 32;
constexpr std::int64_t first_per_surplus = 2;
constexpr std::int64_t rows_per_poll = 1 << 16;
// A price is 0 beside one that is larger by this.
constexpr double negligible = 1e-9;

} // namespace

template <typename T>
Balancer<T>::Balancer(const cpu::Rows<T> &rows, const SizeBounds &bounds)
    : rows_(rows), bounds_(bounds), prices_(at(rows.k), 0.0), labels_(rows_.budget(), at(rows.n)),
      squares_(rows_.budget(), at(rows.n)), slacks_(rows_.budget(), at(rows.n)), room_(rows_.budget(), at(rows.n)),
      costs_(at(rows.k))
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
SizeBounds Balancer<T>::bounds_of(std::int64_t count) const
{
    const auto part = [&](std::int64_t rows) { return Int128{rows} * count; };
    const std::int64_t n = rows_.n();
    return {static_cast<std::int64_t>(part(bounds_.least) / n),
            static_cast<std::int64_t>((part(bounds_.most) + n - 1) / n)};
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
    rows_.assign(count, prices_, labels_.data(), squares_.data(), slacks_.data());
    members_.assign(prices_.size(), {});
    for (std::int64_t i = 0; i < count; ++i) {
        if (i % rows_per_poll == 0)
            poll();
        members_[at(labels_[at(i)])].push_back(i);
    }
    std::vector<std::int64_t> sizes;
    for (const std::vector<std::int64_t> &members : members_)
        sizes.push_back(static_cast<std::int64_t>(members.size()));
    return Network(bounds_of(count), sizes, prices_);
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
    const cpu::Reservation reserved(rows_.budget(), add_moves(network) * 2 * sizeof(Move)); // vectors grow by half
    network.settle(*this);
    prices_ = network.prices();
}

// The moves that the network knows at first. Returns their number.
template <typename T>
std::size_t Balancer<T>::add_moves(Network &network)
{
    std::size_t count = 0;
    std::vector<std::int64_t> places;
    std::vector<double> reaches;
    for (std::size_t j = 0; j < prices_.size(); ++j) {
        reaches.push_back(choose_rows(network, j, places));
        network.set_reach(static_cast<std::int32_t>(j), reaches[j]);
    }
    const std::vector<std::vector<Offer>> offers =
        rows_.offers(places, prices_, labels_.data(), squares_.data(), reaches);
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (i % 1024 == 0)
            poll();
        count += offers[i].size();
        for (const Offer &offer : offers[i])
            network.add(label(places[i]), offer.cluster, {offer.cost, places[i]});
    }
    return count;
}

// Adds the rows of a cluster that would lose least elsewhere to places: those with less slack than is returned.
template <typename T>
double Balancer<T>::choose_rows(const Network &network, std::size_t cluster, std::vector<std::int64_t> &places)
{
    const std::vector<std::int64_t> &members = members_[cluster];
    const auto size = static_cast<std::int64_t>(members.size());
    const std::int64_t wanted =
        std::min(size, first_of_cluster + size / first_share +
                           first_per_surplus * std::max<std::int64_t>(0, network.surplus(cluster)));
    poll();
    if (size == 0)
        return 0.0;
    for (std::int64_t i = 0; i < size; ++i)
        room_[at(i)] = slacks_[at(members[at(i)])];
    std::nth_element(room_.data(), room_.data() + wanted - 1, room_.data() + size);
    const double reach = room_[at(wanted - 1)];
    for (const std::int64_t place : members)
        if (slacks_[at(place)] < reach)
            places.push_back(place);
    return reach;
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

template class Balancer<float>;
template class Balancer<double>;

} // namespace pgkm
