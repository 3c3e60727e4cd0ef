// tensor_passes.cuh - the two passes over row tiles: find the leaders, collect the candidates.
//
// Pass 1 keeps, per row, the least score and the second least; a row whose second lies above
// the threshold is done. The other rows go through pass 2, which lists every centroid below
// the row's threshold and measures those exactly.
#pragma once

#include "assign/tensor_filter.cuh"
#include "device/best.cuh"

namespace pgkm::cuda::tensor {
namespace {

// Tiles of all groups in one numbering. Lane g of every warp knows group g.
class TileMap {
  public:
    __device__ TileMap(const std::int32_t *counts, const std::int32_t *offsets, int rows) : rows_(rows)
    {
        const int lane = static_cast<int>(threadIdx.x & 31);
        count_ = lane < most_pivots ? counts[lane] : 0;
        offset_ = lane < most_pivots ? offsets[lane] : 0;
        end_ = (count_ + rows - 1) / rows;
        for (int step = 1; step < most_pivots; step <<= 1) {
            const int before = __shfl_up_sync(~0u, end_, step);
            end_ += lane >= step ? before : 0;
        }
    }
    // The t-th tile; group -1 when there is none.
    __device__ Rows at(int t) const
    {
        const int g = __popc(__ballot_sync(~0u, t >= end_) & ((1u << most_pivots) - 1));
        const int from = g == 0 ? 0 : __shfl_sync(~0u, end_, g - 1), skip = (t - from) * rows_;
        const int count = __shfl_sync(~0u, count_, g), offset = __shfl_sync(~0u, offset_, g);
        return {g == most_pivots ? -1 : g, count - skip, offset + skip, nullptr};
    }

  private:
    int rows_, count_, offset_, end_;
};

// What a thread brings to begin_tile() about one row, loaded a tile ahead.
struct RowInput {
    std::int32_t place;
    std::int32_t row; // -1: none
    float2 sums;
};

template <typename T, typename S>
__device__ inline RowInput fetch_row(const Layout<T> &l, const Rows &rows)
{
    const int at = static_cast<int>(threadIdx.x);
    RowInput input = {0, -1, {0.0f, 0.0f}};
    if (at < S::rows && at < rows.count) {
        input.place = rows.places == nullptr ? rows.first + at : rows.places[at];
        input.row = l.rows.order[input.place];
        input.sums = l.rows.measures[input.place];
    }
    return input;
}

// Asks the second-level cache for the tile's rows.
template <typename T, typename S>
__device__ inline void prefetch_rows(const Layout<T> &l, const Rows &rows)
{
    if (rows.group < 0)
        return;
    const char *from = reinterpret_cast<const char *>(l.rows.halves + std::int64_t{rows.first} * l.rows.d8);
    const int bytes = min(S::rows, rows.count) * l.rows.d8 * 2;
    for (int at = static_cast<int>(threadIdx.x) * 128; at < bytes; at += filter_threads * 128)
        prefetch_line(from + at);
}

// Starts the copies and notes the rows' bounds; ends with a barrier.
template <typename T, typename S>
__device__ inline void begin_tile(const View<T> &view, const Layout<T> &l, const Rows &rows, const RowInput &input,
                                  const Block<S> &block, Stream<T, S> &stream)
{
    const int at = static_cast<int>(threadIdx.x);
    if (at == 0)
        block.facts->furthest = block.facts->widening = 0;
    stream.begin(rows);
    if (at < S::rows)
        block.facts->place[at] = input.place;
    __syncthreads();
    if (at < S::rows)
        note_row(*block.facts, *l.head, rows.group, view.d, at, input.row, input.sums.x, input.sums.y);
    __syncthreads();
}

// Columns that the tile's rows can reach.
template <typename T, typename S>
__device__ inline int columns_of(const Layout<T> &l, int g, const Block<S> &block)
{
    if (!l.rows.facts->usable || l.head->overflow)
        return 0;
    return l.head->bucket_end[g][bucket_of(__int_as_float(block.facts->furthest))];
}

// Brings the leaders of a row together, over lanes and warps, and decides.
template <typename T, typename S>
__device__ inline void decide(const View<T> &view, const Layout<T> &l, int g, const Block<S> &block, Best (&best)[4],
                              std::int32_t *labels)
{
    Best(*shared)[S::rows] = reinterpret_cast<Best(*)[S::rows]>(block.ring);
    const int warp = static_cast<int>(threadIdx.x / 32), at = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        best[i].join_lanes<4>();
        if ((threadIdx.x & 3) == 0)
            shared[warp % S::warp_columns][tile_row<S>(i)] = best[i];
    }
    __syncthreads();
    if (at >= S::rows)
        return;
    Best mine = shared[0][at];
    for (int w = 1; w < S::warp_columns; ++w)
        mine.join(shared[w][at]);
    const std::int32_t row = block.facts->row[at];
    const std::int64_t cell = std::int64_t{g} * l.columns + max(mine.index, 0);
    const std::int32_t label = l.centroid[cell];
    float threshold = infinity();
    if (mine.index >= 0)
        threshold = threshold_of(*block.facts, at, mine.least, l.column[cell], l.residual[cell], view.d);
    const bool bounded = threshold < 0x1p100f; // false for NaN too
    const bool open = row >= 0 && bounded && mine.second <= threshold, left = row >= 0 && !bounded;
    std::int32_t position = append_by_warp(&l.head->ambiguous[g], open);
    if (open) {
        l.ambiguous[l.rows.facts->offset[g] + position] = block.facts->place[at];
        l.threshold[l.rows.facts->offset[g] + position] = threshold;
    }
    position = append_by_warp(&l.head->settle, left);
    if (left)
        l.settle[position] = row;
    if (row >= 0 && bounded && !open)
        labels[row] = label;
}

template <typename T, typename S>
__global__ void __launch_bounds__(filter_threads, S::columns == 64 ? 3 : 2)
    find_kernel(View<T> view, const Control *control, Layout<T> l, std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    const Block<S> block(memory, view.d);
    Stream<T, S> stream(l, view.d, shared_address(block.tile), shared_address(block.ring));
    const TileMap map(l.rows.facts->count, l.rows.facts->offset, S::rows);
    int t = static_cast<int>(blockIdx.x);
    Rows rows = map.at(t);
    RowInput input = fetch_row<T, S>(l, rows);
    // All threads must agree on the end: the flag may change between their reads.
    while (!__syncthreads_or(rows.group < 0 || stopped(control))) {
        begin_tile(view, l, rows, input, block, stream);
        t += static_cast<int>(gridDim.x);
        const Rows next = map.at(t);
        input = fetch_row<T, S>(l, next);
        prefetch_rows<T, S>(l, next);
        Best best[4];
        for (Best &mine : best)
            mine = {infinity(), infinity(), -1};
        const Column *columns = l.column + std::int64_t{rows.group} * l.columns;
        const float widening = __int_as_float(block.facts->widening);
        const int wanted = columns_of(l, rows.group, block);
        stream.run(wanted, [&](int first, const auto &acc) {
            each_score<S>(columns, first, wanted, widening, acc,
                          [&](int i, int column, float score) { best[i].take(score, column); });
        });
        decide(view, l, rows.group, block, best, labels);
        rows = next;
    }
}

// Four lanes per row measure its candidates; rows with too many are left to settle().
template <typename T, typename S>
__device__ inline void measure_found(const View<T> &view, const Layout<T> &l, int g, const Block<S> &block,
                                     std::int32_t *labels)
{
    const int lane = static_cast<int>(threadIdx.x & 3);
    for (int at = static_cast<int>(threadIdx.x / 4); at < S::rows; at += filter_threads / 4) {
        const std::int32_t row = block.facts->row[at];
        const int count = block.found->count[at];
        const bool fits = count >= 1 && count <= candidates;
        Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
        for (int i = lane; row >= 0 && fits && i < count; i += 4) {
            const int j = l.centroid[std::int64_t{g} * l.columns + block.found->position[at][i]];
            const Nearest next = {distance_ahead(view.values + std::int64_t{row} * view.d,
                                                 view.centroids + std::int64_t{j} * view.d, view.d),
                                  j};
            if (before(next, mine))
                mine = next;
        }
        __syncwarp();
        mine = nearest_in_lanes<4>(mine);
        const bool left = lane == 0 && row >= 0 && !fits;
        const std::int32_t position = append_by_warp(&l.head->settle, left);
        if (left)
            l.settle[position] = row;
        else if (lane == 0 && row >= 0)
            labels[row] = mine.label;
    }
}

template <typename T, typename S>
__global__ void __launch_bounds__(filter_threads, 2)
    collect_kernel(View<T> view, const Control *control, Layout<T> l, std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    const Block<S> block(memory, view.d);
    Stream<T, S> stream(l, view.d, shared_address(block.tile), shared_address(block.ring));
    const TileMap map(l.head->ambiguous, l.rows.facts->offset, S::rows);
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        Rows rows = map.at(t);
        if (__syncthreads_or(rows.group < 0 || stopped(control)))
            return;
        const float *thresholds = l.threshold + rows.first;
        rows.places = l.ambiguous + rows.first;
        for (int at = static_cast<int>(threadIdx.x); at < S::rows; at += filter_threads) {
            block.found->count[at] = 0;
            block.found->threshold[at] = at < rows.count ? thresholds[at] : -infinity();
        }
        begin_tile(view, l, rows, fetch_row<T, S>(l, rows), block, stream);
        float threshold[4];
        for (int i = 0; i < 4; ++i)
            threshold[i] = block.found->threshold[tile_row<S>(i)];
        const Column *columns = l.column + std::int64_t{rows.group} * l.columns;
        const float widening = __int_as_float(block.facts->widening);
        const int wanted = columns_of(l, rows.group, block);
        stream.run(wanted, [&](int first, const auto &acc) {
            each_score<S>(columns, first, wanted, widening, acc, [&](int i, int column, float score) {
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
