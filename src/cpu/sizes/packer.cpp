// packer.cpp - steps of one or two rows between two clusters, the cheapest one by a window that slides over amounts.
#include "cpu/sizes/packer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t most_amount = std::int64_t{1} << 61;
// Rows times clusters, up to which steps are looked for that only make it cheaper, and by what part of the cost at
// least.
constexpr std::int64_t most_improved = 1 << 20;
constexpr double negligible = 1e-12;
constexpr double infinity = std::numeric_limits<double>::infinity();
// Of a row, at most: its place among the members, two numbers, a place in both lists.
constexpr std::uint64_t bytes_per_row = 96;

std::int64_t beyond(std::int64_t value, std::int64_t least, std::int64_t most)
{
    return std::max<std::int64_t>({0, least - value, value - most});
}

} // namespace

template <typename T>
Packer<T>::Packer(PricedRows<T> &rows, const PgkmSizeBounds *bounds, const std::int64_t *amounts)
    : rows_(rows), bounds_(bounds), amounts_(amounts),
      reservation_(rows.budget(), static_cast<std::uint64_t>(rows.n()) * bytes_per_row), squares_(at(rows.n())),
      room_(at(rows.n()))
{
}

template <typename T>
void Packer<T>::begin(const std::int32_t *labels)
{
    members_.assign(at(rows_.k()), {});
    loads_.assign(at(rows_.k()), 0);
    for (std::int64_t i = 0; i < rows_.n(); ++i) {
        members_[at(labels[i])].push_back(i);
        loads_[at(labels[i])] += amounts_[i];
    }
    for (std::int32_t j = 0; j < rows_.k(); ++j) {
        const std::vector<std::int64_t> &places = members_[at(j)];
        rows_.distances_to(j, places, room_.data());
        for (std::size_t i = 0; i < places.size(); ++i)
            squares_[at(places[i])] = room_[i];
    }
    cost_ = 0.0;
    for (std::int64_t i = 0; i < rows_.n(); ++i)
        cost_ += static_cast<double>(amounts_[i]) * squares_[at(i)];
}

template <typename T>
double Packer<T>::cost(const std::int32_t *labels)
{
    begin(labels);
    return cost_;
}

// Without regard to distances: the heaviest rows first, each where it has most room, or where least is left.
template <typename T>
void Packer<T>::deal_out(bool evenly, std::int32_t *labels)
{
    std::vector<std::int64_t> places(at(rows_.n())), room;
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(),
                     [&](std::int64_t a, std::int64_t b) { return amounts_[a] > amounts_[b]; });
    for (std::int32_t j = 0; j < rows_.k(); ++j)
        room.push_back(bounds_[j].most);
    for (const std::int64_t place : places) {
        rows_.poll();
        std::size_t best = 0;
        for (std::size_t j = 1; j < room.size(); ++j) {
            const bool fits = room[j] >= amounts_[place], fitted = room[best] >= amounts_[place];
            if (fits != fitted ? fits : evenly || !fits ? room[j] > room[best] : room[j] < room[best])
                best = j;
        }
        room[best] -= amounts_[place];
        labels[place] = static_cast<std::int32_t>(best);
    }
}

template <typename T>
std::int64_t Packer<T>::missed(std::int32_t cluster) const
{
    return beyond(loads_[at(cluster)], bounds_[cluster].least, bounds_[cluster].most);
}

// None and, where `any` may go, the rows of a cluster.
template <typename T>
void Packer<T>::list(std::int32_t from, std::int32_t to, bool any, std::vector<Row> &list)
{
    list.assign(1, {0, 0.0, -1});
    if (!any)
        return;
    const std::vector<std::int64_t> &places = members_[at(from)];
    rows_.distances_to(to, places, room_.data());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int64_t place = places[i];
        list.push_back(
            {amounts_[place], static_cast<double>(amounts_[place]) * (room_[i] - squares_[at(place)]), place});
    }
    std::sort(list.begin(), list.end(), [](const Row &a, const Row &b) {
        return std::tie(a.amount, a.cost, a.place) < std::tie(b.amount, b.cost, b.place);
    });
}

// What may go from one cluster to another so that both together miss their bounds by no more than that; false: nothing.
template <typename T>
bool Packer<T>::transfers(std::int32_t from, std::int32_t to, std::int64_t missed, std::int64_t *least,
                          std::int64_t *most) const
{
    const std::int64_t have = loads_[at(from)], there = loads_[at(to)];
    const PgkmSizeBounds &a = bounds_[from], &b = bounds_[to];
    const auto miss = [&](std::int64_t gone) {
        return beyond(have - gone, a.least, a.most) + beyond(there + gone, b.least, b.most);
    };
    const auto edge = [&](std::int64_t inside, std::int64_t outside) {
        while (std::abs(outside - inside) > 1) {
            const std::int64_t middle = inside + (outside - inside) / 2;
            (miss(middle) <= missed ? inside : outside) = middle;
        }
        return inside;
    };
    const std::int64_t best = std::max(have - a.most, b.least - there); // misses least: miss() is convex
    if (miss(best) > missed)
        return false;
    *least = edge(best, -most_amount);
    *most = edge(best, most_amount);
    return true;
}

// Of a row of out_ and one of in_ whose amounts differ by that.
template <typename T>
typename Packer<T>::Step Packer<T>::cheapest(std::int64_t least, std::int64_t most) const
{
    Step step;
    std::vector<std::size_t> window; // of in_, from `first` on: the cheapest, the cheapest behind it, ...
    std::size_t next = 0, first = 0;
    for (const Row &out : out_) {
        for (; next < in_.size() && in_[next].amount <= out.amount - least; ++next) {
            while (window.size() > first && in_[window.back()].cost > in_[next].cost)
                window.pop_back();
            window.push_back(next);
        }
        while (first < window.size() && in_[window[first]].amount < out.amount - most)
            ++first;
        if (first == window.size())
            continue;
        const Row &in = in_[window[first]];
        if (out.cost + in.cost < step.cost && std::max(out.place, in.place) >= 0)
            step = {out.cost + in.cost, out.place, in.place};
    }
    return step;
}

template <typename T>
void Packer<T>::put(std::int64_t place, std::int32_t from, std::int32_t to)
{
    if (place < 0)
        return;
    std::erase(members_[at(from)], place);
    members_[at(to)].push_back(place);
    rows_.distances_to(to, {place}, &squares_[at(place)]);
    loads_[at(from)] -= amounts_[place];
    loads_[at(to)] += amounts_[place];
}

template <typename T>
void Packer<T>::take(std::int32_t from, const Step &step)
{
    put(step.out, from, step.to);
    put(step.in, step.to, from);
}

// Returns by how much the bounds are missed at last. Rows change places only where no move alone mends it all.
template <typename T>
std::int64_t Packer<T>::mend()
{
    for (;;) {
        std::int32_t worst = 0;
        for (std::int32_t j = 1; j < rows_.k(); ++j)
            if (missed(j) > missed(worst))
                worst = j;
        const std::int64_t wrong = missed(worst);
        const bool is_over = loads_[at(worst)] > bounds_[worst].most;
        Step best;
        int mended = 62; // all for 0, a half for 1, a quarter for 2, ...
        for (const bool exchange : {false, true})
            for (std::int32_t to = 0; to < rows_.k() && (mended > 0 || !exchange); ++to) {
                std::int64_t least, most;
                if (to == worst || !transfers(worst, to, wrong + missed(to) - 1, &least, &most))
                    continue;
                list(worst, to, is_over || exchange, out_);
                list(to, worst, !is_over || exchange, in_);
                for (int part = 0; part <= mended && wrong >> part > 0; ++part) {
                    if (!transfers(worst, to, wrong + missed(to) - (wrong >> part), &least, &most))
                        continue;
                    Step step = cheapest(least, most);
                    if (step.cost == infinity)
                        continue;
                    step.to = to;
                    if (part < mended || step.cost < best.cost)
                        best = step;
                    mended = part;
                }
            }
        if (best.cost == infinity) { // also where nothing is wrong
            std::int64_t all = 0;
            for (std::int32_t j = 0; j < rows_.k(); ++j)
                all += missed(j);
            return all;
        }
        take(worst, best);
    }
}

// Steps that make it cheaper, where they are not too many to look for.
template <typename T>
void Packer<T>::take_all(std::int32_t *labels)
{
    for (bool again = rows_.n() <= most_improved / rows_.k(); again;) {
        again = false;
        for (std::int32_t from = 0; from < rows_.k(); ++from)
            for (std::int32_t to = from + 1; to < rows_.k(); ++to)
                for (;;) {
                    rows_.poll();
                    list(from, to, true, out_);
                    list(to, from, true, in_);
                    std::int64_t least, most;
                    transfers(from, to, 0, &least, &most);
                    Step step = cheapest(least, most);
                    step.to = to;
                    if (!(step.cost < -negligible * cost_))
                        break;
                    take(from, step);
                    again = true;
                }
    }
    for (std::int32_t j = 0; j < rows_.k(); ++j)
        for (const std::int64_t place : members_[at(j)])
            labels[place] = j;
}

template <typename T>
std::int64_t Packer<T>::pack(std::int32_t *labels)
{
    std::int64_t least = most_amount;
    for (int start = 0; start < 3 && least > 0; ++start) {
        if (start > 0)
            deal_out(start == 1, labels);
        begin(labels);
        least = std::min(least, mend());
    }
    if (least == 0)
        take_all(labels);
    return least;
}

template <typename T>
void Packer<T>::improve(std::int32_t *labels)
{
    begin(labels);
    take_all(labels);
}

template class Packer<float>;
template class Packer<double>;

} // namespace pgkm::cpu
