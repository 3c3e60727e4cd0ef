// trials.cpp - exact distances where a trial may win, and the potentials that follow.
#include "cpu/seed/trials.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cpu/kernels/bit_kernels.hpp"
#include "cpu/rows.hpp"
#include "numeric/bit_rows.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Pairs whose exact distances are taken at once.
constexpr int most_pairs = 128;
// Rows a group at least, on average: with fewer, candidates would be turned about parents more than compared.
constexpr std::size_t rows_per_group = 512;
// Groups are made anew whenever so many times as many rows are chosen.
constexpr std::size_t group_growth = 4, first_groups = 16;

int pairs_at_once(std::int32_t d)
{
    return static_cast<int>(std::clamp<std::int64_t>(work_per_poll / d, 8, most_pairs));
}

} // namespace

std::vector<int> contested_trials(const std::vector<GainBounds> &gains)
{
    double most_certain = 0.0;
    for (const GainBounds &gain : gains)
        most_certain = std::max(most_certain, gain.least);
    std::vector<int> contested;
    for (std::size_t trial = 0; trial < gains.size(); ++trial)
        if (gains[trial].most >= most_certain)
            contested.push_back(static_cast<int>(trial));
    return contested;
}

template <typename T>
void distances_to(const BlockRunner &runner, const SeedRows<T> &rows, const T *const *to, const std::int32_t *labels,
                  double *squares)
{
    [[maybe_unused]] const ExactKernels &kernels = exact_kernels(runner.instruction_set());
    [[maybe_unused]] const BitKernels &bits = bit_kernels(runner.instruction_set());
    const std::int64_t size = seed_block_rows(rows.d);
    runner.run((rows.n + size - 1) / size, [&](std::int64_t block) {
        const T *x[most_pairs], *c[most_pairs];
        const std::int64_t last = std::min(rows.n, (block + 1) * size);
        for (std::int64_t first = block * size; first < last; first += most_pairs) {
            const std::int64_t count = std::min<std::int64_t>(most_pairs, last - first);
            for (std::int64_t i = 0; i < count; ++i) {
                x[i] = rows.row(first + i);
                c[i] = to[labels == nullptr ? 0 : labels[first + i]];
            }
            if constexpr (std::is_same_v<T, BitWord>)
                for (std::int64_t i = 0; i < count; ++i)
                    squares[first + i] = bits.different(x[i], c[i], rows.d);
            else
                kernels.pairs(x, c, count, rows.d, squares + first);
        }
    });
}

template <typename T, typename Point>
struct SeedTrials<T, Point>::Worker {
    explicit Worker(const SeedTiles<Point> &tiles, int most) : view(tiles, most) {}

    typename SeedTiles<Point>::View view;
    int count = 0;
    const T *x[most_pairs], *c[most_pairs];
    std::int64_t row[most_pairs];
    Hit hit[most_pairs];
    double squares[most_pairs];
};

template <typename T, typename Point>
SeedTrials<T, Point>::SeedTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest,
                                 std::int32_t *labels, int most, const SeedRows<Point> &points, double error)
    : runner_(runner), rows_(rows), nearest_(nearest), labels_(labels), most_(most), points_(points),
      is_projected_(static_cast<const void *>(points.values) != rows.values), square_bounds_(rows.d),
      tiles_(runner, points, rows.d, error), workers_(runner.workers())
{
}

template <typename T, typename Point>
SeedTrials<T, Point>::~SeedTrials() = default;

template <typename T, typename Point>
typename SeedTrials<T, Point>::Worker &SeedTrials<T, Point>::worker(int number)
{
    auto &made = workers_[number];
    if (!made)
        made = std::make_unique<Worker>(tiles_, most_);
    return *made;
}

template <typename T, typename Point>
void SeedTrials<T, Point>::group(const std::vector<const T *> &chosen)
{
    const std::size_t groups = chosen.size();
    next_group_ = std::max(first_groups, groups * group_growth);
    const auto n = static_cast<std::size_t>(rows_.n);
    hits_ = Buffer<Hit>(); // those of the groups before: the next ones need room beside the rows
    std::vector<const Point *> parents = points_of(chosen);
    if (groups > 1 && groups * rows_per_group > n) // too many: one, whose parent is nearest to few of its rows
        parents.resize(1);
    if (parents.size() == groups && !is_projected_) {
        tiles_.group(parents.data(), static_cast<std::int32_t>(groups), labels_, nearest_, nearest_);
    } else {
        Buffer<double> squares(runner_.budget(), n);
        const Buffer<std::int32_t> all(runner_.budget(), parents.size() == groups ? 0 : n, 0);
        const std::int32_t *labels = parents.size() == groups ? labels_ : all.data();
        distances_to(runner_, points_, parents.data(), labels, squares.data());
        tiles_.group(parents.data(), static_cast<std::int32_t>(parents.size()), labels, squares.data(), nearest_);
    }
    tasks_ = (tiles_.size() + seed_task_tiles - 1) / seed_task_tiles;
    hits_ = Buffer<Hit>::if_room(runner_.budget(), tiles_.size() * seed_tile_rows, tiles_.bytes_beside());
    n_hits_ = Buffer<std::int64_t>(runner_.budget(), tasks_);
    bounds_ = Buffer<GainBounds>(runner_.budget(), tasks_ * most_);
    gains_ = Buffer<UInt128>(runner_.budget(), tasks_ * most_);
    largest_ = Buffer<double>(runner_.budget(), tasks_);
    for (std::int64_t task = 0; task < tasks_; ++task)
        find_largest(task);
}

template <typename T, typename Point>
void SeedTrials<T, Point>::group_again(const std::vector<const T *> &chosen)
{
    if (chosen.size() >= next_group_ && chosen.size() * rows_per_group <= static_cast<std::size_t>(rows_.n))
        group(chosen);
}

template <typename T, typename Point>
void SeedTrials<T, Point>::find_largest(std::int64_t task)
{
    double most = 0.0;
    for (std::int64_t tile = first_tile(task); tile < last_tile(task); ++tile)
        most = std::max(most, tiles_[tile].largest);
    largest_[task] = most;
}

template <typename T, typename Point>
std::vector<const Point *> SeedTrials<T, Point>::points_of(const std::vector<const T *> &rows) const
{
    if constexpr (std::is_same_v<T, Point>)
        if (!is_projected_)
            return rows;
    std::vector<const Point *> points;
    for (const T *row : rows)
        points.push_back(points_.row((row - rows_.values) / rows_.d));
    return points;
}

template <typename T, typename Point>
void SeedTrials<T, Point>::look_at(const std::vector<const T *> &candidates)
{
    looked_at_ = points_of(candidates);
    for (int number = 0; number < runner_.workers(); ++number)
        worker(number).view.look_at(looked_at_.data(), static_cast<int>(looked_at_.size()));
}

// Keeps of a tile's rows, given by bits, those that the candidate may win by distances of the rows' own precision, and
// bounds what it gains by them.
template <typename T, typename Point>
GainBounds SeedTrials<T, Point>::thin_out(std::int64_t tile, const T *candidate, std::uint64_t &bits) const
{
    const T *rows[seed_tile_rows];
    int places[seed_tile_rows], count = 0;
    for (; bits != 0; bits &= bits - 1) {
        places[count] = __builtin_ctzll(bits);
        rows[count] = rows_.row(tiles_.row(tile, places[count]));
        ++count;
    }
    T squares[seed_tile_rows];
    runner_.poll();
    exact_kernels(runner_.instruction_set()).estimates(candidate, rows, count, rows_.d, squares);
    GainBounds gain = {0.0, 0.0};
    for (int i = 0; i < count; ++i) {
        const double own = tiles_.nearest(tile, places[i]);
        const double weight = rows_.weight_of_copies(tiles_.row(tile, places[i]));
        const auto square = static_cast<double>(squares[i]);
        if (square_bounds_.below(square) >= own)
            continue;
        bits |= std::uint64_t{1} << places[i];
        gain.least += weight * std::max(0.0, own - square_bounds_.above(square));
        gain.most += weight * (own - square_bounds_.below(square));
    }
    return gain;
}

// Of a tile's rows, given by bits.
template <typename T, typename Point>
double SeedTrials<T, Point>::copies_of(std::int64_t tile, std::uint64_t bits) const
{
    std::uint64_t copies = 0;
    for (; bits != 0; bits &= bits - 1)
        copies += rows_.copies(tiles_.row(tile, __builtin_ctzll(bits)));
    return static_cast<double>(copies);
}

// Lists the rows that trials may win, and bounds what those gain by them.
template <typename T, typename Point>
void SeedTrials<T, Point>::screen(std::int64_t task, Worker &worker, double scale)
{
    GainBounds *bounds = bounds_.data() + task * most_;
    std::fill_n(bounds, candidates_.size(), GainBounds{0.0, 0.0});
    const std::int64_t first_hit = first_tile(task) * seed_tile_rows, most = room(task);
    std::int64_t found = 0;
    for (std::int64_t tile = first_tile(task); tile < last_tile(task); ++tile)
        worker.view.find(tile, !is_projected_, [&](int trial, std::uint64_t bits, GainBounds gain) {
            if (is_projected_)
                gain = thin_out(tile, candidates_[trial], bits);
            // Each mass is rounded down by less than 1.
            const int count = __builtin_popcountll(bits);
            const double rounded = rows_.counts == nullptr ? count : copies_of(tile, bits);
            bounds[trial].least += gain.least * scale - rounded;
            bounds[trial].most += gain.most * scale + rounded;
            if (found + count > most) { // full from now on
                found = most + 1;
                return;
            }
            for (; bits != 0; bits &= bits - 1)
                hits_[first_hit + found++] =
                    static_cast<Hit>((tile - first_tile(task)) * seed_tile_rows + __builtin_ctzll(bits)) |
                    static_cast<Hit>(trial) << 16;
        });
    n_hits_[task] = found;
}

// Calls win(trial, tile, i, row, square) for every row of the task that a wanted trial wins, tile after tile. The
// workers look at the wanted trials.
template <typename T, typename Point>
template <typename Win>
void SeedTrials<T, Point>::settle(std::int64_t task, Worker &worker, Win &&win)
{
    const ExactKernels &kernels = exact_kernels(runner_.instruction_set());
    const int full = pairs_at_once(rows_.d);
    const auto tile_of = [&](Hit hit) { return first_tile(task) + (hit & 0xffff) / seed_tile_rows; };
    const auto place_of = [](Hit hit) { return static_cast<int>((hit & 0xffff) % seed_tile_rows); };
    const auto finish = [&] {
        runner_.poll();
        kernels.pairs(worker.x, worker.c, worker.count, rows_.d, worker.squares);
        for (int p = 0; p < worker.count; ++p) {
            const Hit hit = worker.hit[p];
            if (worker.squares[p] < tiles_.nearest(tile_of(hit), place_of(hit)))
                win(static_cast<int>(hit >> 16), tile_of(hit), place_of(hit), worker.row[p], worker.squares[p]);
        }
        worker.count = 0;
    };
    const auto add = [&](Hit hit) {
        const int p = worker.count++;
        worker.row[p] = tiles_.row(tile_of(hit), place_of(hit));
        worker.x[p] = rows_.row(worker.row[p]);
        worker.c[p] = candidates_[hit >> 16];
        worker.hit[p] = hit;
        if (worker.count == full)
            finish();
    };
    worker.count = 0;
    if (n_hits_[task] <= room(task)) {
        const std::int64_t first_hit = first_tile(task) * seed_tile_rows;
        std::uint32_t wanted = 0;
        for (const int trial : wanted_)
            wanted |= 1u << trial;
        for (std::int64_t i = first_hit; i < first_hit + n_hits_[task]; ++i)
            if ((wanted >> (hits_[i] >> 16) & 1) != 0)
                add(hits_[i]);
    } else {
        for (std::int64_t tile = first_tile(task); tile < last_tile(task); ++tile)
            worker.view.find(tile, false, [&](int which, std::uint64_t bits, const GainBounds &) {
                for (; bits != 0; bits &= bits - 1)
                    add(static_cast<Hit>((tile - first_tile(task)) * seed_tile_rows + __builtin_ctzll(bits)) |
                        static_cast<Hit>(wanted_[which]) << 16);
            });
    }
    finish();
}

template <typename T, typename Point>
std::vector<GainBounds> SeedTrials<T, Point>::bound_gains(const std::vector<const T *> &candidates, double scale)
{
    candidates_ = candidates;
    const int count = static_cast<int>(candidates_.size());
    look_at(candidates_);
    runner_.run_by_workers(tasks_, [&](std::int64_t task, int number) { screen(task, worker(number), scale); });
    // Sums of non-negative float64: what rounding changes is far below this share.
    const double rounded = 0x1p-20;
    std::vector<GainBounds> gains(count, {0.0, 0.0});
    for (int trial = 0; trial < count; ++trial) {
        double size = 0.0;
        for (std::int64_t task = 0; task < tasks_; ++task) {
            const GainBounds &part = bounds_[task * most_ + trial];
            gains[trial].least += part.least;
            gains[trial].most += part.most;
            size += part.most;
        }
        gains[trial].least -= size * rounded;
        gains[trial].most += size * rounded;
    }
    return gains;
}

template <typename T, typename Point>
std::vector<UInt128> SeedTrials<T, Point>::find_gains(const std::vector<int> &which, double scale)
{
    wanted_ = which;
    std::vector<const T *> candidates;
    for (const int trial : which)
        candidates.push_back(candidates_[trial]);
    look_at(candidates);
    runner_.run_by_workers(tasks_, [&](std::int64_t task, int number) {
        UInt128 *gains = gains_.data() + task * most_;
        std::fill_n(gains, candidates_.size(), UInt128{0});
        settle(task, worker(number), [&](int trial, std::int64_t tile, int i, std::int64_t row, double square) {
            gains[trial] += rows_.mass(row, tiles_.nearest(tile, i), scale) - rows_.mass(row, square, scale);
        });
    });
    std::vector<UInt128> all(which.size(), 0);
    for (std::size_t i = 0; i < which.size(); ++i)
        for (std::int64_t task = 0; task < tasks_; ++task)
            all[i] += gains_[task * most_ + which[i]];
    return all;
}

template <typename T, typename Point>
int SeedTrials<T, Point>::find_best(const std::vector<const T *> &candidates, double scale)
{
    const std::vector<int> contested = contested_trials(bound_gains(candidates, scale));
    if (contested.size() == 1)
        return contested[0];
    const std::vector<UInt128> gains = find_gains(contested, scale);
    return contested[std::max_element(gains.begin(), gains.end()) - gains.begin()];
}

template <typename T, typename Point>
void SeedTrials<T, Point>::choose(int best, std::int32_t index, double scale, const Subtract &subtract)
{
    wanted_ = {best};
    look_at({candidates_[best]});
    runner_.run_by_workers(tasks_, [&](std::int64_t task, int number) {
        std::int64_t changed = -1; // tile
        settle(task, worker(number), [&](int, std::int64_t tile, int i, std::int64_t row, double square) {
            if (changed != tile && changed >= 0)
                tiles_.refresh(changed);
            changed = tile;
            subtract(row, rows_.mass(row, tiles_.nearest(tile, i), scale) - rows_.mass(row, square, scale));
            nearest_[row] = square;
            labels_[row] = index;
            tiles_.lower(tile, i, square);
        });
        if (changed < 0)
            return;
        tiles_.refresh(changed);
        find_largest(task);
    });
}

template void distances_to(const BlockRunner &, const SeedRows<BitWord> &, const BitWord *const *, const std::int32_t *,
                           double *);
template void distances_to(const BlockRunner &, const SeedRows<float> &, const float *const *, const std::int32_t *,
                           double *);
template void distances_to(const BlockRunner &, const SeedRows<double> &, const double *const *, const std::int32_t *,
                           double *);
template class SeedTrials<float>;
template class SeedTrials<double>;
template class SeedTrials<double, float>;

} // namespace pgkm::cpu
