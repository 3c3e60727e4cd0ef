#include "tournament.hpp"

#include <algorithm>

#include "../exact.cuh"
#include "../stages.hpp"
#include "labels_differ.hpp"

namespace pgkm::cuda {
namespace {

constexpr int least_tile_rows = 32;
constexpr int fan = 1024; // tiles of a group, and most groups
constexpr int threads = 256;
constexpr int place_threads = 1024, place_warps = place_threads / 32;

// The order in which rows are taken: the farther comes first, the lower number on a tie.
__device__ bool comes_first(const FarPlace &a, const FarPlace &b)
{
    return a.square > b.square || (a.square == b.square && a.at < b.at);
}

__device__ FarPlace first_in_warp(FarPlace mine)
{
    for (int offset = 16; offset > 0; offset >>= 1) {
        const FarPlace other = {__shfl_xor_sync(~0u, mine.square, offset), __shfl_xor_sync(~0u, mine.at, offset),
                                __shfl_xor_sync(~0u, mine.label, offset)};
        if (comes_first(other, mine))
            mine = other;
    }
    return mine;
}

// Of a whole block; all threads get it.
__device__ FarPlace first_in_block(FarPlace mine)
{
    __shared__ FarPlace of_warp[place_warps];
    mine = first_in_warp(mine);
    __syncthreads(); // the last answer has been read
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    return first_in_warp(of_warp[threadIdx.x % 32]);
}

// The row's squared distance from its centroid; 0 where it may never go, for it has no mass.
template <typename T>
__device__ double far_square(const View<T> &view, std::int64_t row, std::int32_t label)
{
    if (view.weights != nullptr && quantise(view.weights[row], power_of_two(view.weight_exponent)) == 0)
        return 0.0;
    return exact_distance(view.values + row * view.d, view.centroids + std::int64_t{label} * view.d, view.d);
}

// The stop becomes `running`, so that kernels run until a cancel.
__global__ void begin_kernel(Control *control, std::int32_t *differ)
{
    atomicCAS(&control->stop, static_cast<std::int32_t>(empty_cluster), static_cast<std::int32_t>(running));
    *differ = control->n_iter == 0 ? 1 : 0; // the first iteration's labels are other ones than before
}

// The farthest row of each tile of a slice, whose first tile is `first`.
template <typename T>
__global__ void __launch_bounds__(threads) tiles_kernel(View<T> slice, const std::int32_t *labels, FarTiles tiles,
                                                        std::int32_t first, const Control *control)
{
    if (stopped(control))
        return;
    const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(gridDim.x) * (threads / 32);
    for (int t = static_cast<int>(blockIdx.x * (threads / 32) + threadIdx.x / 32); t < tiles.per_slice; t += warps) {
        if (first + t >= tiles.count)
            return;
        const std::int64_t from = std::int64_t{t} * tiles.tile_rows;
        const std::int32_t rows = tiles.rows(first + t);
        FarPlace           best = {0.0, 0, 0};
        for (std::int32_t i = lane; i < rows; i += 32) {
            const std::int32_t label = labels[from + i];
            const double       square = far_square(slice, from + i, label);
            if (square > best.square)
                best = {square, i, label};
        }
        best = first_in_warp(best);
        if (lane == 0)
            tiles.farthest[first + t] = best;
    }
}

// What the block that places rows works on. `labels`: of all rows, or nullptr where they were not kept.
template <typename T>
struct Placing {
    View<T>             view;
    FarTiles            tiles;
    const std::int32_t *labels;
    Accumulators        sums;
    const Control      *control;
};

// The farthest of the group's tiles; a warp.
__device__ FarPlace first_of_group(const FarTiles &tiles, std::int32_t group)
{
    FarPlace best = {0.0, 0x7fffffff, 0};
    const std::int32_t end = min((group + 1) * fan, tiles.count);
    for (std::int32_t tile = group * fan + static_cast<std::int32_t>(threadIdx.x % 32); tile < end; tile += 32) {
        const FarPlace other = {tiles.farthest[tile].square, tile, 0};
        if (comes_first(other, best))
            best = other;
    }
    return first_in_warp(best);
}

// The farthest row of a tile that comes after `last`, which was its first; the block. Labels that were not kept
// are found again: by a warp for each row.
template <typename T>
__device__ FarPlace next_of_tile(const Placing<T> &p, std::int32_t tile, const FarPlace &last)
{
    const std::int64_t first = p.tiles.first_row(tile);
    const std::int32_t rows = p.tiles.rows(tile);
    const int          self = static_cast<int>(threadIdx.x), step = p.labels != nullptr ? 1 : 32;
    FarPlace           best = {0.0, 0x7fffffff, 0};
    for (std::int32_t i = self / step; i < rows; i += place_threads / step) {
        const std::int32_t label = p.labels != nullptr
                                       ? p.labels[first + i]
                                       : settle_by_warp(p.view.values + (first + i) * p.view.d, p.view.centroids, p.view.k, p.view.d).label;
        const FarPlace place = {far_square(p.view, first + i, label), i, label};
        if (comes_first(last, place) && comes_first(place, best))
            best = place;
    }
    return first_in_block(best);
}

// Whether the row's old cluster keeps some mass without it.
template <typename T>
__device__ bool may_go(const Placing<T> &p, std::int64_t row, std::int32_t old)
{
    const Split  mass = mass_limbs(p.view, row);
    const Int128 of_cluster = join_limb_sums(p.sums.masses[2 * old], p.sums.masses[2 * old + 1]);
    return of_cluster - join_limb_sums(mass.hi, mass.lo) > 0;
}

template <typename T>
__device__ void move_row(const Placing<T> &p, std::int64_t row, std::int32_t old, std::int32_t to)
{
    const auto move = [&](std::int64_t *sums, std::int64_t from_cell, std::int64_t to_cell, const Split &limbs) {
        sums[2 * from_cell] -= limbs.hi;
        sums[2 * from_cell + 1] -= limbs.lo;
        sums[2 * to_cell] = limbs.hi;
        sums[2 * to_cell + 1] = limbs.lo;
    };
    const int d = p.view.d;
    for (int f = static_cast<int>(threadIdx.x); f < d; f += place_threads)
        move(p.sums.totals, std::int64_t{old} * d + f, std::int64_t{to} * d + f, feature_limbs(p.view, row, f));
    if (threadIdx.x == 0)
        move(p.sums.masses, old, to, mass_limbs(p.view, row));
}

// Gives cluster `to` the farthest row that may go; false: there is none, or the work is cancelled.
template <typename T>
__device__ bool fill_cluster(const Placing<T> &p, FarPlace *of_group, std::int32_t groups, std::int32_t to)
{
    for (;;) {
        if (block_stopped(p.control)) // and what the block has written is seen by all of it
            return false;
        const int      self = static_cast<int>(threadIdx.x);
        const FarPlace none = {0.0, 0x7fffffff, 0};
        const FarPlace best = first_in_block(self < groups ? of_group[self] : none);
        if (best.square == 0.0)
            return false;
        const std::int32_t tile = best.at;
        const FarPlace     taken = p.tiles.farthest[tile];
        const std::int64_t row = p.tiles.first_row(tile) + taken.at;
        const bool         goes = may_go(p, row, taken.label);
        __syncthreads(); // all have read what changes now
        if (goes)
            move_row(p, row, taken.label, to);
        const FarPlace next = next_of_tile(p, tile, taken);
        if (self == 0)
            p.tiles.farthest[tile] = next;
        __syncthreads();
        if (self < 32) {
            const FarPlace first = first_of_group(p.tiles, tile / fan);
            if (self == 0)
                of_group[tile / fan] = first;
        }
        if (goes)
            return true;
    }
}

// One block: rows for the empty clusters, in ascending order. Clusters are filled behind the one being looked at, so
// that whether the next ones are empty does not change.
template <typename T>
__global__ void __launch_bounds__(place_threads) place_kernel(const __grid_constant__ Placing<T> p)
{
    __shared__ FarPlace of_group[fan];
    __shared__ unsigned empty[place_warps];
    const int          self = static_cast<int>(threadIdx.x);
    const std::int32_t groups = (p.tiles.count - 1) / fan + 1;
    for (std::int32_t group = self / 32; group < groups; group += place_warps) {
        const FarPlace first = first_of_group(p.tiles, group);
        if (self % 32 == 0)
            of_group[group] = first;
    }
    for (std::int32_t base = 0; base < p.view.k; base += place_threads) {
        const std::int32_t j = base + self;
        const unsigned     ballot =
            __ballot_sync(~0u, j < p.view.k && p.sums.masses[2 * j] == 0 && p.sums.masses[2 * j + 1] == 0);
        __syncthreads();
        if (self % 32 == 0)
            empty[self / 32] = ballot;
        __syncthreads();
        for (int warp = 0; warp < place_warps; ++warp)
            for (unsigned left = empty[warp]; left != 0; left &= left - 1)
                if (!fill_cluster(p, of_group, groups, base + warp * 32 + __ffs(static_cast<int>(left)) - 1))
                    return;
    }
}

} // namespace

template <typename T>
Tournament<T>::Tournament(Job<T> &job, const PgkmFitParams &params) : job_(job), params_(params)
{
    tiles_.n = job.problem.n_rows;
    tiles_.slice_rows = static_cast<std::int64_t>(job.labels.count());
    const std::int64_t slices = (tiles_.n - 1) / tiles_.slice_rows + 1;
    std::int64_t       tile_rows = least_tile_rows;
    const auto         per_slice = [&] { return (tiles_.slice_rows - 1) / tile_rows + 1; };
    while (slices * per_slice() > std::int64_t{fan} * fan && tile_rows < tiles_.slice_rows)
        tile_rows *= 2;
    if (slices * per_slice() > std::int64_t{fan} * fan)
        throw Error(PGKM_LIMIT, "the device memory limit leaves room for the labels of few rows only");
    tiles_.tile_rows = static_cast<std::int32_t>(tile_rows);
    tiles_.per_slice = static_cast<std::int32_t>(per_slice());
    tiles_.count = static_cast<std::int32_t>(slices * per_slice());
    farthest_ = DeviceArray<FarPlace>(job.context.budget, static_cast<std::size_t>(tiles_.count));
    differ_ = DeviceArray<std::int32_t>(job.context.budget, 1);
    tiles_.farthest = farthest_.get();
}

template <typename T>
void Tournament<T>::enqueue(const UpdateArguments<T> &arguments)
{
    const cudaStream_t stream = job_.stream();
    Control *const     control = arguments.control;
    begin_kernel<<<1, 1, 0, stream>>>(control, differ_.get());
    launched("begin_kernel");
    job_.prepare_operands(&params_); // an iteration whose sums follow the rows leaves other ones behind
    View<T> all{};
    job_.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        if (first == 0)
            all = rows;
        job_.assign_rows(rows, control, job_.labels.get());
        tiles_kernel<<<blocks_for(tiles_.per_slice, threads / 32, job_.context.facts.multiprocessors * 8), threads, 0, stream>>>(
            rows, job_.labels.get(), tiles_, static_cast<std::int32_t>(first / tiles_.slice_rows) * tiles_.per_slice, control);
        launched("tiles_kernel");
        labels_differ(job_.stage(control), job_.under(1, rows), job_.labels.get(), differ_.get());
    });
    all.n = tiles_.n;
    const bool kept = tiles_.n <= tiles_.slice_rows;
    place_kernel<<<1, place_threads, 0, stream>>>(
        Placing<T>{all, tiles_, kept ? job_.labels.get() : nullptr, arguments.sums, control});
    launched("place_kernel");
    UpdateArguments<T> relocated = arguments;
    relocated.differ = differ_.get();
    update(relocated, stream);
    job_.begin_anew(&params_);
}

template class Tournament<float>;
template class Tournament<double>;

} // namespace pgkm::cuda
