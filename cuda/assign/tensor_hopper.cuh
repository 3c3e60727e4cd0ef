// tensor_hopper.cuh - the filter of assign_tensor on a Hopper: wgmma fed by TMA, one pass over the columns.
//
// Shape: prepared rows (fp16, in the order of their pivots) times the columns of the rows' pivot. A block takes a tile
// of rows of one pivot after the other. One warp brings tiles and columns by TMA into a ring of stages (128-byte
// swizzle, 64 features a stage); two warpgroups multiply, each its half of the tile's rows by all columns of a stage.
// Full and empty barriers in shared memory pass the stages on, so that copies, products and scores of different stages
// overlap. Up to 256 features the rows of a tile stay in shared memory; beyond, they are streamed along with the
// columns.
//
// Each row has a limit: a score (tensor.cu) that the nearest centroid's cannot exceed. aim_kernel sets it from the
// row's last label (tensor_limits.cuh), where any label is right and a good one saves time; it falls as better columns
// are met. What lies within the limit goes on the row's list in shared memory. At the end of the tile a list of one is
// the label, a short list is measured exactly (measure_kernel), and rows with longer lists go through the second pass
// (tensor_passes.cuh).
#pragma once

#include "assign/tensor_limits.cuh"
#include "device/wgmma.cuh"
#include "plugin/tensor_map.hpp"

namespace pgkm::cuda::tensor {
namespace {

constexpr int list_slots = 16; // entries of a row's list in shared memory

// Rows and columns of a tile; Steps of 64 features that stay (0: rows are streamed), stages of the ring.
template <int WarpgroupRows, int TileColumns, int Steps, int Stages>
struct HopperShape {
    static constexpr int group_rows = WarpgroupRows, rows = 2 * group_rows, columns = TileColumns, steps = Steps,
                         stages = Stages;
    static constexpr int blocks_of_64 = group_rows / 64;
    static constexpr int row_bytes = rows * 128, column_bytes = columns * 128; // of one step
    static constexpr int stage_bytes = column_bytes + (steps == 0 ? row_bytes : 0);
    static constexpr int ring_at = steps * row_bytes, lists_at = ring_at + stages * stage_bytes;
    static constexpr int counts_at = lists_at + rows * list_slots * 8, left_at = counts_at + rows * 8;
    static constexpr int barriers_at = left_at + 2 * 2 * columns * 4;
    static constexpr int bytes = barriers_at + 256 + 1024; // the ring starts at a multiple of 1,024
    static_assert(bytes <= 232448);
};

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)

// Never launched: hopper_usable() looks for the other one.
template <typename T, typename S>
__global__ void filter_kernel(const __grid_constant__ CUtensorMap, const __grid_constant__ CUtensorMap, View<T>,
                              const Control *, Layout<T>, std::int32_t *, int)
{
}

#else

struct Entry {
    float score;
    std::int32_t position;
};

// The shared memory of filter_kernel.
template <typename S>
struct HopperBlock {
    char *memory;
    unsigned base;
    __device__ explicit HopperBlock(char *raw)
    {
        memory = raw + (1024 - shared_address(raw) % 1024) % 1024;
        base = shared_address(memory);
    }
    __device__ unsigned stage(unsigned s) const { return base + S::ring_at + s * S::stage_bytes; }
    __device__ unsigned full(unsigned s) const { return base + S::barriers_at + s * 8; }
    __device__ unsigned empty(unsigned s) const { return full(S::stages + s); }
    __device__ unsigned rows_full() const { return full(2 * S::stages); } // the next tile, and its rows where they stay
    __device__ unsigned rows_empty() const { return full(2 * S::stages + 1); }
    __device__ std::int32_t &tile() const
    {
        return *reinterpret_cast<std::int32_t *>(memory + S::barriers_at + 8 * (2 * S::stages + 2));
    }
    __device__ Entry *list(int row) const { return reinterpret_cast<Entry *>(memory + S::lists_at) + row * list_slots; }
    __device__ std::int32_t *counts() const { return reinterpret_cast<std::int32_t *>(memory + S::counts_at); }
    __device__ float *limits() const { return reinterpret_cast<float *>(counts() + S::rows); }
    // What the scores of a tile of columns start from; each warpgroup has two of them that take turns.
    __device__ float *left(int warpgroup, int turn) const
    {
        return reinterpret_cast<float *>(memory + S::left_at) + (warpgroup * 2 + turn) * S::columns;
    }
};

// One thread: tiles, rows and columns.
template <typename T, typename S>
__device__ inline void bring(const CUtensorMap *rows, const CUtensorMap *columns, const Control *control,
                             const Layout<T> &l, const HopperBlock<S> &block, int tiles)
{
    const int steps = (l.d32 + 63) / 64;
    unsigned s = 0, phase = 1, tile_phase = 1;
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x), tile_phase ^= 1) {
        const bool ends = t >= tiles || stopped(control) || l.tiles[t].group < 0;
        wait_barrier(block.rows_empty(), tile_phase);
        atomicExch(&block.tile(), ends ? -1 : t); // an atomic, since racecheck does not see what barriers order
        if (ends)
            return arrive(block.rows_full());
        const TileFacts tile = l.tiles[t];
        if constexpr (S::steps > 0) {
            arrive_expecting(block.rows_full(), steps * S::row_bytes);
            for (int f = 0; f < steps; ++f)
                copy_box(block.base + f * S::row_bytes, rows, block.rows_full(), f * 64, tile.first);
        } else {
            arrive(block.rows_full());
        }
        const int first = tile.group * l.columns;
        for (int c = 0; c < tile.wanted; c += S::columns)
            for (int f = 0; f < steps; ++f) {
                wait_barrier(block.empty(s), phase);
                arrive_expecting(block.full(s), S::stage_bytes);
                copy_box(block.stage(s), columns, block.full(s), f * 64, first + c);
                if constexpr (S::steps == 0)
                    copy_box(block.stage(s) + S::column_bytes, rows, block.full(s), f * 64, tile.first);
                if (++s == S::stages) {
                    s = 0;
                    phase ^= 1;
                }
            }
    }
}

// Keeps of each row's list what its limit allows. Thread i has row i of the warpgroup.
template <typename S>
__device__ inline void shorten(const HopperBlock<S> &block, int row)
{
    const int count = block.counts()[row];
    if (count < 3 || count > list_slots)
        return;
    const float limit = block.limits()[row];
    Entry *list = block.list(row);
    int kept = 0;
    for (int i = 0; i < count; ++i)
        if (list[i].score <= limit)
            list[kept++] = list[i];
    block.counts()[row] = kept;
}

// The row's label from its list, or a place on the lists of what is still open.
template <typename T, typename S>
__device__ inline void conclude(const View<T> &view, const Layout<T> &l, const TileFacts &tile,
                                const HopperBlock<S> &block, int at, std::int32_t *labels)
{
    const bool there = at < tile.count;
    const std::int32_t place = tile.first + (there ? at : 0);
    const std::int64_t cells = std::int64_t{tile.group} * l.columns;
    const Entry *list = block.list(at);
    const int count = there ? block.counts()[at] : 0;
    float limit = block.limits()[at];
    FoundRow found = {l.order[place], 0, {}};
    if (count <= list_slots && limit < 0x1p100f) {
        // The exact threshold of the best.
        Entry best = {infinity(), 0};
        for (int i = 0; i < count; ++i)
            if (list[i].score < best.score)
                best = list[i];
        if (count > 1) {
            float2 sums = l.measures[place];
            widen_lengths(sums.x, sums.y);
            RowFacts<1> facts;
            facts.square[0] = sums.x;
            facts.lost[0] = sums.y;
            facts.widening = __float_as_int(tile.widening);
            limit = fminf(limit, threshold_of(facts, 0, best.score, l.column[cells + best.position],
                                              l.residual[cells + best.position], view.d));
        }
        for (int i = 0; i < count; ++i)
            if (list[i].score <= limit) {
                if (found.count < found_most)
                    found.centroid[found.count] = l.centroid[cells + list[i].position];
                ++found.count;
            }
    }
    const bool bounded = limit < 0x1p100f && tile.wanted > 0;
    if (there && bounded && found.count == 1)
        labels[found.row] = found.centroid[0];
    std::int32_t position;
    const bool short_list = there && bounded && found.count > 1 && found.count <= found_most;
    append_by_warp(&l.head->found, short_list, position);
    if (short_list && position < l.found_room)
        l.found[position] = found;
    const bool open =
        there && bounded && ((short_list && position >= l.found_room) || found.count == 0 || found.count > found_most);
    append_by_warp(&l.head->ambiguous[tile.group], open, position);
    if (open) {
        l.ambiguous[l.groups_at->offset[tile.group] + position] = place;
        l.threshold[l.groups_at->offset[tile.group] + position] = limit;
    }
    append_by_warp(&l.head->settle, there && !bounded, position);
    if (there && !bounded)
        l.settle[position] = found.row;
}

template <typename T, typename S>
__global__ void __launch_bounds__(384, 1)
    filter_kernel(const __grid_constant__ CUtensorMap rows, const __grid_constant__ CUtensorMap columns, View<T> view,
                  const Control *control, Layout<T> l, std::int32_t *labels, int tiles)
{
    extern __shared__ char raw[];
    const HopperBlock<S> block(raw);
    if (block_stopped(control))
        return;
    constexpr int warps = 8, mine = 2 * S::blocks_of_64; // rows of a thread
    if (threadIdx.x < S::stages) {
        init_barrier(block.full(threadIdx.x), 1);
        init_barrier(block.empty(threadIdx.x), warps);
    }
    if (threadIdx.x == 0) {
        init_barrier(block.rows_full(), 1);
        init_barrier(block.rows_empty(), warps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    const int warpgroup = static_cast<int>(threadIdx.x) / 128;
    if (warpgroup == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256)
            bring<T, S>(&rows, &columns, control, l, block, tiles);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int t = static_cast<int>(threadIdx.x) % 128, lane = t % 32;
        const auto join = [&] { asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory"); };
        const auto row_of = [&](int i) {
            return warpgroup * S::group_rows + i / 2 * 64 + t / 32 * 16 + lane / 4 + i % 2 * 8;
        };
        const int steps = (l.d32 + 63) / 64,
                  last = (l.d32 - (steps - 1) * 64) / 16; // sixteens of the last step: two or four
        unsigned s = 0, phase = 0, tile_phase = 0;
        for (;; tile_phase ^= 1) {
            wait_barrier(block.rows_full(), tile_phase);
            const int number = __shfl_sync(~0u, lane == 0 ? atomicAdd(&block.tile(), 0) : 0, 0);
            if (number < 0)
                break;
            const TileFacts tile = l.tiles[number];
            float limit[mine];
            Slack slack[mine];
#pragma unroll
            for (int i = 0; i < mine; ++i) {
                const bool there = row_of(i) < tile.count;
                const std::int32_t place = tile.first + (there ? row_of(i) : 0);
                limit[i] = there ? l.threshold[place] : -infinity();
                slack[i] = l.slack[place];
            }
            if (t < S::group_rows)
                block.counts()[warpgroup * S::group_rows + t] = 0;
            for (int c = 0; c < tile.wanted; c += S::columns) {
                float *left = block.left(warpgroup, c / S::columns % 2);
                for (int j = t; j < S::columns; j += 128) {
                    const Column column = c + j < tile.wanted ? l.column[std::int64_t{tile.group} * l.columns + c + j]
                                                              : Column{infinity(), 0.0f};
                    left[j] = fmaf(-tile.widening, column.weight, column.norm);
                }
                float acc[S::blocks_of_64][S::columns / 2];
                int before = -1;
                for (int f = 0; f < steps; ++f) {
                    wait_barrier(block.full(s), phase);
                    const unsigned b = block.stage(s);
                    const unsigned a = (S::steps > 0 ? block.base + f * S::row_bytes : b + S::column_bytes) +
                                       warpgroup * S::group_rows * 128;
                    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                    const auto sixteen = [&](int q) {
#pragma unroll
                        for (int m = 0; m < S::blocks_of_64; ++m)
                            multiply(acc[m], descriptor(a + m * 8192 + q * 32), descriptor(b + q * 32), f > 0 || q > 0);
                    };
                    sixteen(0);
                    sixteen(1);
                    if (f + 1 < steps || last == 4) {
                        sixteen(2);
                        sixteen(3);
                    }
                    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                    if (before >= 0) {
                        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                        if (lane == 0)
                            arrive(block.empty(before));
                    }
                    before = static_cast<int>(s);
                    if (++s == S::stages) {
                        s = 0;
                        phase ^= 1;
                    }
                }
                asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
                __syncwarp(); // lane 0 speaks for what the whole warp has read
                if (lane == 0) {
                    arrive(block.empty(before));
                    if (c + S::columns >= tile.wanted && S::steps > 0)
                        arrive(block.rows_empty());
                }
                join(); // what the scores start from is there
                const float2 *starts = reinterpret_cast<const float2 *>(left) + lane % 4;
                constexpr int strips = 4; // of eight columns, two of them this thread's, that are looked at together
#pragma unroll
                for (int q = 0; q < S::columns / 8; q += strips) {
                    float2 start[strips];
#pragma unroll
                    for (int j = 0; j < strips; ++j)
                        start[j] = starts[(q + j) * 4];
#pragma unroll
                    for (int i = 0; i < mine; ++i) {
                        float *x = &acc[i / 2][q * 4 + i % 2 * 2];
                        float least = infinity();
#pragma unroll
                        for (int j = 0; j < strips; ++j) {
                            x[j * 4] = fmaf(x[j * 4], -2.0f, start[j].x);
                            x[j * 4 + 1] = fmaf(x[j * 4 + 1], -2.0f, start[j].y);
                            least = fminf(least, fminf(x[j * 4], x[j * 4 + 1]));
                        }
                        if (least <= limit[i]) {
                            limit[i] = fminf(limit[i], limit_of(least, slack[i], tile.residual));
#pragma unroll
                            for (int j = 0; j < 2 * strips; ++j)
                                if (x[j / 2 * 4 + j % 2] <= limit[i]) {
                                    const int slot = atomicAdd(block.counts() + row_of(i), 1);
                                    if (slot < list_slots)
                                        block.list(row_of(i))[slot] = {x[j / 2 * 4 + j % 2],
                                                                       c + (q + j / 2) * 8 + lane % 4 * 2 + j % 2};
                                }
                        }
                    }
                }
#pragma unroll
                for (int i = 0; i < mine; ++i) {
                    limit[i] = fminf(limit[i], __shfl_xor_sync(~0u, limit[i], 1));
                    limit[i] = fminf(limit[i], __shfl_xor_sync(~0u, limit[i], 2));
                }
                // Lists grow with the number of times that the columns seen have doubled.
                const int seen = c / S::columns + 1;
                if ((seen & (seen - 1)) == 0 && c + S::columns < tile.wanted) {
#pragma unroll
                    for (int i = 0; i < mine; ++i)
                        block.limits()[row_of(i)] = limit[i];
                    join();
                    if (t < S::group_rows)
                        shorten(block, warpgroup * S::group_rows + t);
                }
            }
#pragma unroll
            for (int i = 0; i < mine; ++i)
                block.limits()[row_of(i)] = limit[i];
            __syncwarp();
            if (lane == 0 && (S::steps == 0 || tile.wanted == 0))
                arrive(block.rows_empty());
            join();
            if (t < S::group_rows)
                conclude(view, l, tile, block, warpgroup * S::group_rows + t, labels);
            join();
        }
    }
}

#endif

// Rows with a short list, measured by the contract's distance: four lanes a row.
template <typename T>
__global__ void __launch_bounds__(256)
    measure_kernel(View<T> view, const Control *control, Layout<T> l, std::int32_t *labels)
{
    const int lane = static_cast<int>(threadIdx.x & 3), stride = static_cast<int>(gridDim.x * (blockDim.x / 4));
    const int count = min(l.head->found, l.found_room);
    for (int i = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 4); __any_sync(~0u, i < count);
         i += stride) {
        if (__any_sync(~0u, stopped(control)))
            return;
        Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
        const FoundRow &found = l.found[i < count ? i : 0];
        for (int j = lane; j < (i < count ? found.count : 0); j += 4) {
            const Nearest next = {distance_ahead(view.values + std::int64_t{found.row} * view.d,
                                                 view.centroids + std::int64_t{found.centroid[j]} * view.d, view.d),
                                  found.centroid[j]};
            if (before(next, mine))
                mine = next;
        }
        for (int offset = 2; offset > 0; offset >>= 1) {
            const Nearest other = {__shfl_xor_sync(~0u, mine.distance, offset),
                                   __shfl_xor_sync(~0u, mine.label, offset)};
            if (before(other, mine))
                mine = other;
        }
        if (lane == 0 && i < count)
            labels[found.row] = mine.label;
    }
}

template <typename T, typename S>
void hopper_pass(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    const auto kernel = filter_kernel<T, S>;
    checked("cudaFuncSetAttribute", [&] { return allow_shared_memory(kernel, S::bytes); });
    const int tiles = static_cast<int>((view.n + S::rows - 1) / S::rows) + max_groups;
    aim_kernel<T, S::rows><<<static_cast<unsigned>(tiles), 256, 0, stage.stream>>>(view, stage.control, l, labels);
    launched("aim_kernel");
    const CUtensorMap rows = tensor_map(l.halves, view.n, l.d8, S::rows);
    const CUtensorMap columns = tensor_map(l.table, std::int64_t{l.groups} * l.columns, l.d32, S::columns);
    kernel<<<static_cast<unsigned>(stage.context.facts.multiprocessors), 384, S::bytes, stage.stream>>>(
        rows, columns, view, stage.control, l, labels, tiles);
    launched("filter_kernel");
    measure_kernel<T><<<static_cast<unsigned>(stage.context.facts.multiprocessors * 8), 256, 0, stage.stream>>>(
        view, stage.control, l, labels);
    launched("measure_kernel");
}

// Whether the kernel was compiled for this very generation.
template <typename T>
bool hopper_usable(const Context &context)
{
    if (context.facts.capability != 90)
        return false;
    static const bool compiled = [] {
        cudaFuncAttributes attributes;
        checked("cudaFuncGetAttributes",
                [&] { return cudaFuncGetAttributes(&attributes, filter_kernel<T, HopperShape<128, 128, 2, 7>>); });
        return attributes.ptxVersion >= 90;
    }();
    return compiled;
}

template <typename T>
void hopper_filter(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    // Few rows in small tiles, for all multiprocessors to have some.
    const bool few = view.n < std::int64_t{512} * stage.context.facts.multiprocessors;
    if (l.d32 > 256)
        hopper_pass<T, HopperShape<64, 256, 0, 4>>(stage, view, l, labels);
    else if (few)
        hopper_pass<T, HopperShape<64, 128, 4, 6>>(stage, view, l, labels);
    else if (l.d32 <= 128)
        hopper_pass<T, HopperShape<128, 128, 2, 7>>(stage, view, l, labels);
    else
        hopper_pass<T, HopperShape<128, 128, 4, 3>>(stage, view, l, labels);
}

} // namespace
} // namespace pgkm::cuda::tensor
