// tensor_lists.cuh - the shared memory of the filter on a Hopper, with a list of each row's candidates, and what
// becomes of the lists: a list of one is the label, a short one is measured exactly (measure_kernel), and rows with
// longer ones go through the second pass (tensor_passes.cuh), or are settled where no tile of them fits a block.
#pragma once

#include "assign/tensor_limits.cuh"
#include "device/row_distances.cuh"

namespace pgkm::cuda::tensor {
namespace {

constexpr int list_slots = 16;                  // entries of a row's list in shared memory
constexpr int bundle_bytes = bundle_size * 128; // of one step of 64 features

// Warpgroups, and each one's rows; columns of a tile; Steps of 64 features that stay (0: rows are streamed), stages of
// the ring.
template <int Warpgroups, int WarpgroupRows, int TileColumns, int Steps, int Stages>
struct HopperShape {
    static_assert(Warpgroups == 2 || Warpgroups == 3);
    static constexpr int groups = Warpgroups, threads = (groups + 1) * 128; // one more brings rows and columns
    static constexpr int group_rows = WarpgroupRows, rows = groups * group_rows, columns = TileColumns, steps = Steps,
                         stages = Stages;
    static constexpr int blocks_of_64 = group_rows / 64, bundles = columns / bundle_size;
    static constexpr int row_bytes = rows * 128, column_bytes = columns * 128; // of one step
    static constexpr int stage_bytes = column_bytes + (steps == 0 ? row_bytes : 0);
    static constexpr int ring_at = steps * row_bytes, lists_at = ring_at + stages * stage_bytes;
    static constexpr int counts_at = lists_at + rows * list_slots * 8, left_at = counts_at + rows * 4;
    static constexpr int bases_at = left_at + groups * 2 * columns * 4,
                         barriers_at = bases_at + groups * 2 * bundles * 4;
    static constexpr int bytes = barriers_at + 256 + 1024; // the ring starts at a multiple of 1,024
    static_assert(bytes <= 232448);
};

struct alignas(8) Entry {
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
    // What the scores of a tile of columns start from; each warpgroup has two of them that take turns.
    __device__ float *left(int warpgroup, int turn) const
    {
        return reinterpret_cast<float *>(memory + S::left_at) + (warpgroup * 2 + turn) * S::columns;
    }
    // And the bundles that it has.
    __device__ std::int32_t *bases(int warpgroup, int turn) const
    {
        return reinterpret_cast<std::int32_t *>(memory + S::bases_at) + (warpgroup * 2 + turn) * S::bundles;
    }
};

// Keeps of a row's list what its limit allows.
template <typename S>
__device__ inline void shorten(const HopperBlock<S> &block, int row, float limit)
{
    const int count = block.counts()[row];
    if (count < 3 || count > list_slots)
        return;
    Entry *list = block.list(row);
    int kept = 0;
    for (int i = 0; i < count; ++i)
        if (list[i].score <= limit)
            list[kept++] = list[i];
    block.counts()[row] = kept;
}

// The threshold of the best of the first `count` entries, from what is known of its column: lower than the limit, which
// holds for whichever column has the score.
template <typename T, typename S>
__device__ inline float list_threshold(const View<T> &view, const Layout<T> &l, const TileFacts &tile,
                                       const HopperBlock<S> &block, int at, int count)
{
    const Entry *list = block.list(at);
    Entry best = {infinity(), 0};
    for (int i = 0; i < count; ++i)
        if (list[i].score < best.score)
            best = list[i];
    float2 sums = l.rows.measures[tile.first + at];
    widen_lengths(sums.x, sums.y);
    RowFacts<1> facts;
    facts.square[0] = sums.x;
    facts.lost[0] = sums.y;
    facts.widening = __float_as_int(tile.widening);
    const std::int64_t cell = std::int64_t{tile.group} * l.columns + best.position;
    return threshold_of(facts, 0, best.score, l.column[cell], l.residual[cell], view.d);
}

// For a list that ran over in this step of columns: lowers the row's limit, and keeps what it allows of the `earlier`
// entries of earlier steps. The step's columns are to be listed again. False where the limit stays: the list has run
// over for good.
template <typename T, typename S>
__device__ inline bool make_room(const View<T> &view, const Layout<T> &l, const TileFacts &tile,
                                 const HopperBlock<S> &block, int at, int earlier, float &limit)
{
    const float threshold = list_threshold(view, l, tile, block, at, list_slots);
    if (!(threshold < limit))
        return false;
    limit = threshold;
    Entry *list = block.list(at);
    int kept = 0;
    for (int i = 0; i < earlier; ++i)
        if (list[i].score <= limit)
            list[kept++] = list[i];
    block.counts()[at] = kept;
    return true;
}

// The row's label from its list, or a place on the lists of what is still open. By all lanes of a warp; not `there`:
// the lane has no row.
template <typename T, typename S>
__device__ inline void conclude(const View<T> &view, const Layout<T> &l, const TileFacts &tile,
                                const HopperBlock<S> &block, int at, bool there, float limit)
{
    const std::int32_t place = tile.first + (there ? at : 0), row = l.rows.order[place];
    const std::int32_t *centroids = l.centroid + std::int64_t{tile.group} * l.columns;
    const Entry *list = block.list(at);
    const int count = there ? block.counts()[at] : 0;
    int kept = 0;
    std::int32_t last = 0;
    if (count <= list_slots && limit < 0x1p100f) {
        if (count > 1)
            limit = fminf(limit, list_threshold(view, l, tile, block, at, count));
        for (int i = 0; i < count; ++i)
            if (list[i].score <= limit) {
                ++kept;
                last = list[i].position;
            }
    }
    const bool bounded = limit < 0x1p100f && tile.wanted > 0;
    if (there && bounded && kept == 1)
        l.labels[row] = centroids[last];
    const bool short_list = there && bounded && kept > 1 && kept <= found_most;
    std::int32_t position = append_by_warp(&l.head->found, short_list);
    if (short_list) {
        FoundRow &found = l.found[position];
        found.row = row;
        found.count = kept;
        for (int i = 0, next = 0; next < kept; ++i)
            if (list[i].score <= limit)
                found.centroid[next++] = centroids[list[i].position];
    }
    const bool long_list = there && bounded && (kept == 0 || kept > found_most), open = long_list && l.second_pass;
    position = append_by_warp(&l.head->ambiguous[tile.group], open);
    if (open) {
        l.ambiguous[l.rows.facts->offset[tile.group] + position] = place;
        l.threshold[l.rows.facts->offset[tile.group] + position] = limit;
    }
    const bool left = there && (!bounded || (long_list && !open));
    position = append_by_warp(&l.head->settle, left);
    if (left)
        l.settle[position] = row;
}

// Rows with a short list, measured by the contract's distance: four lanes a row.
constexpr int measure_threads = 64;
template <typename T>
using Pairs = RowDistances<T, OwnCentroids<T>>;
template <typename T>
__global__ void __launch_bounds__(measure_threads) measure_kernel(View<T> view, const Control *control, Layout<T> l)
{
    extern __shared__ uint4 pair_memory[];
    Pairs<T> pairs(reinterpret_cast<char *>(pair_memory) + threadIdx.x / 32 * Pairs<T>::bytes(view.d), view.values,
                   view.centroids, view.d);
    const int lane = static_cast<int>(threadIdx.x & 3), stride = static_cast<int>(gridDim.x * (blockDim.x / 4));
    const int count = l.head->found;
    for (int i = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 4); __any_sync(~0u, i < count);
         i += stride) {
        if (__any_sync(~0u, stopped(control)))
            return;
        Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
        const FoundRow &found = l.found[i < count ? i : 0];
        const int candidates = i < count ? found.count : 0;
        for (int j = lane; __any_sync(~0u, j < candidates); j += 4) {
            const bool there = j < candidates;
            const std::int32_t label = there ? found.centroid[j] : 0;
            const T *row = there ? view.values + std::int64_t{found.row} * view.d : nullptr;
            const Nearest next = {pairs.distance(row, view.centroids + std::int64_t{label} * view.d), label};
            if (there && before(next, mine))
                mine = next;
        }
        mine = nearest_in_lanes<4>(mine);
        if (lane == 0 && i < count)
            l.labels[found.row] = mine.label;
    }
}

} // namespace
} // namespace pgkm::cuda::tensor
