// register.cu (fused) - labels, feature sums and masses of low-dimensional float32 rows in one
// read, or labels alone. Design and error bound: register.cuh.
//
// Sums are 32-bit limbs in shared memory, `replicas` copies of each cell so that the lanes of
// a warp never meet; before a cell can take 512 additions the block adds all cells to 64-bit
// sums. Rows that the filter leaves open wait in a queue and are settled by whole warps.
#include "fused/register.cuh"

#include "plan/choose.hpp"
#include "device/limbs.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int queue_size = 1024;

struct Arguments {
    View<float>     view;
    Operands<float> operands;
    const Control  *control;
    Accumulators    sums;
    std::int32_t   *labels;
    int             tiles;      // tiles of rows between two flushes
};

// Cells of a cluster: two for each padded feature, one for the count of rows.
template <int D>
constexpr int components = 2 * D + 1;

// The block's shared memory, carved up.
struct Shared {
    float4       *factors; // per feature: what biased_limbs() needs, and the filter's shift
    float        *panel;
    std::int64_t *totals; // k x components
    std::int32_t *cells;  // k x components x replicas
    std::int32_t *queue;
    std::int32_t *queued;
};

template <int D>
__device__ Shared carve(const Arguments &a, int replicas)
{
    extern __shared__ float4 memory[];
    const int groups = a.operands.panel_groups(a.view.k);
    const int rows = replicas > 0 ? a.view.k * components<D> : 0;
    Shared shared;
    shared.totals = reinterpret_cast<std::int64_t *>(memory);
    shared.factors = reinterpret_cast<float4 *>(shared.totals + (rows + 1) / 2 * 2); // needs 16 bytes
    shared.panel = reinterpret_cast<float *>(shared.factors + 16);
    shared.cells = reinterpret_cast<std::int32_t *>(shared.panel + groups * a.operands.panel_stride());
    shared.queue = shared.cells + rows * replicas;
    shared.queued = shared.queue + queue_size;
    return shared;
}

// Adds a row to the replica of its lane; `fast`: biased limbs without 64-bit arithmetic.
template <int D, int R>
__device__ void add_row(const Arguments &a, const Shared &shared, std::int64_t row, int label, const float (&x)[D],
                        bool fast)
{
    std::int32_t *cell = shared.cells + label * (components<D> * R) + (static_cast<int>(threadIdx.x) & (R - 1));
    atomicAdd(cell + 2 * D * R, 1);
    if (fast) {
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const float4 factor = shared.factors[f];
            const Split limbs = biased_limbs(x[f], {factor.x, factor.y, factor.z});
            atomicAdd(cell + (2 * f) * R, limbs.hi);
            atomicAdd(cell + (2 * f + 1) * R, limbs.lo);
        }
        return;
    }
    for (int f = 0; f < a.view.d; ++f) {
        const Split limbs = plain_limbs(a.view, row, f);
        atomicAdd(cell + (2 * f) * R, limbs.hi);
        atomicAdd(cell + (2 * f + 1) * R, limbs.lo);
    }
}

// Moves all cells into the block's 64-bit sums; two steps, as biased cells need the row counts
// of their replica. A thread sums the replicas of one cell, starting at its own lane so that
// neighbours use different banks.
template <int D, int R>
__device__ void flush(const Arguments &a, const Shared &shared, bool fast)
{
    const int rows = a.view.k * components<D>;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
        const int cluster = r / components<D>, component = r - cluster * components<D>;
        if (component == 2 * D)
            continue;
        const std::int32_t *counts = shared.cells + (cluster * components<D> + 2 * D) * R;
        std::int64_t sum = 0;
        for (int i = 0; i < R; ++i) {
            const int replica = (i + static_cast<int>(threadIdx.x)) & (R - 1);
            std::int32_t *cell = shared.cells + r * R + replica;
            sum += fast ? unbias(*cell, counts[replica]) : *cell;
            *cell = 0;
        }
        shared.totals[r] += sum;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < a.view.k; j += blockDim.x) {
        const int r = j * components<D> + 2 * D;
        std::int64_t sum = 0;
        for (int i = 0; i < R; ++i) {
            std::int32_t *cell = shared.cells + r * R + ((i + threadIdx.x) & (R - 1));
            sum += *cell;
            *cell = 0;
        }
        shared.totals[r] += sum;
    }
}

template <int D>
__device__ void publish(const Arguments &a, const Shared &shared)
{
    const int rows = a.view.k * components<D>;
    for (int r = threadIdx.x; r < rows; r += blockDim.x) {
        const int cluster = r / components<D>, component = r - cluster * components<D>;
        if (shared.totals[r] == 0)
            continue;
        if (component < 2 * a.view.d)
            add64(a.sums.totals + (std::int64_t{cluster} * a.view.d) * 2 + component, shared.totals[r]);
        else if (component == 2 * D)
            add64(a.sums.masses + 2 * cluster + 1, shared.totals[r]);
    }
}

// Exact labels for the rows in the queue, one warp each.
template <int D, int R>
__device__ void settle_queue(const Arguments &a, const Shared &shared, std::int64_t window_row,
                             bool fast)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const int count = min(*shared.queued, queue_size);
    for (int q = static_cast<int>(threadIdx.x / 32); q < count; q += static_cast<int>(blockDim.x / 32)) {
        const std::int64_t row = window_row + shared.queue[q];
        const float *from = a.view.values + row * a.view.d;
        const Nearest nearest = settle_by_warp(from, a.view.centroids, a.view.k, a.view.d);
        // The lane that queued the row adds it: its replica's count of additions stays bounded.
        if (lane != (shared.queue[q] & 31))
            continue;
        if constexpr (R == 0) {
            a.labels[row] = nearest.label;
        } else {
            float x[D];
#pragma unroll
            for (int f = 0; f < D; ++f)
                x[f] = f < a.view.d ? from[f] : 0.0f;
            add_row<D, R>(a, shared, row, nearest.label, x, fast);
        }
    }
}

// R: replicas of the sums, 0 for labels alone.
template <int D, int P, int Few, int R>
__global__ void __launch_bounds__(Few > 0 ? 256 : 512, Few > 0 ? 3 : 1) register_kernel(Arguments a)
{
    constexpr bool Sums = R > 0;
    if (block_stopped(a.control))
        return;
    const Shared shared = carve<D>(a, R);
    const int groups = a.operands.panel_groups(a.view.k), stride = a.operands.panel_stride();
    for (int i = threadIdx.x; i < groups * stride; i += blockDim.x)
        shared.panel[i] = a.operands.panel[i];
    if (Sums) {
        const int rows = a.view.k * components<D>;
        for (int i = threadIdx.x; i < rows * R; i += blockDim.x)
            shared.cells[i] = 0;
        for (int i = threadIdx.x; i < rows; i += blockDim.x)
            shared.totals[i] = 0;
    }
    if (threadIdx.x == 0)
        *shared.queued = 0;
    bool fast = true;
    for (int f = 0; f < a.view.d; ++f)
        fast = fast && has_float_scale(a.view.feature_exponent[f]);
    if (threadIdx.x < D) {
        const int f = static_cast<int>(threadIdx.x);
        const FloatScale scale = float_scale(f < a.view.d && fast ? a.view.feature_exponent[f] : 0);
        shared.factors[f] = make_float4(scale.whole, scale.high, scale.inverse, f < a.view.d ? a.operands.shift[f] : 0.0f);
    }
    const float margin = register_margin(*a.operands.head, a.view.d);
    const std::int64_t tile_rows = std::int64_t{blockDim.x} * P, window_rows = tile_rows * a.tiles;
    __syncthreads();

    for (std::int64_t window = blockIdx.x * window_rows; window < a.view.n; window += gridDim.x * window_rows) {
        const std::int64_t end = min(window + window_rows, a.view.n);
        for (std::int64_t tile = window; tile < end; tile += tile_rows) {
            float x[P][D], negated[P][D];
#pragma unroll
            for (int p = 0; p < P; ++p) {
                const std::int64_t row = tile + p * blockDim.x + threadIdx.x;
                load_row<D>(a.view.values, min(row, a.view.n - 1), a.view.d, shared.factors, x[p], negated[p]);
            }
            Best best[P];
            filter<D, P, Few>(shared.panel, groups, stride, negated, best);
#pragma unroll
            for (int p = 0; p < P; ++p) {
                const std::int64_t row = tile + p * blockDim.x + threadIdx.x;
                if (row >= a.view.n)
                    continue;
                int label = best[p].index;
                if (!(best[p].second > best[p].least + margin)) {
                    const int place = atomicAdd(shared.queued, 1);
                    if (place < queue_size) {
                        shared.queue[place] = static_cast<std::int32_t>(row - window);
                        continue;
                    }
                    label = nearest_by_thread(a.view.values + row * a.view.d, a.view.centroids, a.view.k, a.view.d).label;
                }
                if (!Sums) {
                    a.labels[row] = label;
                    continue;
                }
                if (Few == 0) // read again: registers held the scores meanwhile
                    load_row<D>(a.view.values, row, a.view.d, shared.factors, x[p], negated[p]);
                add_row<D, Sums ? R : 1>(a, shared, row, label, x[p], fast);
            }
        }
        __syncthreads();
        settle_queue<D, R>(a, shared, window, fast);
        __syncthreads();
        if (threadIdx.x == 0)
            *shared.queued = 0;
        if (Sums)
            flush<D, Sums ? R : 1>(a, shared, fast);
        __syncthreads();
    }
    if (Sums)
        publish<D>(a, shared);
}

// Shared memory of a launch with R replicas (0: labels alone).
std::size_t shared_bytes(const Arguments &a, int replicas)
{
    const Shape shape = {a.view.n, a.view.d, a.view.k, false, false};
    if (replicas > 0)
        return static_cast<std::size_t>(fused_register_bytes(shape, replicas));
    return static_cast<std::size_t>(a.operands.panel_groups(a.view.k) * a.operands.panel_stride() + queue_size + 8) * 4 + 16 * sizeof(float4);
}

template <int D, int P, int Few, int R>
void launch(const Stage<float> &stage, Arguments a)
{
    const std::size_t bytes = shared_bytes(a, R);
    const int threads = Few == 0 && bytes > static_cast<std::size_t>(stage.context.facts.shared_bytes_per_block) / 3 ? 512 : 256;
    const auto kernel = register_kernel<D, P, Few, R>;
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(kernel, static_cast<int>(bytes));
    });
    int per_unit = 0;
    checked("cudaOccupancy", [&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, bytes);
    });
    const int tiles = R == 0 ? 4 : std::max(1, limb_additions / (threads / 32 * P * (32 / std::max(R, 1))));
    in_launches(a.view, 1e13, [&](std::int64_t first, std::int64_t rows) {
        Arguments part = a;
        part.view = slice(a.view, first, rows);
        if (R == 0)
            part.labels += first;
        // Few rows: windows of one tile, so that all multiprocessors get some.
        const int most = stage.context.facts.multiprocessors * std::max(per_unit, 1);
        const std::int64_t tile = std::int64_t{threads} * P;
        part.tiles = static_cast<int>(std::clamp<std::int64_t>(rows / (tile * most), 1, tiles));
        const int blocks = blocks_for(rows, static_cast<int>(tile) * part.tiles, most);
        kernel<<<blocks, threads, bytes, stage.stream>>>(part);
        launched("register_kernel");
    });
}

// As many replicas as leave room for two blocks.
template <int D, int P, int Few, bool Sums>
void launch_replicated(const Stage<float> &stage, const Arguments &a)
{
    if constexpr (!Sums) {
        launch<D, P, Few, 0>(stage, a);
    } else {
        const auto room = static_cast<std::size_t>(stage.context.facts.shared_bytes_per_block / 2 - 1024);
        if constexpr (Few > 0)
            launch<D, P, Few, 32>(stage, a);
        else if (shared_bytes(a, 32) <= room)
            launch<D, P, Few, 32>(stage, a);
        else
            launch<D, P, Few, 8>(stage, a);
    }
}

template <int D, bool Sums>
void launch_for(const Stage<float> &stage, const Arguments &a)
{
    if (a.view.k <= 4)
        return launch_replicated<D, D <= 4 ? 4 : D <= 8 ? 2 : 1, 4, Sums>(stage, a);
    if (a.view.k <= panel_group)
        return launch_replicated<D, D <= 4 ? 4 : D <= 8 ? 2 : 1, panel_group, Sums>(stage, a);
    launch_replicated<D, D <= 8 ? 4 : 2, 0, Sums>(stage, a);
}

template <bool Sums>
void dispatch(const Stage<float> &stage, const Arguments &a)
{
    switch (stage.operands.panel_d) {
    case 1: return launch_for<1, Sums>(stage, a);
    case 2: return launch_for<2, Sums>(stage, a);
    case 3: return launch_for<3, Sums>(stage, a);
    case 4: return launch_for<4, Sums>(stage, a);
    case 6: return launch_for<6, Sums>(stage, a);
    case 8: return launch_for<8, Sums>(stage, a);
    case 12: return launch_for<12, Sums>(stage, a);
    default: return launch_for<16, Sums>(stage, a);
    }
}

} // namespace

void fused_register(const Stage<float> &stage, const View<float> &view, const Accumulators &sums)
{
    dispatch<true>(stage, {view, stage.operands, stage.control, sums, nullptr, 0});
}

template <>
void assign_register<float>(const Stage<float> &stage, const View<float> &view, std::int32_t *labels)
{
    dispatch<false>(stage, {view, stage.operands, stage.control, {}, labels, 0});
}

} // namespace pgkm::cuda
