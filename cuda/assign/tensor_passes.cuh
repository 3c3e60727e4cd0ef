// tensor_passes.cuh - the kernels of the two passes.
#pragma once

#include "tensor_filter.cuh"

namespace pgkm::cuda::tensor {
namespace {

// Where the tiles of each group begin, for lists of these lengths.
struct TileMap {
    int group;
    int first; // row within the group's list
};

// The t-th tile of `rows` rows over all groups; group -1 when there is none.
__device__ inline TileMap tile_at(const std::int32_t *counts, int t, int rows)
{
    for (int g = 0; g < max_groups; ++g) {
        const int tiles = (counts[g] + rows - 1) / rows;
        if (t < tiles)
            return {g, t * rows};
        t -= tiles;
    }
    return {-1, 0};
}

// Brings the leaders of a row together, over lanes and warps, and decides.
template <typename T, int WarpRows>
__device__ inline void decide(const View<T> &view, const Layout<T> &l, int g, const Block<T, WarpRows> &block,
                              Leading (&leading)[4], std::int32_t *labels)
{
    using S = Shape8<WarpRows>;
    Leading (*shared)[S::rows] = reinterpret_cast<Leading (*)[S::rows]>(block.ring);
    const int warp = static_cast<int>(threadIdx.x / 32), at = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        leading[i].merge(from_lane(leading[i], 1));
        leading[i].merge(from_lane(leading[i], 2));
        if ((threadIdx.x & 3) == 0)
            shared[warp % S::warp_columns][tile_row<S>(i)] = leading[i];
    }
    __syncthreads();
    if (at >= S::rows)
        return;
    Leading mine = shared[0][at];
    for (int w = 1; w < S::warp_columns; ++w)
        mine.merge(shared[w][at]);
    const std::int32_t row = block.facts->row[at];
    const std::int64_t base = std::int64_t{g} * l.columns;
    float threshold = infinity();
    if (mine.column >= 0)
        threshold = threshold_of(*l.head, *block.facts, at, g, mine, l.column[base + mine.column], view.d);
    const bool bounded = threshold < 0x1p100f; // false for NaN too
    const bool open = row >= 0 && bounded && mine.second <= threshold;
    std::int32_t position;
    append_by_warp(&l.head->ambiguous[g], open, position);
    if (open) {
        l.ambiguous[l.head->offset[g] + position] = row;
        l.threshold[l.head->offset[g] + position] = threshold;
    }
    append_by_warp(&l.head->settle, row >= 0 && !bounded, position);
    if (row >= 0 && !bounded)
        l.settle[position] = row;
    if (row >= 0 && bounded && !open)
        labels[row] = l.centroid[base + mine.column];
}

// Columns that the tile's rows can reach.
template <typename T, int WarpRows>
__device__ inline int columns_of(const Layout<T> &l, int g, const Block<T, WarpRows> &block)
{
    return l.head->bucket_end[g][bucket_of(__int_as_float(block.facts->furthest))];
}

template <typename T, int WarpRows>
__global__ void __launch_bounds__(filter_threads, 2) find_kernel(View<T> view, const Control *control, Layout<T> l,
                                                                 std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    using S = Shape8<WarpRows>;
    const Block<T, WarpRows> block(memory, view.d);
    if (stopped(control))
        return;
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        const TileMap map = tile_at(l.head->count, t, S::rows);
        if (map.group < 0)
            return;
        const int g = map.group;
        __syncthreads();
        if (threadIdx.x == 0)
            block.facts->furthest = 0;
        __syncthreads();
        load_rows(view, l, g, l.order + l.head->offset[g] + map.first, l.head->count[g] - map.first, block.tile,
                  *block.facts);
        __syncthreads();
        Leading leading[4];
        for (Leading &mine : leading)
            mine = {infinity(), infinity(), -1};
        if (l.head->usable) {
            const float *norm = l.norm + std::int64_t{g} * l.columns;
            stream_columns(view, l, g, columns_of(l, g, block), block, [&](int first, const auto &acc) {
                each_score<S>(norm, first, acc, [&](int i, int column, float score) { leading[i].add(column, score); });
            });
        }
        decide(view, l, g, block, leading, labels);
    }
}

// Four lanes per row measure its candidates; rows with too many are left to settle().
template <typename T, int WarpRows>
__device__ inline void measure_found(const View<T> &view, const Layout<T> &l, int g, const Block<T, WarpRows> &block,
                                     std::int32_t *labels)
{
    using S = Shape8<WarpRows>;
    const int lane = static_cast<int>(threadIdx.x & 3);
    for (int at = static_cast<int>(threadIdx.x / 4); at < S::rows; at += filter_threads / 4) {
        const std::int32_t row = block.facts->row[at];
        const int count = block.found->count[at];
        const bool fits = count >= 1 && count <= candidates;
        Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
        for (int i = lane; row >= 0 && fits && i < count; i += 4) {
            const int j = l.centroid[std::int64_t{g} * l.columns + block.found->position[at][i]];
            const Nearest next = {exact_distance(view.values + std::int64_t{row} * view.d,
                                                 view.centroids + std::int64_t{j} * view.d, view.d),
                                  j};
            if (before(next, mine))
                mine = next;
        }
        __syncwarp();
        for (int offset = 2; offset > 0; offset >>= 1) {
            const Nearest other = {__shfl_xor_sync(~0u, mine.distance, offset), __shfl_xor_sync(~0u, mine.label, offset)};
            if (before(other, mine))
                mine = other;
        }
        std::int32_t position;
        const bool left = lane == 0 && row >= 0 && !fits;
        append_by_warp(&l.head->settle, left, position);
        if (left)
            l.settle[position] = row;
        else if (lane == 0 && row >= 0)
            labels[row] = mine.label;
    }
}

template <typename T, int WarpRows>
__global__ void __launch_bounds__(filter_threads, 2) collect_kernel(View<T> view, const Control *control, Layout<T> l,
                                                                    std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    using S = Shape8<WarpRows>;
    const Block<T, WarpRows> block(memory, view.d);
    if (stopped(control))
        return;
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        const TileMap map = tile_at(l.head->ambiguous, t, S::rows);
        if (map.group < 0)
            return;
        const int g = map.group, base = l.head->offset[g] + map.first, count = l.head->ambiguous[g] - map.first;
        __syncthreads();
        if (threadIdx.x == 0)
            block.facts->furthest = 0;
        for (int at = static_cast<int>(threadIdx.x); at < S::rows; at += filter_threads) {
            block.found->count[at] = 0;
            block.found->threshold[at] = at < count ? l.threshold[base + at] : -infinity();
        }
        __syncthreads();
        load_rows(view, l, g, l.ambiguous + base, count, block.tile, *block.facts);
        __syncthreads();
        float threshold[4];
        for (int i = 0; i < 4; ++i)
            threshold[i] = block.found->threshold[tile_row<S>(i)];
        const float *norm = l.norm + std::int64_t{g} * l.columns;
        stream_columns(view, l, g, columns_of(l, g, block), block, [&](int first, const auto &acc) {
            each_score<S>(norm, first, acc, [&](int i, int column, float score) {
                if (score > threshold[i])
                    return;
                const int at = tile_row<S>(i), slot = atomicAdd(&block.found->count[at], 1);
                if (slot < candidates)
                    block.found->position[at][slot] = column;
            });
        });
        measure_found(view, l, g, block, labels);
    }
}

} // namespace
} // namespace pgkm::cuda::tensor
