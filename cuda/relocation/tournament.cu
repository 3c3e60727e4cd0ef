#include "relocation/tournament.hpp"

#include <algorithm>

#include "device/exact.cuh"
#include "plan/stages.hpp"
#include "relocation/labels_differ.hpp"

namespace pgkm::cuda {
namespace {

constexpr int least_tile_rows = 32;
constexpr int threads = 256;
// Threads that place rows: the more there are, the more instructions a step of all of them takes.
constexpr int place_threads = 256, place_warps = place_threads / 32;
constexpr int fan = 1024; // tiles of a group, and most groups
constexpr int held = fan / place_threads; // groups whose farthest row a thread holds

// A row that takes part, with its tile.
struct Candidate {
    FarPlace     row;
    std::int32_t tile;
};

__device__ Candidate nobody() { return {{0.0, 0x7fffffff, 0}, 0x7fffffff}; }

// The order in which rows are taken: the farther comes first, the lower row on a tie.
__device__ bool comes_first(const Candidate &a, const Candidate &b)
{
    if (a.row.square != b.row.square)
        return a.row.square > b.row.square;
    return a.tile < b.tile || (a.tile == b.tile && a.row.at < b.row.at);
}

// Word by word, those that are behind drop out: squares are not negative, so that their bits are in their order.
__device__ Candidate first_in_warp(const Candidate &mine)
{
    const auto bits = static_cast<unsigned long long>(__double_as_longlong(mine.row.square));
    const auto high = static_cast<unsigned>(bits >> 32), low = static_cast<unsigned>(bits);
    const unsigned most_high = __reduce_max_sync(~0u, high);
    bool           leads = high == most_high;
    const unsigned most_low = __reduce_max_sync(~0u, leads ? low : 0);
    leads = leads && low == most_low;
    const std::int32_t tile = __reduce_min_sync(~0u, leads ? mine.tile : 0x7fffffff);
    leads = leads && mine.tile == tile;
    const std::int32_t at = __reduce_min_sync(~0u, leads ? mine.row.at : 0x7fffffff);
    leads = leads && mine.row.at == at;
    const int from = __ffs(static_cast<int>(__ballot_sync(~0u, leads))) - 1;
    const auto square = static_cast<long long>(static_cast<unsigned long long>(most_high) << 32 | most_low);
    return {{__longlong_as_double(square), at, __shfl_sync(~0u, mine.row.label, from)}, tile};
}

// Of the whole block that places rows; all threads get it. `of_warp`: shared, another one than in the call before.
__device__ Candidate first_in_block(const Candidate &mine, Candidate *of_warp)
{
    const Candidate first = first_in_warp(mine);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = first;
    __syncthreads();
    return first_in_warp(of_warp[threadIdx.x % place_warps]);
}

// Of a thread's own.
__device__ Candidate first_of(const Candidate (&several)[held])
{
    Candidate best = several[0];
#pragma unroll
    for (int i = 1; i < held; ++i)
        if (comes_first(several[i], best))
            best = several[i];
    return best;
}

template <typename T>
__device__ Int128 row_mass(const View<T> &view, std::int64_t row)
{
    if (view.weights == nullptr)
        return 1;
    const Limbs mass = quantise_weighted(view.weights[row], power_of_two(view.weight_exponent));
    return join_limbs(mass.hi, mass.lo);
}

// The row's squared distance from its centroid; 0 where it may never go, for it has no mass.
template <typename T>
__device__ double far_square(const View<T> &view, std::int64_t row, std::int32_t label)
{
    if (view.weights != nullptr && row_mass(view, row) == 0)
        return 0.0;
    return distance_ahead(view.values + row * view.d, view.centroids + std::int64_t{label} * view.d, view.d);
}

// The stop becomes `running`, so that kernels run until a cancel.
__global__ void begin_kernel(Control *control, std::int32_t *differ)
{
    atomicCAS(&control->stop, static_cast<std::int32_t>(empty_cluster), static_cast<std::int32_t>(running));
    *differ = control->n_iter == 0 ? 1 : 0; // the first iteration's labels are other ones than before
}

// The farthest row of each tile. The rows may be all of the device's memory: a cancel is seen between tiles.
template <typename T>
__global__ void __launch_bounds__(threads) tiles_kernel(View<T> view, const std::int32_t *labels, FarTiles tiles,
                                                        const Control *control)
{
    const int lane = static_cast<int>(threadIdx.x % 32), step = static_cast<int>(gridDim.x) * (threads / 32);
    bool      stops = stopped(control);
    for (int tile = static_cast<int>(blockIdx.x * (threads / 32) + threadIdx.x / 32); tile < tiles.count; tile += step) {
        if (__any_sync(~0u, stops))
            return;
        stops = stopped(control); // the answer is on its way beside the rows
        const std::int64_t first = tiles.first_row(tile);
        const std::int32_t rows = tiles.rows(tile);
        Candidate          best = nobody();
        for (std::int32_t i = lane; i < rows; i += 32) {
            const std::int32_t label = labels[first + i];
            const Candidate    mine = {{far_square(view, first + i, label), i, label}, tile};
            if (comes_first(mine, best))
                best = mine;
        }
        best = first_in_warp(best);
        if (lane == 0)
            tiles.farthest[tile] = best.row;
    }
}

// What the block that places rows works on.
template <typename T>
struct Placing {
    View<T>             view;
    FarTiles            tiles;
    const std::int32_t *labels;
    Accumulators        sums;
    const Control      *control;
};

// The farthest row of a group; a warp.
__device__ Candidate first_of_group(const FarTiles &tiles, std::int32_t group)
{
    Candidate          best = nobody();
    const std::int32_t end = min((group + 1) * fan, tiles.count);
    for (std::int32_t tile = group * fan + static_cast<std::int32_t>(threadIdx.x % 32); tile < end; tile += 32) {
        const Candidate mine = {tiles.farthest[tile], tile};
        if (comes_first(mine, best))
            best = mine;
    }
    return first_in_warp(best);
}

// A thread's part of the rows of a tile: the farthest that comes after `last`, which was the tile's first.
template <typename T>
__device__ Candidate next_of_tile(const Placing<T> &p, const Candidate &last)
{
    const std::int64_t first = p.tiles.first_row(last.tile);
    const std::int32_t rows = p.tiles.rows(last.tile);
    Candidate          best = {{0.0, 0x7fffffff, 0}, last.tile};
    for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < rows; i += place_threads) {
        const std::int32_t label = p.labels[first + i];
        const Candidate    mine = {{far_square(p.view, first + i, label), i, label}, last.tile};
        if (comes_first(last, mine) && comes_first(mine, best))
            best = mine;
    }
    return best;
}

// Whether the row's old cluster keeps some mass without it.
template <typename T>
__device__ bool may_go(const Placing<T> &p, std::int64_t row, std::int32_t old)
{
    return sum_of(p.sums.masses, p.view.k, old, p.sums.weighted) - row_mass(p.view, row) > 0;
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
    const int          d = p.view.d;
    const std::int64_t k = p.view.k;
    for (int part = 0; part < parts_of(p.sums.weighted); ++part) {
        const std::int64_t from_cluster = part * k + old, to_cluster = part * k + to;
        for (int f = static_cast<int>(threadIdx.x); f < d; f += place_threads)
            move(p.sums.totals, from_cluster * d + f, to_cluster * d + f, feature_limbs(p.view, row, f, part));
        if (threadIdx.x == 0)
            move(p.sums.masses, from_cluster, to_cluster, mass_limbs(p.view, row, part));
    }
}

// Gives cluster `to` the farthest row that may go; false: there is none, or the work is cancelled. `mine`: the
// farthest rows of the thread's groups, which are place_threads apart.
template <typename T>
__device__ bool fill_cluster(const Placing<T> &p, Candidate (&mine)[held], std::int32_t to)
{
    __shared__ Candidate of_warp[3][place_warps];
    const auto self = static_cast<std::int32_t>(threadIdx.x);
    for (;;) {
        const bool      stops = stopped(p.control);
        const Candidate best = first_in_block(first_of(mine), of_warp[0]);
        if (best.row.square == 0.0)
            return false;
        const std::int64_t row = p.tiles.first_row(best.tile) + best.row.at;
        const std::int32_t old = best.row.label, group = best.tile / fan;
        const bool         goes = may_go(p, row, old);
        Candidate          of_tile[held]; // of the thread's tiles of the group
#pragma unroll
        for (int i = 0; i < held; ++i) {
            const std::int32_t tile = group * fan + i * place_threads + self;
            of_tile[i] = tile < p.tiles.count ? Candidate{p.tiles.farthest[tile], tile} : nobody();
        }
        const Candidate next = first_in_block(next_of_tile(p, best), of_warp[1]);
        if (best.tile % place_threads == self)
            p.tiles.farthest[best.tile] = next.row;
#pragma unroll
        for (int i = 0; i < held; ++i)
            if (of_tile[i].tile == best.tile)
                of_tile[i] = next;
        const Candidate first = first_in_block(first_of(of_tile), of_warp[2]);
#pragma unroll
        for (int i = 0; i < held; ++i)
            if (i * place_threads + self == group)
                mine[i] = first;
        if (goes)
            move_row(p, row, old, to);
        if (__syncthreads_or(stops)) // and what the block has written is seen by all of it
            return false;
        if (goes)
            return true;
    }
}

// One block: rows for the empty clusters, in ascending order. Clusters are filled behind the one being looked at, so
// that whether the next ones are empty does not change.
template <typename T>
__global__ void __launch_bounds__(place_threads, 1) place_kernel(const __grid_constant__ Placing<T> p)
{
    __shared__ Candidate of_group[fan];
    __shared__ unsigned  empty[place_warps];
    if (block_stopped(p.control)) // tiles may be without their rows
        return;
    const int          self = static_cast<int>(threadIdx.x);
    const std::int32_t groups = (p.tiles.count - 1) / fan + 1;
    for (std::int32_t group = self / 32; group < groups; group += place_warps) {
        const Candidate first = first_of_group(p.tiles, group);
        if (self % 32 == 0)
            of_group[group] = first;
    }
    __syncthreads();
    Candidate mine[held];
#pragma unroll
    for (int i = 0; i < held; ++i)
        mine[i] = i * place_threads + self < groups ? of_group[i * place_threads + self] : nobody();
    for (std::int32_t base = 0; base < p.view.k; base += place_threads) {
        const std::int32_t j = base + self;
        const unsigned     ballot =
            __ballot_sync(~0u, j < p.view.k && sum_of(p.sums.masses, p.view.k, j, p.sums.weighted) == 0);
        __syncthreads();
        if (self % 32 == 0)
            empty[self / 32] = ballot;
        __syncthreads();
        for (int warp = 0; warp < place_warps; ++warp)
            for (unsigned left = empty[warp]; left != 0; left &= left - 1)
                if (!fill_cluster(p, mine, base + warp * 32 + __ffs(static_cast<int>(left)) - 1))
                    return;
    }
}

} // namespace

template <typename T>
Tournament<T>::Tournament(Job<T> &job, const PgkmFitParams &params) : job_(job), params_(params)
{
    DeviceMemory      &budget = job.context.budget;
    const std::int64_t n = job.problem.n_rows, most = std::int64_t{fan} * fan;
    std::int64_t       rows = least_tile_rows;
    while ((n - 1) / rows + 1 > most)
        rows *= 2;
    const auto count = static_cast<std::int32_t>((n - 1) / rows + 1);
    farthest_ = DeviceArray<FarPlace>(budget, static_cast<std::size_t>(count));
    differ_ = DeviceArray<std::int32_t>(budget, 1);
    if (static_cast<std::int64_t>(job.labels.count()) < n)
        labels_ = DeviceArray<std::int32_t>(budget, static_cast<std::size_t>(n));
    tiles_ = {farthest_.get(), n, static_cast<std::int32_t>(rows), count};
}

template <typename T>
void Tournament<T>::enqueue(const UpdateArguments<T> &arguments)
{
    const cudaStream_t stream = job_.stream();
    Control *const     control = arguments.control;
    begin_kernel<<<1, 1, 0, stream>>>(control, differ_.get());
    launched("begin_kernel");
    job_.prepare_operands(&params_); // an iteration whose sums follow the rows leaves other ones behind
    std::int32_t *const labels = labels_.get() != nullptr ? labels_.get() : job_.labels.get();
    View<T>             all{};
    job_.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        if (first == 0)
            all = rows;
        job_.assign_rows(rows, control, labels + first);
    });
    all.n = tiles_.n;
    const int blocks = blocks_for(tiles_.count, threads / 32, job_.context.facts.multiprocessors * 8);
    tiles_kernel<<<blocks, threads, 0, stream>>>(all, labels, tiles_, control);
    launched("tiles_kernel");
    labels_differ(job_.stage(control), job_.under(1, all), labels, differ_.get());
    place_kernel<<<1, place_threads, 0, stream>>>(Placing<T>{all, tiles_, labels, arguments.sums, control});
    launched("place_kernel");
    UpdateArguments<T> relocated = arguments;
    relocated.differ = differ_.get();
    update(relocated, stream);
    job_.begin_anew(&params_);
}

template class Tournament<float>;
template class Tournament<double>;

} // namespace pgkm::cuda
