// tensor_passes.cuh - the two passes over row tiles: find the leaders, collect the candidates.
//
// Pass 1 keeps, per row, the least score and the second least; a row whose second lies above
// the threshold is done. The other rows go through pass 2, which lists every centroid below
// the row's threshold and measures those exactly.
#pragma once

#include "tensor_filter.cuh"

namespace pgkm::cuda::tensor {
namespace {

// The t-th tile of `rows` rows over the groups' lists; group -1 when there is none.
__device__ inline Rows tile_at(const std::int32_t *counts, const std::int32_t *offsets, int t, int rows)
{
    for (int g = 0; g < max_groups; ++g) {
        const int tiles = (counts[g] + rows - 1) / rows;
        if (t < tiles)
            return {g, counts[g] - t * rows, offsets[g] + t * rows, nullptr};
        t -= tiles;
    }
    return {-1, 0, 0, nullptr};
}

// Starts the copies and notes the rows' bounds; ends with a barrier.
template <typename T, int WarpRows>
__device__ inline void begin_tile(const View<T> &view, const Layout<T> &l, const Rows &rows, const Block<WarpRows> &block,
                                  Stream<T, WarpRows> &stream)
{
    constexpr int size = Shape8<WarpRows>::rows;
    __syncthreads();
    if (threadIdx.x == 0)
        block.facts->furthest = block.facts->widening = 0;
    stream.begin(rows);
    __syncthreads();
    const auto place_of = [&](int at) {
        return at >= rows.count ? -1 : rows.places == nullptr ? rows.first + at : rows.places[at];
    };
    if (l.halves == nullptr) {
        convert_rows<size>(view, l, rows.group, rows.places, rows.first, rows.count, block.tile,
                           [&](int at, float square, float lost) {
                               note_row(*block.facts, *l.head, rows.group, view.d, at, place_of(at), square, lost);
                           });
    } else if (const int at = static_cast<int>(threadIdx.x); at < size) {
        const int place = place_of(at);
        const float2 sums = place < 0 ? float2{0.0f, 0.0f} : l.measures[place];
        note_row(*block.facts, *l.head, rows.group, view.d, at, place, sums.x, sums.y);
    }
    __syncthreads();
}

// Columns that the tile's rows can reach.
template <typename T, int WarpRows>
__device__ inline int columns_of(const Layout<T> &l, int g, const Block<WarpRows> &block)
{
    if (!l.groups_at->usable || l.head->overflow)
        return 0;
    return l.head->bucket_end[g][bucket_of(__int_as_float(block.facts->furthest))];
}

// Brings the leaders of a row together, over lanes and warps, and decides.
template <typename T, int WarpRows>
__device__ inline void decide(const View<T> &view, const Layout<T> &l, int g, const Block<WarpRows> &block,
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
    const std::int32_t place = block.facts->place[at];
    const std::int32_t row = place < 0 ? -1 : l.order[place];
    const std::int64_t cell = std::int64_t{g} * l.columns + max(mine.column, 0);
    const std::int32_t label = l.centroid[cell];
    float threshold = infinity();
    if (mine.column >= 0)
        threshold = threshold_of(*block.facts, at, mine.best, l.column[cell], l.residual[cell], view.d);
    const bool bounded = threshold < 0x1p100f; // false for NaN too
    const bool open = row >= 0 && bounded && mine.second <= threshold, left = row >= 0 && !bounded;
    std::int32_t position;
    append_by_warp(&l.head->ambiguous[g], open, position);
    if (open) {
        l.ambiguous[l.groups_at->offset[g] + position] = place;
        l.threshold[l.groups_at->offset[g] + position] = threshold;
    }
    append_by_warp(&l.head->settle, left, position);
    if (left)
        l.settle[position] = row;
    if (row >= 0 && bounded && !open)
        labels[row] = label;
}

template <typename T, int WarpRows>
__global__ void __launch_bounds__(filter_threads, 2) find_kernel(View<T> view, const Control *control, Layout<T> l,
                                                                 std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    using S = Shape8<WarpRows>;
    const Block<WarpRows> block(memory, view.d);
    Stream<T, WarpRows> stream(l, view.d, shared_address(block.tile), shared_address(block.ring));
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        const Rows rows = tile_at(l.groups_at->count, l.groups_at->offset, t, S::rows);
        // All threads must agree: the flag may change between their reads.
        if (__syncthreads_or(rows.group < 0 || stopped(control)))
            return;
        begin_tile(view, l, rows, block, stream);
        Leading leading[4];
        for (Leading &mine : leading)
            mine = {infinity(), infinity(), -1};
        const Column *columns = l.column + std::int64_t{rows.group} * l.columns;
        const float widening = __int_as_float(block.facts->widening);
        stream.run(columns_of(l, rows.group, block), [&](int first, const auto &acc) {
            each_score<S>(columns, first, widening, acc,
                          [&](int i, int column, float score) { leading[i].add(column, score); });
        });
        decide(view, l, rows.group, block, leading, labels);
    }
}

// Four lanes per row measure its candidates; rows with too many are left to settle().
template <typename T, int WarpRows>
__device__ inline void measure_found(const View<T> &view, const Layout<T> &l, int g, const Block<WarpRows> &block,
                                     std::int32_t *labels)
{
    const int lane = static_cast<int>(threadIdx.x & 3);
    for (int at = static_cast<int>(threadIdx.x / 4); at < Shape8<WarpRows>::rows; at += filter_threads / 4) {
        const std::int32_t place = block.facts->place[at], row = place < 0 ? -1 : l.order[place];
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
    const Block<WarpRows> block(memory, view.d);
    Stream<T, WarpRows> stream(l, view.d, shared_address(block.tile), shared_address(block.ring));
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        Rows rows = tile_at(l.head->ambiguous, l.groups_at->offset, t, S::rows);
        if (__syncthreads_or(rows.group < 0 || stopped(control)))
            return;
        const float *thresholds = l.threshold + rows.first;
        rows.places = l.ambiguous + rows.first;
        for (int at = static_cast<int>(threadIdx.x); at < S::rows; at += filter_threads) {
            block.found->count[at] = 0;
            block.found->threshold[at] = at < rows.count ? thresholds[at] : -infinity();
        }
        begin_tile(view, l, rows, block, stream);
        float threshold[4];
        for (int i = 0; i < 4; ++i)
            threshold[i] = block.found->threshold[tile_row<S>(i)];
        const Column *columns = l.column + std::int64_t{rows.group} * l.columns;
        const float widening = __int_as_float(block.facts->widening);
        stream.run(columns_of(l, rows.group, block), [&](int first, const auto &acc) {
            each_score<S>(columns, first, widening, acc, [&](int i, int column, float score) {
                if (!(score <= threshold[i]))
                    return;
                const int at = tile_row<S>(i), slot = atomicAdd(&block.found->count[at], 1);
                if (slot < candidates)
                    block.found->position[at][slot] = column;
            });
        });
        measure_found(view, l, rows.group, block, labels);
    }
}

} // namespace
} // namespace pgkm::cuda::tensor
