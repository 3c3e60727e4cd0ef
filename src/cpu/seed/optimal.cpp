// optimal.cpp - values that differ, in order; then the best way to cut them into k ranges.
//
// The clusters of an optimum are ranges of the sorted values. The least sum of squares of the first i values in l
// clusters is
//     D(l, i) = min over j of D(l - 1, j) + cost(j, i),
// with cost(j, i) that of values j to i - 1 as one cluster (Wang, Song 2011). The best j never falls as i grows. So a
// layer is found for every second i, then for those between, and takes O(n log n) (Grønlund et al. 2017). A layer knows
// of each i where cluster k / 2 begins on its way. With that both halves are cut anew, so that there is no table of
// n x k.
//
// All that is compared is an integer. A value v has 52 bits of the range of the values, and w is its mass, of which all
// have less than 2^63 (those of rows without weights are counts). Sums of w, w v and w v^2 are exact. A cost is
//     sum of w (v - q)^2 = sum of w v^2 - q (2 sum of w v - q sum of w),
// q the integer next to the mean. That is exact, too, and so nothing cancels. It does not change where values are
// shifted or reflected, which keeps equal costs equal. It is less than W / 4 above the sum about the mean itself, W the
// mass of all values. Up to 41 bits are cut off so that D fits 126 bits, which is less than W. The search for j passes
// by what is better by such an error, once for each of 32 halvings. So what is found is above the optimum by less than
// 64 k W, where the squared range is 2^104.
//
// Of several best j the least is taken.
#include "cpu/seed/optimal.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "backend/update.hpp"

namespace pgkm::cpu {
namespace {

constexpr int range_bits = 52;
constexpr std::int64_t steps_per_poll = 1 << 16;
constexpr std::int64_t steps_per_block = 1 << 12;

// Equal values with what they add to sums of a cluster.
struct Cell {
    double value;
    Int128 mass, total;
};

template <typename T>
Buffer<Cell> cells_of(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                      const SeedRows<T> &rows, const Buffer<RowNumber> &order)
{
    const auto is_new = [&](std::int64_t i) { return i == 0 || *rows.row(order[i]) != *rows.row(order[i - 1]); };
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (i % steps_per_poll == 0)
            runner.poll();
        count += is_new(i) ? 1 : 0;
    }
    Buffer<Cell> cells(runner.budget(), count);
    Cell *cell = cells.data() - 1;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (i % steps_per_poll == 0)
            runner.poll();
        if (is_new(i))
            *++cell = {static_cast<double>(*rows.row(order[i])), 0, 0};
        const std::int64_t row = problem.first_row + order[i];
        const auto copies = static_cast<Int128>(rows.copies(order[i]));
        cell->mass += copies * row_mass(points, problem, row);
        cell->total += copies * row_feature<T>(points, problem, row, 0);
    }
    std::int64_t steps = 0;
    std::sort(cells.begin(), cells.end(), [&](const Cell &a, const Cell &b) {
        if (++steps % steps_per_poll == 0)
            runner.poll();
        return a.value < b.value;
    });
    return cells;
}

// Cells are numbered by value.
class Cutter {
  public:
    Cutter(const BlockRunner &runner, const Buffer<Cell> &cells)
        : runner_(runner), sums_(runner.budget(), cells.size() + 1), costs_(runner.budget(), cells.size() + 1),
          next_costs_(runner.budget(), cells.size() + 1), best_(runner.budget(), cells.size() + 1),
          middles_(runner.budget(), cells.size() + 1), next_middles_(runner.budget(), cells.size() + 1)
    {
        Int128 mass = 0;
        for (const Cell &cell : cells)
            mass += cell.mass;
        const int mass_bits_lost = mass_shift(static_cast<UInt128>(mass));
        const double least = cells[0].value;
        const int exponent = range_bits - upper_exponent(cells[cells.size() - 1].value - least);
        sums_[0] = {};
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const auto weight = static_cast<std::uint64_t>(std::max<Int128>(cells[i].mass >> mass_bits_lost, 1));
            const auto value = static_cast<std::uint64_t>(::rint(scale_by(cells[i].value - least, exponent)));
            const UInt128 square = UInt128{value} * value;
            const Prefix &before = sums_[i];
            sums_[i + 1] = {before.sum + UInt128{weight} * value, before.high + weight * (square >> range_bits),
                            before.low + weight * (square & range_mask), before.weight + weight};
        }
        shift_ = std::max(0, 64 - std::countl_zero(sums_[cells.size()].weight) + 2 * range_bits - 126);
    }

    // Where clusters begin, but for the first, when cells [begin, end) are cut into k.
    void cut(std::int64_t begin, std::int64_t end, std::int64_t k, std::vector<std::int64_t> &starts)
    {
        if (end - begin == k) {
            for (std::int64_t i = begin + 1; i < end; ++i)
                starts.push_back(i);
            return;
        }
        if (k == 1)
            return;
        costs_[begin] = 0;
        for (std::int64_t layer = 1; layer <= k; ++layer)
            find_layer(begin, end, layer, k);
        const std::int64_t middle = middles_[end];
        cut(begin, middle, k / 2, starts);
        starts.push_back(middle);
        cut(middle, end, k - k / 2, starts);
    }

  private:
    static constexpr std::uint64_t range_mask = (std::uint64_t{1} << range_bits) - 1;

    // Sums over the cells before one: of w v, of w v^2 in two limbs, of w.
    struct Prefix {
        UInt128 sum, high, low;
        std::uint64_t weight;
    };

    UInt128 cost(std::int64_t first, std::int64_t last) const
    {
        const Prefix &a = sums_[first], &b = sums_[last];
        const std::uint64_t weight = b.weight - a.weight;
        const UInt128 sum = b.sum - a.sum;
        const UInt128 mean = (sum + weight / 2) / weight;
        const UInt128 rest = 2 * sum - mean * weight;
        const auto low = static_cast<Int128>(b.low - a.low - mean * (rest & range_mask));
        const auto high = static_cast<Int128>(b.high - a.high - mean * (rest >> range_bits)) + (low >> range_bits);
        return (static_cast<UInt128>(high) << (range_bits - shift_)) +
               ((static_cast<UInt128>(low) & range_mask) >> shift_);
    }

    // The costs of the first `layer` of k clusters, which end at each i where the others have room behind.
    void find_layer(std::int64_t begin, std::int64_t end, std::int64_t layer, std::int64_t k)
    {
        const std::int64_t first = layer == k ? end : begin + layer, last = end - (k - layer);
        const std::int64_t count = last - first + 1;
        const auto cell = [&](std::int64_t place) { return first + place - 1; }; // places are numbered from 1
        for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count))); step > 0;
             step /= 2) {
            const std::int64_t places = (count / step + 1) / 2;
            const std::int64_t per_block = std::max<std::int64_t>(1, steps_per_block / step);
            runner_.run((places - 1) / per_block + 1, [&](std::int64_t block) {
                const std::int64_t stop = std::min(places, (block + 1) * per_block);
                for (std::int64_t p = block * per_block; p < stop; ++p) {
                    const std::int64_t place = (2 * p + 1) * step, i = cell(place);
                    const std::int64_t low = place == step ? begin + layer - 1 : best_[cell(place - step)];
                    const std::int64_t high = place + step > count ? i - 1 : best_[cell(place + step)];
                    find_best(i, low, layer == 1 ? begin : std::min(high, i - 1));
                    next_middles_[i] = layer <= k / 2 ? static_cast<RowNumber>(i) : middles_[best_[i]];
                }
            });
        }
        std::swap(costs_, next_costs_);
        std::swap(middles_, next_middles_);
    }

    // Costs before j fall with it, and those from j on rise.
    void find_best(std::int64_t i, std::int64_t low, std::int64_t high)
    {
        UInt128 least = ~UInt128{0};
        for (std::int64_t j = high; j >= low; --j) {
            if (j % steps_per_poll == 0)
                runner_.poll();
            if (costs_[j] > least)
                continue;
            const UInt128 own = cost(j, i);
            if (own > least)
                break;
            if (costs_[j] + own <= least) {
                least = costs_[j] + own;
                best_[i] = static_cast<RowNumber>(j);
            }
        }
        next_costs_[i] = least;
    }

    const BlockRunner &runner_;
    Buffer<Prefix> sums_; // of all below: one more than cells
    int shift_;           // bits that are cut off
    Buffer<UInt128> costs_, next_costs_;
    Buffer<RowNumber> best_;                   // where the last cluster begins
    Buffer<RowNumber> middles_, next_middles_; // where cluster k / 2 ends
};

} // namespace

template <typename T>
void seed_optimum(const BlockRunner &runner, const PgkmPoints &points, PgkmProblem &problem, const SeedRows<T> &rows,
                  const Buffer<RowNumber> &order)
{
    if (rows.d != 1)
        throw Error(PGKM_UNSUPPORTED, "only one feature has an optimum that can be found");
    const Buffer<Cell> cells = cells_of(runner, points, problem, rows, order);
    problem.k = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, static_cast<std::int64_t>(cells.size())));
    std::vector<std::int64_t> ends;
    Cutter(runner, cells).cut(0, static_cast<std::int64_t>(cells.size()), problem.k, ends);
    ends.push_back(static_cast<std::int64_t>(cells.size()));
    T *centroid = static_cast<T *>(problem.centroids);
    std::int64_t i = 0;
    for (const std::int64_t end : ends) {
        Int128 mass = 0, total = 0;
        for (; i < end; ++i) {
            mass += cells[i].mass;
            total += cells[i].total;
        }
        if (!new_centroid(problem, 1, PGKM_L2, &total, mass, centroid)) // too light
            *centroid = static_cast<T>(cells[end - 1].value);
        ++centroid;
    }
    runner.report(ends.size());
}

template void seed_optimum<float>(const BlockRunner &, const PgkmPoints &, PgkmProblem &, const SeedRows<float> &,
                                  const Buffer<RowNumber> &);
template void seed_optimum<double>(const BlockRunner &, const PgkmPoints &, PgkmProblem &, const SeedRows<double> &,
                                   const Buffer<RowNumber> &);

} // namespace pgkm::cpu
