// cells.cu (fused) - an iteration over float32 rows of few features: each row is compared with the centroids on
// the list of its cell (cells.hpp), sums follow the rows.
//
// A thread takes a row. Copies of the centroids in shared memory let the lanes of a warp read
// different ones at once. Distances are float32 sums of squared differences, which err in
// proportion to themselves (later_rows.cuh): hardly a row stays open. To use: d <= 8, many clusters.
#include "plan/choose.hpp"
#include "fused/cells.cuh"
#include "fused/later_rows.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 384;
constexpr int warps = threads / 32;
constexpr int later_words = warps * LaterRows::capacity * 2;
constexpr std::size_t panel_bytes = 32768; // most of the centroids' copies
constexpr std::size_t block_bytes = 65536; // of it all: the rest is for the first-level cache, which lists need

// Floats that are read at once.
template <int D>
constexpr int width = D < 4 ? D : 4;

// Copies: as many as keep lanes that read at once apart.
template <int D>
int copies_of(int k)
{
    int copies = 32 / width<D>;
    while (copies > 1 && static_cast<std::size_t>((k + 1) * D * copies) * 4 > panel_bytes)
        copies /= 2;
    return copies;
}

// A number on a list stands for itself, 65536 added, where such are to be counted as well.
constexpr int entry = 1 << 16;

// k + 1 centroids: the last one, which fills lists up, is farther than any.
template <int D>
struct Panel {
    float *values; // by centroid, part of `width` features, copy
    int copies;

    __device__ void fill(const View<float> &view) const
    {
        constexpr int W = width<D>;
        for (int i = static_cast<int>(threadIdx.x); i < (view.k + 1) * D * copies; i += threads) {
            const int f = i / (W * copies) % (D / W) * W + i % W, j = i / (D * copies);
            values[i] = j == view.k ? INFINITY : f < view.d ? view.centroids[j * view.d + f] : 0.0f;
        }
    }
    // The squared distance of entry `e` from x, by the lane's copy.
    __device__ float distance(int e, const float (&x)[D]) const
    {
        constexpr int W = width<D>;
        const int stride = D * copies;
        const float *from = values + (e * stride - entry * stride + (static_cast<int>(threadIdx.x) & (copies - 1)) * W);
        float sum = 0.0f;
#pragma unroll
        for (int part = 0; part < D; part += W, from += copies * W) {
            float c[W];
            if constexpr (W == 4)
                *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(from);
            else if constexpr (W == 2)
                *reinterpret_cast<float2 *>(c) = *reinterpret_cast<const float2 *>(from);
            else
                c[0] = *from;
#pragma unroll
            for (int f = 0; f < W; ++f) {
                const float difference = x[part + f] - c[f];
                sum = __fmaf_rn(difference, difference, sum);
            }
        }
        return sum;
    }
};

// Number `t` of a list as an entry; words[0] begins with the list's length.
__device__ inline int entry_of(const unsigned *words, int t)
{
    return static_cast<int>(__byte_perm(words[(t + 1) / 2], 1, t % 2 == 0 ? 0x5432 : 0x5410));
}

// Distances up to this one may be the least: as in settle_later().
__device__ inline float nearly(float least, int d)
{
    return least * (1.0f + static_cast<float>(2 * d + 12) * 0x1p-24f) + 0x1p-100f;
}

// The nearest of the first T of a list, or -1: open. Entries of distances that may be the least are
// added up: one of them gives its number away.
template <int D, int T>
__device__ inline int nearest_of(const Panel<D> &panel, const unsigned (&words)[8], int d, const float (&x)[D])
{
    float distance[T];
#pragma unroll
    for (int t = 0; t < T; ++t)
        distance[t] = panel.distance(entry_of(words, t), x);
    int least = __float_as_int(distance[0]);
#pragma unroll
    for (int t = 1; t < T; t += 2)
        least = __vimin3_s32(least, __float_as_int(distance[t]), __float_as_int(distance[t + 1 < T ? t + 1 : t]));
    const float limit = nearly(__int_as_float(least), d);
    int sum = 0;
#pragma unroll
    for (int t = 0; t < T; ++t)
        sum += distance[t] <= limit ? entry_of(words, t) : 0;
    return sum / entry == 1 ? sum % entry : -1;
}

// The same of longer lists.
template <int D>
__device__ __noinline__ int nearest_of_many(const CellGrid &grid, const Panel<D> &panel, int d, const float *row,
                                            int cell, int most)
{
    float x[D], least = INFINITY, second = INFINITY;
    for (int f = 0; f < D; ++f)
        x[f] = f < d ? row[f] : 0.0f;
    int nearest = 0;
    const auto *head = reinterpret_cast<const std::uint16_t *>(grid.heads + cell);
    const auto *tail = reinterpret_cast<const std::uint16_t *>(grid.tails + std::int64_t{cell} * 3);
    for (int t = 1; t <= most; ++t) {
        const int j = t < 8 ? head[t] : tail[t - 8];
        const float distance = panel.distance(entry + j, x);
        second = fminf(second, fmaxf(least, distance));
        nearest = distance < least ? j : nearest;
        least = fminf(least, distance);
    }
    return second > nearly(least, d) ? nearest : -1;
}

// The lane's label, or -1: open. row: its values in memory.
template <int D>
__device__ inline int nearest_listed(const CellGrid &grid, const Panel<D> &panel, int d, const float (&x)[D],
                                     const float *row)
{
    const int cell = cell_of<D>(grid, x);
    const uint4 head = __ldg(grid.heads + cell);
    const int count = static_cast<int>(head.x & 0xffff);
    const bool listed = count <= cell_list;
    const int most = __reduce_max_sync(~0u, listed ? count : 0); // lists are filled up
    unsigned words[8] = {head.x, head.y, head.z, head.w, 0, 0, 0, 0};
    if (most > 7) {
        const uint4 tail = __ldg(grid.tails + std::int64_t{cell} * 3);
        words[4] = tail.x;
        words[5] = tail.y;
        words[6] = tail.z;
        words[7] = tail.w;
    }
    const int label = most <= 3    ? nearest_of<D, 3>(panel, words, d, x)
                      : most <= 5  ? nearest_of<D, 5>(panel, words, d, x)
                      : most <= 7  ? nearest_of<D, 7>(panel, words, d, x)
                      : most <= 9  ? nearest_of<D, 9>(panel, words, d, x)
                      : most <= 11 ? nearest_of<D, 11>(panel, words, d, x)
                      : most <= 15 ? nearest_of<D, 15>(panel, words, d, x)
                                   : nearest_of_many<D>(grid, panel, d, row, cell, most);
    return listed ? label : -1;
}

template <int D>
struct Row {
    float x[D];
    int last;
};

// Exact: d is D.
template <int D, bool Exact>
__device__ inline void load(const MoveArguments &a, int row, Row<D> &to)
{
    const int known = min(row, static_cast<int>(a.view.n) - 1);
    if constexpr (Exact)
        load_row<D>(a.view.values, known, D, to.x);
    else
        load_any_row<D>(a.view.values, known, a.view.d, to.x);
    to.last = a.last.get(known);
}

template <int D>
__device__ std::int32_t *counters_after(float *panel, int k, int copies)
{
    return reinterpret_cast<std::int32_t *>(panel) + ((k + 1) * D * copies + 1) / 2 * 2 + later_words;
}

template <int D, bool Exact>
__global__ void __launch_bounds__(threads, 2)
    cells_kernel(const __grid_constant__ MoveArguments a, const __grid_constant__ CellGrid grid, int copies)
{
    if (block_stopped(a.update) || !grid.state->serves)
        return;
    const Panel<D> panel = {reinterpret_cast<float *>(shared_words(0)), copies};
    std::int32_t *work = counters_after<D>(panel.values, a.view.k, copies);
    const MoveCounters counters = {static_cast<int>(work - shared_words(0)), a.view.k, a.view.d, a.replicas};
    panel.fill(a.view);
    counters.clear();
    counters.prepare_scales(a.view, a.floats);
    __syncthreads();
    auto *entries = reinterpret_cast<Later::Entry *>(work - later_words) + threadIdx.x / 32 * LaterRows::capacity;
    LaterRows later(entries);
    const int n = static_cast<int>(a.view.n),
              lane = static_cast<int>(threadIdx.x & 31); // a launch has fewer than 2^31 rows
    const int step = static_cast<int>(gridDim.x) * threads;
    int row = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
    Row<D> next;
    load<D, Exact>(a, row, next);
    for (bool end = row - lane >= n;; row += step, end = row - lane >= n) {
        if (!end) {
            const Row<D> now = next;
            load<D, Exact>(a, row + step, next);
            const int label = nearest_listed<D>(grid, panel, a.view.d, now.x,
                                                a.view.values + std::int64_t{min(row, n - 1)} * a.view.d);
            const bool changed = label != now.last && row < n;
            if (!__any_sync(~0u, changed))
                continue;
            later.push(changed, Later::entry(row, now.last, label));
        }
        later.take<D>(a, counters, end);
        if (end)
            break;
    }
    end_iteration(a, counters);
}

template <int D, bool Exact>
void launch(const Stage<float> &stage, MoveArguments a, const CellGrid &grid)
{
    const int copies = copies_of<D>(a.view.k);
    const auto bytes_of = [&](int replicas) {
        const auto panel = static_cast<std::size_t>(((a.view.k + 1) * D * copies + 1) / 2 * 2);
        return (panel + later_words) * 4 + MoveCounters::bytes(a.view.k, a.view.d, replicas);
    };
    a.replicas = 8;
    while (a.replicas > 1 && bytes_of(a.replicas) > block_bytes)
        a.replicas /= 2;
    const std::size_t bytes = bytes_of(a.replicas);
    launch_moves(stage, cells_kernel<D, Exact>, threads, bytes, threads, a, grid, copies);
}

} // namespace

void iterate_cells(const Stage<float> &stage, const MoveArguments &a, const Cells &cells)
{
    cells.prepare(a.update, stage.context.facts.multiprocessors, stage.stream);
    for_padded(a.view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        if (a.view.d == D)
            launch<D, true>(stage, a, cells.grid());
        else
            launch<D, false>(stage, a, cells.grid());
    });
    MoveArguments slots = a;
    slots.cells = cells.grid().state;
    iterate_slots(stage, slots);
}

} // namespace pgkm::cuda
