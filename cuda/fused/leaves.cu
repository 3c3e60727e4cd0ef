// leaves.cu - an iteration over rows in the leaves of a k-d tree (leaves.hpp), sums that follow the rows.
//
// A block takes a branch: its threads test all centroids against the branch's box (leaves_reach.cuh). Then each warp
// takes leaves of it, tests the branch's list against the leaf's box, and writes what is left into its own memory,
// relative to the leaf's middle. Each lane has four rows in registers and compares them with the list, whose values are
// read once for all lanes. A leaf whose list is one centroid, and was the same one before, is not read.
//
// Filter and margin: fused/few.cuh, with s the leaf's middle. Rows that stay open get the contract's distances to the
// list, by the whole warp (leaves_settle.cuh). Rows that moved wait in a queue of their warp (leaves_moves.cuh). To
// use: d <= 8, more than 8 clusters.
#include "device/warp.cuh"
#include "fused/few.cuh"
#include "fused/leaves_settle.cuh"

namespace pgkm::cuda {
namespace {

constexpr std::size_t sums_bytes = 32768; // most of a block's sums

// The rows that a lane has of a leaf: their values relative to its middle, negated, and what is known of each.
template <int D>
struct Rows {
    float x[per_lane][D];
    Best best[per_lane];
    int last[per_lane]; // label of the iteration before
};

// The row that a lane has at place r; the leaf's last one where there is none.
__device__ inline int row_at(const LeafRange &range, int r)
{
    return range.first + min(r * 32 + static_cast<int>(threadIdx.x & 31), range.count - 1);
}

template <int D>
__device__ inline void load_rows(const LeafRows &leaves, const LeafRange &range, Rows<D> &rows)
{
#pragma unroll
    for (int r = 0; r < per_lane; ++r)
        load_row<D>(leaves.values, row_at(range, r), D, rows.x[r]);
}

template <int D>
__device__ inline void load_labels(const MoveArguments &a, const LeafRange &range, Rows<D> &rows)
{
#pragma unroll
    for (int r = 0; r < per_lane; ++r)
        rows.last[r] = a.last.get(row_at(range, r));
}

template <int D>
__device__ inline void start_rows(const WarpMemory<D> &own, Rows<D> &rows)
{
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float middle = own.box.middle(f);
#pragma unroll
        for (int r = 0; r < per_lane; ++r)
            rows.x[r][f] = middle - rows.x[r][f];
    }
#pragma unroll
    for (int r = 0; r < per_lane; ++r)
        rows.best[r] = Best::none();
}

// Compares the first P rows of each lane with `count` centroids of the warp's memory.
template <int D, int P>
__device__ inline void compare(const WarpMemory<D> &own, int count, Rows<D> &rows)
{
#pragma unroll 2
    for (int i = 0; i < count; ++i) {
        const Head head = own.heads[i];
        float c[D];
        read_values<D>(own.values + i * D, c);
#pragma unroll
        for (int r = 0; r < P; ++r) {
            float score = head.half;
#pragma unroll
            for (int f = 0; f < D; ++f)
                score = __fmaf_rn(rows.x[r][f], c[f], score);
            rows.best[r].take(score, head.number);
        }
    }
}

// The same of all rows of a leaf of `rows_there`.
template <int D>
__device__ inline void compare_all(const WarpMemory<D> &own, int count, int rows_there, Rows<D> &rows)
{
    if (rows_there <= 64)
        compare<D, 2>(own, count, rows);
    else if (rows_there <= 96)
        compare<D, 3>(own, count, rows);
    else
        compare<D, per_lane>(own, count, rows);
}

// A leaf's list, and the rows that are compared with it.
struct LeafList {
    int length;  // 0: the leaf is put off
    int number;  // of one on it
    float reach; // half the greatest square of a centroid's distance from the leaf's middle
    bool held;   // all of it is in the warp's memory
};

// Finds the leaf's list and compares its rows, `loaded` or not, unless one centroid alone is on it.
template <int D>
__device__ LeafList take_list(const MoveArguments &a, const LeafRows &leaves, const Memory<D> &memory, int leaf,
                              int length, const LeafRange &range, bool loaded, Rows<D> &rows)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    WarpMemory<D> &own = *memory.warp;
    LeafList list = {0, 0, 0.0f, true};
    int held = 0;
    bool started = false, may_wait = length > longest_list && leaves.most_put_off > 0;
    for (int from = 0; from < length; from += 32) {
        const int place = from + lane;
        float c[D];
        listed_centroid<D>(a, memory, min(place, length - 1), c);
        const bool taken = place < length && own.box.reaches(c);
        const unsigned ballot = __ballot_sync(~0u, taken);
        float half = 0.0f;
        if (taken)
            half = write_centroid<D>(own, held + lanes_below(ballot), memory.list[place], c);
        list.reach = fmaxf(list.reach, half);
        held += __popc(ballot);
        list.length += __popc(ballot);
        if (may_wait && list.length > longest_list) {
            if (put_off(leaves, leaf))
                return {0, 0, 0.0f, false};
            may_wait = false;
        }
        const bool last = from + 32 >= length;
        if ((!last && held <= batch - 32) || (last && list.length == 1))
            continue;
        __syncwarp();
        if (!started) {
            if (!loaded)
                load_rows<D>(leaves, range, rows);
            start_rows<D>(own, rows);
            started = true;
        }
        compare_all<D>(own, held, range.count, rows);
        __syncwarp();
        if (!last) {
            held = 0;
            list.held = false;
        }
    }
    __syncwarp();
    list.number = own.heads[0].number;
    list.reach = __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(list.reach)));
    return list;
}

// How much less the best score has to be for its centroid to be the nearest.
template <int D>
__device__ inline float margin_of(const WarpMemory<D> &own, float reach, int d)
{
    float square = 0.0f;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float middle = own.box.middle(f);
        const float half = fmaxf(own.box.ends[f].high - middle, middle - own.box.ends[f].low);
        square = __fmaf_rn(half, half, square);
    }
    return filter_margin(sqrtf(square) * (1.0f + 0x1p-18f) + 0x1p-60f,
                         sqrtf(2.0f * reach) * (1.0f + 0x1p-18f) + 0x1p-60f, d);
}

// Labels of a leaf's rows; those that changed wait in `later`.
template <int D>
__device__ void take_leaf(const MoveArguments &a, const LeafRows &leaves, const Memory<D> &memory, const LeafSums &sums,
                          Later &later, int leaf, int length)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const int sole_before = leaves.sole[leaf];
    if (length == 1 && sole_before == memory.list[0])
        return;
    const LeafRange range = leaves.rows_of[leaf];
    Rows<D> rows;
    const bool loaded = sole_before == no_centroid && length > 1;
    if (loaded)
        load_rows<D>(leaves, range, rows);
    load_labels<D>(a, range, rows);
    LeafList list = {1, memory.list[0], 0.0f, true};
    if (length > 1) {
        open_leaf<D>(a, leaves, memory, leaf, length);
        list = take_list<D>(a, leaves, memory, leaf, length, range, loaded, rows);
    }
    const int sole = list.length == 1 ? list.number : no_centroid;
    if (lane == 0 && sole != sole_before)
        leaves.sole[leaf] = static_cast<std::uint16_t>(sole);
    if (list.length == 0 || (sole == sole_before && sole != no_centroid))
        return;
    const float margin = list.length == 1 ? 0.0f : margin_of<D>(*memory.warp, list.reach, a.view.d);
#pragma unroll
    for (int r = 0; r < per_lane; ++r) {
        if (r * 32 >= range.count)
            break;
        const int row = range.first + r * 32 + lane;
        const bool exists = r * 32 + lane < range.count;
        int label = list.number;
        if (list.length > 1) {
            const Best &best = rows.best[r];
            label = best.index;
            unsigned open = __ballot_sync(~0u, exists && !(best.second > best.least + margin));
            for (; open != 0; open &= open - 1) {
                const int of = __ffs(static_cast<int>(open)) - 1;
                const int settled = settle<D>(a.view, leaves.values + std::int64_t{row - lane + of} * D,
                                              list.held ? list.length : length,
                                              Listed{list.held ? memory.warp->heads : nullptr, memory.list});
                label = lane == of ? settled : label;
            }
        }
        const bool changed = exists && label != rows.last[r];
        if (__any_sync(~0u, changed))
            later.push(changed, Later::entry(row, rows.last[r], label));
    }
    while (later.full())
        sums.move<D>(a, leaves, later.pop());
}

template <int D>
__global__ void __launch_bounds__(threads, D <= 4 ? 4 : 3)
    leaves_kernel(const __grid_constant__ MoveArguments a, const __grid_constant__ LeafRows leaves, bool in_block)
{
    if (block_stopped(a.update.control))
        return;
    const Memory<D> memory;
    const LeafSums sums(a, static_cast<int>(Memory<D>::bytes(a.view.k) / 4), in_block);
    sums.prepare(a);
    Later later(memory.warp->moved);
    const int last_branch = min(static_cast<int>(a.end), leaves.counts->branches);
    for (int branch = static_cast<int>(a.first) + static_cast<int>(blockIdx.x); branch < last_branch;
         branch += static_cast<int>(gridDim.x)) {
        if (block_stopped(a.update.control)) // lists may be long: a branch can take milliseconds
            return;
        const int length = list_branch<D>(a, leaves, memory, branch);
        const LeafRange of_branch = leaves.leaves_of[branch];
        for (int i = static_cast<int>(threadIdx.x / 32); i < of_branch.count; i += warps) {
            if (length > longest_list && __any_sync(~0u, stopped(a.update.control)))
                break;
            take_leaf<D>(a, leaves, memory, sums, later, of_branch.first + i, length);
        }
    }
    while (!later.empty())
        sums.move<D>(a, leaves, later.pop());
    if (in_block)
        sums.counters.publish(a.update.sums);
}

template <int D>
void launch(const Stage<float> &stage, MoveArguments a, LeafRows leaves)
{
    const auto bytes_of = [&](int replicas) { return MoveCounters::bytes(a.view.k, a.view.d, replicas); };
    const bool in_block = bytes_of(1) <= sums_bytes;
    a.replicas = in_block ? 8 : 1;
    while (a.replicas > 1 && bytes_of(a.replicas) > sums_bytes)
        a.replicas /= 2;
    const std::size_t bytes =
        Memory<D>::bytes(a.view.k) + (in_block ? bytes_of(a.replicas) : MoveCounters::bytes(0, a.view.d, 1));
    const int most = resident_blocks(stage.context, leaves_kernel<D>, threads, bytes);
    if (in_block)
        leaves.most_put_off = 0;
    else
        enqueue_fill(&leaves.counts->put_off, 0, sizeof leaves.counts->put_off, stage.stream);
    // Branches that a block's 32-bit sums can take.
    const std::int64_t rows = std::int64_t{leaves.per_branch} * leaf_rows;
    const std::int64_t each = in_block ? std::int64_t{move_limit / 2} * a.replicas / rows : INT_MAX;
    for (std::int64_t done = 0; done < leaves.branches;) {
        const std::int64_t count = std::min(leaves.branches - done, std::max<std::int64_t>(each, 1) * most);
        a.first = done;
        a.end = done += count;
        enqueue(leaves_kernel<D>, blocks_for(count, 1, most), threads, bytes, stage.stream, a, leaves, in_block);
    }
    if (in_block)
        return;
    const std::size_t scales = MoveCounters::bytes(0, a.view.d, 1);
    const int blocks = resident_blocks(stage.context, put_off_kernel<D>, threads, scales);
    enqueue(put_off_kernel<D>, blocks_for(std::int64_t{leaves.most_put_off} * leaf_rows, warps, blocks), threads,
            scales, stage.stream, a, leaves);
}

} // namespace

void iterate_leaves(const Stage<float> &stage, const MoveArguments &a, const Leaves &leaves)
{
    with_leaf_stride(a.view.d, [&](auto size) { launch<decltype(size)::value>(stage, a, leaves.rows()); });
    end_iteration(stage, a);
}

} // namespace pgkm::cuda
