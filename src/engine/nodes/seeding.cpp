// seeding.cpp - rows in order, runs of equal rows, and their masses.
#include "engine/nodes/seeding.hpp"

#include <algorithm>

namespace pgkm::nodes {
namespace {

constexpr std::int64_t steps_per_poll = 1 << 14;

PgkmOpen without_strategies(PgkmOpen open)
{
    open.tuning = {}; // what is forced may be a strategy of a device
    return open;
}

} // namespace

template <typename T>
Seeding<T>::Seeding(const PgkmPoints &points, const PgkmOpen &open, std::int32_t bits, bool ordered)
    : context(without_strategies(open), open.threads),
      runner(context, true), rows{static_cast<const T *>(points.values), points.weights, points.n, points.d},
      order(ordered ? cpu::canonical_order(runner, rows) : cpu::Buffer<cpu::RowNumber>()),
      masses(runner, order, cpu::find_keys(runner, rows), bits),
      nearest(context.budget, static_cast<std::size_t>(points.n)), labels(context.budget, nearest.size())
{
}

template <typename T>
void Seeding<T>::begin()
{
    std::fill(nearest.begin(), nearest.end(), std::numeric_limits<double>::infinity());
    std::fill(labels.begin(), labels.end(), 0);
    forget_trials();
    chosen_rows.clear();
    chosen.clear();
}

template <typename T>
void Seeding<T>::weigh(Mass kind, std::int32_t exponent)
{
    mass = kind;
    scale = power_of_two(exponent);
    with_mass([&](auto mass_of) { masses.sum(mass_of); });
    masses.forget_changes();
}

// The run may be long, so steps are doubled.
template <typename T>
std::int64_t Seeding<T>::run_end(std::int64_t place, std::int64_t end) const
{
    const T *content = row_at(place);
    const auto same = [&](std::int64_t other) { return compare_content(content, row_at(other), rows.d) == 0; };
    std::int64_t step = 1;
    while (place + step < end && same(place + step))
        step *= 2;
    std::int64_t low = place + step / 2 + 1, high = std::min(place + step, end); // the end lies in [low, high]
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (same(middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

template <typename T>
UInt128 Seeding<T>::run_mass(std::int64_t place, std::int64_t end) const
{
    UInt128 sum = 0;
    with_mass([&](auto mass_of) {
        if (rows.weights == nullptr) { // they are equal in all
            sum = UInt128{mass_of(masses.row_at(place))} * static_cast<std::uint64_t>(end - place);
            return;
        }
        for (std::int64_t next = place; next < end; ++next) {
            if (next % steps_per_poll == 0)
                runner.poll();
            sum += mass_of(masses.row_at(next));
        }
    });
    return sum;
}

template <typename T>
void Seeding<T>::make_trials()
{
    if (trials != nullptr)
        return;
    const auto n_chosen = static_cast<std::int32_t>(chosen.size());
    if (std::any_of(labels.begin(), labels.end(), [&](std::int32_t label) { return label >= n_chosen; }))
        raise_shape(); // a request that was cancelled has left them
    auto made = std::make_unique<cpu::SeedTrials<T>>(runner, rows, nearest.data(), labels.data(),
                                                     cpu::max_seed_candidates, rows, 0.0);
    made->group(chosen_rows); // there are none if this fails
    trials = std::move(made);
}

template <typename T>
double Seeding<T>::largest() const
{
    if (trials != nullptr)
        return trials->largest();
    const std::int64_t blocks = (rows.n + cpu::max_seed_block - 1) / cpu::max_seed_block;
    cpu::Buffer<double> each(runner.budget(), static_cast<std::size_t>(blocks));
    runner.run(blocks, [&](std::int64_t block) {
        double most = 0.0;
        for (std::int64_t row = block * cpu::max_seed_block; row < std::min(rows.n, (block + 1) * cpu::max_seed_block);
             ++row)
            most = std::max(most, rows.weight(row) * nearest[static_cast<std::size_t>(row)]);
        each[static_cast<std::size_t>(block)] = most;
    });
    return *std::max_element(each.begin(), each.end());
}

template struct Seeding<float>;
template struct Seeding<double>;

} // namespace pgkm::nodes
