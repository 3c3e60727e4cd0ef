// trials.cpp - exact distances where a trial may win, and the potentials that follow.
#include "cpu/seed/trials.hpp"

#include <algorithm>

#include "cpu/kernels/pair_kernels.hpp"
#include "cpu/rows.hpp"
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

template <typename T>
void distances_to(const BlockRunner &runner, const SeedRows<T> &rows, const T *to, double *squares)
{
    const PairKernels &kernels = pair_kernels(runner.instruction_set());
    const std::int64_t size = seed_block_rows(rows.d);
    runner.run((rows.n + size - 1) / size, [&](std::int64_t block) {
        const T *x[most_pairs], *c[most_pairs];
        std::fill_n(c, most_pairs, to);
        const std::int64_t last = std::min(rows.n, (block + 1) * size);
        for (std::int64_t first = block * size; first < last; first += most_pairs) {
            const std::int64_t count = std::min<std::int64_t>(most_pairs, last - first);
            for (std::int64_t i = 0; i < count; ++i)
                x[i] = rows.row(first + i);
            kernels.distances(x, c, count, rows.d, squares + first);
        }
    });
}

template <typename T>
struct SeedTrials<T>::Worker {
    explicit Worker(const SeedTiles<T> &tiles, int most) : view(tiles, most) {}

    typename SeedTiles<T>::View view;
    int count = 0;
    const T *x[most_pairs], *c[most_pairs];
    std::int64_t row[most_pairs];
    Won won[most_pairs];
    double squares[most_pairs];
};

template <typename T>
SeedTrials<T>::SeedTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels,
                          SeedMasses &masses, int most)
    : runner_(runner), rows_(rows), nearest_(nearest), labels_(labels), masses_(masses), most_(most),
      tiles_(runner, rows), workers_(runner.workers())
{
}

template <typename T>
SeedTrials<T>::~SeedTrials() = default;

template <typename T>
std::uint64_t SeedTrials<T>::mass(std::int64_t row, double square, double scale) const
{
    return static_cast<std::uint64_t>(quantise_mass(rows_.weight(row) * square, scale));
}

template <typename T>
typename SeedTrials<T>::Worker &SeedTrials<T>::worker(int number)
{
    auto &made = workers_[number];
    if (!made)
        made = std::make_unique<Worker>(tiles_, most_);
    return *made;
}

template <typename T>
void SeedTrials<T>::group(const std::vector<std::int64_t> &chosen)
{
    const std::size_t groups = chosen.size();
    next_group_ = std::max(first_groups, groups * group_growth);
    const auto n = static_cast<std::size_t>(rows_.n);
    if (groups == 1 || groups * rows_per_group <= n) {
        tiles_.group(chosen.data(), static_cast<std::int32_t>(groups), labels_, nearest_, nearest_);
    } else { // too many: one group, whose parent is nearest to few of its rows
        Buffer<double> squares(runner_.budget(), n);
        const Buffer<std::int32_t> labels(runner_.budget(), n, 0);
        distances_to(runner_, rows_, rows_.row(chosen[0]), squares.data());
        tiles_.group(chosen.data(), 1, labels.data(), squares.data(), nearest_);
    }
    tasks_ = (tiles_.size() + task_tiles - 1) / task_tiles;
    won_ = Buffer<Won>();
    won_squares_ = Buffer<double>();
    won_ = Buffer<Won>(runner_.budget(), tiles_.size() * seed_tile_rows);
    won_squares_ = Buffer<double>(runner_.budget(), tiles_.size() * seed_tile_rows);
    n_won_ = Buffer<std::int64_t>(runner_.budget(), tasks_);
    gains_ = Buffer<std::uint64_t>(runner_.budget(), tasks_ * most_);
    largest_ = Buffer<double>(runner_.budget(), tasks_);
    for (std::int64_t task = 0; task < tasks_; ++task)
        find_largest(task);
}

template <typename T>
void SeedTrials<T>::group_again(const std::vector<std::int64_t> &chosen)
{
    if (chosen.size() >= next_group_ && chosen.size() * rows_per_group <= static_cast<std::size_t>(rows_.n))
        group(chosen);
}

template <typename T>
void SeedTrials<T>::find_largest(std::int64_t task)
{
    double most = 0.0;
    for (std::int64_t tile = first_tile(task); tile < last_tile(task); ++tile)
        most = std::max(most, tiles_[tile].largest);
    largest_[task] = most;
}

// Calls win(won, row, square) for every row of the task that a candidate of the worker's view wins, tile after tile.
template <typename T>
template <typename Win>
void SeedTrials<T>::find_won(std::int64_t task, Worker &worker, Win &&win)
{
    const PairKernels &kernels = pair_kernels(runner_.instruction_set());
    const int full = pairs_at_once(rows_.d);
    const auto settle = [&] {
        runner_.poll();
        kernels.distances(worker.x, worker.c, worker.count, rows_.d, worker.squares);
        for (int p = 0; p < worker.count; ++p)
            if (worker.squares[p] < nearest_[worker.row[p]])
                win(worker.won[p], worker.row[p], worker.squares[p]);
        worker.count = 0;
    };
    worker.count = 0;
    for (std::int64_t tile = first_tile(task); tile < last_tile(task); ++tile)
        worker.view.find(tile, [&](int candidate, int i) {
            const std::int64_t row = tiles_.row(tile, i);
            const int p = worker.count++;
            worker.x[p] = rows_.row(row);
            worker.c[p] = worker.view.candidate(candidate);
            worker.row[p] = row;
            worker.won[p] = static_cast<Won>((tile - first_tile(task)) * seed_tile_rows + i) |
                            static_cast<Won>(candidate) << 16;
            if (worker.count == full)
                settle();
        });
    settle();
}

template <typename T>
void SeedTrials<T>::try_task(std::int64_t task, Worker &worker, int count, double scale)
{
    std::uint64_t *gains = gains_.data() + task * most_;
    std::fill_n(gains, count, 0);
    const std::int64_t base = first_tile(task) * seed_tile_rows, most = room(task);
    std::int64_t found = 0;
    find_won(task, worker, [&](Won won, std::int64_t row, double square) {
        gains[won >> 16] += mass(row, nearest_[row], scale) - mass(row, square, scale);
        if (found < most) {
            won_[base + found] = won;
            won_squares_[base + found] = square;
        }
        ++found;
    });
    n_won_[task] = found;
}

template <typename T>
int SeedTrials<T>::find_best(const std::vector<const T *> &candidates, double scale)
{
    const int count = static_cast<int>(candidates.size());
    for (int number = 0; number < runner_.workers(); ++number)
        worker(number).view.look_at(candidates.data(), count);
    runner_.run_by_workers(tasks_, [&](std::int64_t task, int number) { try_task(task, worker(number), count, scale); });
    int best = 0;
    UInt128 most = 0;
    for (int trial = 0; trial < count; ++trial) {
        UInt128 gain = 0;
        for (std::int64_t task = 0; task < tasks_; ++task)
            gain += gains_[task * most_ + trial];
        if (gain > most) {
            most = gain;
            best = trial;
        }
    }
    return best;
}

template <typename T>
void SeedTrials<T>::choose(int best, const T *candidate, std::int32_t index, double scale)
{
    for (int number = 0; number < runner_.workers(); ++number)
        worker(number).view.look_at(&candidate, 1);
    runner_.run_by_workers(tasks_, [&](std::int64_t task, int number) {
        std::int64_t changed = -1; // tile
        const auto take = [&](Won won, std::int64_t row, double square) {
            const std::int64_t tile = first_tile(task) + (won & 0xffff) / seed_tile_rows;
            if (changed != tile && changed >= 0)
                tiles_.refresh(changed, nearest_);
            changed = tile;
            masses_.subtract(row, mass(row, nearest_[row], scale) - mass(row, square, scale));
            nearest_[row] = square;
            labels_[row] = index;
            tiles_.lower(tile, static_cast<int>((won & 0xffff) % seed_tile_rows), square);
        };
        if (n_won_[task] > room(task)) {
            find_won(task, worker(number), take);
        } else {
            const std::int64_t base = first_tile(task) * seed_tile_rows;
            for (std::int64_t i = base; i < base + n_won_[task]; ++i)
                if (static_cast<int>(won_[i] >> 16) == best) {
                    const std::int64_t tile = first_tile(task) + (won_[i] & 0xffff) / seed_tile_rows;
                    take(won_[i], tiles_.row(tile, static_cast<int>((won_[i] & 0xffff) % seed_tile_rows)),
                         won_squares_[i]);
                }
        }
        if (changed < 0)
            return;
        tiles_.refresh(changed, nearest_);
        find_largest(task);
    });
}

template void distances_to(const BlockRunner &, const SeedRows<float> &, const float *, double *);
template void distances_to(const BlockRunner &, const SeedRows<double> &, const double *, double *);
template class SeedTrials<float>;
template class SeedTrials<double>;

} // namespace pgkm::cpu
