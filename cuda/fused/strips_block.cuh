// strips_block.cuh - what a block of the strips loop (strips_loop.cu says why) keeps in shared memory for a whole fit,
// and what it knows of its rows' slack.
#pragma once

#include "fused/replicated_update.cuh"
#include "fused/strips_rows.cuh"

namespace pgkm::cuda {
namespace {

constexpr int queue_rows = strip_rows - 1 + 32; // that wait in a warp's queue at most

// Where things lie in the block's shared memory, in bytes behind what strips_pivot.cuh carves.
struct Layout {
    int shifts, previous, shift, scales, centroids, counters, slack, row, queue, label, values;
    int stride; // of the rows kept, in floats; 0: they stay where they are
    int bytes;
};

struct LoopArguments {
    MoveArguments moves;
    LoopMemory memory;
    Layout layout;
};

// Distance of kept rows at which the lanes of a warp read from different banks, W values each.
constexpr int kept_stride(int d, int W)
{
    int stride = (d + W - 1) / W * W;
    while (stride % 32 != 4 * W && stride % 32 != 32 - 4 * W)
        stride += W;
    return stride;
}

template <int C>
Layout lay_out(const MoveArguments &a, int stride)
{
    const int k = a.view.k, d = a.view.d, rows = static_cast<int>(a.share);
    Layout l{};
    int at = static_cast<int>(operand_bytes<C>(k));
    const auto take = [&](int bytes) {
        const int from = at;
        at += (bytes + 15) / 16 * 16;
        return from;
    };
    l.shifts = take(8 * k);
    l.previous = take(4 * k);
    l.shift = take(4 * d);
    l.scales = take(8 * d);
    l.centroids = take(3 * 4 * k * centroid_stride(d));
    l.counters = take(2 * 12 * k * (d + 1));
    l.slack = take(4 * rows);
    l.row = take(4 * rows);
    l.queue = take(2 * warps * queue_rows);
    l.label = take(rows);
    l.stride = stride;
    l.values = take(4 * stride * rows);
    l.bytes = at;
    return l;
}

// What a block has of the problem: a run of the pivots' order, of rows of one pivot.
struct Block {
    int pivot, first, count; // rows
    double *shifts;
    std::int32_t *previous; // list
    float *shift;           // the pivot
    FeatureScale<float> *scales;
    float *now, *before, *next; // sets of centroids
    MoveCounters counters[2];   // what even and odd iterations moved
    float *slack;
    std::int32_t *row;
    std::uint16_t *queue; // the warp's
    std::uint8_t *label;
    RowSource source;
    bool kept; // source has the block's rows in their order
};

// The block's run: each pivot's rows are cut into runs of `share`.
__device__ void find_rows(const MoveArguments &a, Block &block)
{
    const auto share = static_cast<unsigned>(a.share);
    unsigned run = blockIdx.x;
    for (int g = 0; g < a.pivots.count; ++g) {
        const auto rows = static_cast<unsigned>(a.pivots.first_row[g + 1] - a.pivots.first_row[g]);
        const unsigned runs = (rows + share - 1) / share;
        if (run < runs) {
            block.pivot = g;
            block.first = static_cast<int>(a.pivots.first_row[g]) + static_cast<int>(run * share);
            block.count = static_cast<int>(min(share, rows - run * share));
            return;
        }
        run -= runs;
    }
    block.pivot = block.first = block.count = 0;
}

__device__ Block carve_block(const LoopArguments &l)
{
    const MoveArguments &a = l.moves;
    auto *memory = reinterpret_cast<char *>(shared_words(0));
    const auto at = [&](int offset, auto *type) { return reinterpret_cast<decltype(type)>(memory + offset); };
    const int set = a.view.k * centroid_stride(a.view.d), counters = a.view.k * (a.view.d + 1) * 3;
    Block block;
    find_rows(a, block);
    block.shifts = at(l.layout.shifts, static_cast<double *>(nullptr));
    block.previous = at(l.layout.previous, static_cast<std::int32_t *>(nullptr));
    block.shift = at(l.layout.shift, static_cast<float *>(nullptr));
    block.scales = at(l.layout.scales, static_cast<FeatureScale<float> *>(nullptr));
    block.now = at(l.layout.centroids, static_cast<float *>(nullptr));
    block.before = block.now + set;
    block.next = block.before + set;
    for (int i = 0; i < 2; ++i)
        block.counters[i] = {l.layout.counters / 4 + i * counters, a.view.k, a.view.d, 1};
    block.slack = at(l.layout.slack, static_cast<float *>(nullptr));
    block.row = at(l.layout.row, static_cast<std::int32_t *>(nullptr));
    block.queue = at(l.layout.queue, static_cast<std::uint16_t *>(nullptr)) + threadIdx.x / 32 * queue_rows;
    block.label = at(l.layout.label, static_cast<std::uint8_t *>(nullptr));
    block.kept = l.layout.stride != 0;
    block.source = block.kept ? RowSource{at(l.layout.values, static_cast<float *>(nullptr)), l.layout.stride}
                              : RowSource{a.view.values, a.view.d};
    return block;
}

// Brings in what stays for the whole fit.
__device__ void load_block(const LoopArguments &l, const Block &block)
{
    const MoveArguments &a = l.moves;
    const int self = static_cast<int>(threadIdx.x), k = a.view.k, d = a.view.d;
    for (int f = self; f < d; f += threads) {
        block.shift[f] = a.pivots.pivots[block.pivot * d + f];
        block.scales[f] = a.view.feature_scales[f];
    }
    for (int i = self; i < k * d; i += threads) {
        const int at = i / d * centroid_stride(d) + i % d;
        block.now[at] = a.update.centroids[i];
        block.before[at] = a.update.centroids[k * d + i];
    }
    for (int j = self; j < k; j += threads)
        block.previous[j] = -1;
    block.counters[0].clear();
    block.counters[1].clear();
    for (int i = self; i < block.count; i += threads) {
        block.slack[i] = -1.0f;
        block.row[i] = a.pivots.order != nullptr ? a.pivots.order[block.first + i] : block.first + i;
        block.label[i] = static_cast<const std::uint8_t *>(a.last.values)[block.first + i]; // strips_k < 255
    }
    __syncthreads();
    if (!block.kept)
        return;
    auto *values = const_cast<float *>(block.source.values);
    for (int i = self / 32; i < block.count; i += warps)
        for (int f = self & 31; f < d; f += 32)
            values[i * l.layout.stride + f] = a.view.values[std::int64_t{block.row[i]} * d + f];
    __syncthreads();
}

// How far a row is from losing its nearest centroid, of whose scores `least` has the two best: a lower bound of the
// difference of its two distances, less what the contract's distances can err by. square: |x'|^2, of d squares in
// float32. The true half squares, in scaled units, lie within half of the margin around the scores less the bias, as
// long as a centroid is no longer than bound.r; the other half is for the roundings here. A longer one is at least
// r - x away, and at least what its score says less 2^-8 of it (bound_row()).
__device__ float slack_of(int first, int second, float square, const RowBound &bound, const PivotList &list, int d)
{
    if (list.listed == 1)
        return INFINITY;
    const float nearest = __int_as_float(first), next = __int_as_float(second);
    const float error = static_cast<float>(d + 16) * 0x1p-23f * square;
    const float upper = __fadd_ru(2.0f * (nearest - bound.bias + bound.margin), square + error);
    const float lower = 2.0f * (next - bound.bias - bound.margin) + (square - error);
    const float near = __fsqrt_ru(fmaxf(upper, 0.0f));
    float far = __fsqrt_rd(fmaxf(lower, 0.0f));
    if (bound.r < list.reach)
        far = fminf(far, fmaxf(__fsub_rd(bound.r, bound.x), far * (1.0f - 0x1p-8f)));
    const float gap = __fsub_rd(__fsub_rd(far, near), 0x1p-19f * near);
    return gap / list.scale; // a power of two
}

// What a block knows of its pivot's list beside the centroids on it; one warp writes it.
struct ListState {
    int listed;
    Reach reach;
    float drift; // of the list's centroids since slacks were made anew: an upper bound of what a slack can have lost
    float limit; // rows with more slack keep their labels
};

// Whether the list is another one than before; by one warp, which notes it.
__device__ bool list_changed(const Block &block, const std::int32_t *list, int listed, int listed_before)
{
    bool differs = listed != listed_before;
    for (int i = static_cast<int>(threadIdx.x & 31); i < listed; i += 32) {
        differs |= block.previous[i] != list[i];
        block.previous[i] = list[i];
    }
    return __any_sync(~0u, differs);
}

// The two longest ways of the list's centroids together, rounded up: what a difference of two distances can lose.
__device__ float largest_two_moves(const double *shifts, const std::int32_t *list, int listed)
{
    float first = 0.0f, second = 0.0f;
    for (int i = static_cast<int>(threadIdx.x & 31); i < listed; i += 32) {
        const float way = __fsqrt_ru(__double2float_ru(shifts[list[i]] * (1.0 + 0x1p-40)));
        second = fmaxf(second, fminf(first, way));
        first = fmaxf(first, way);
    }
    for (int offset = 16; offset > 0; offset >>= 1) {
        const float other = __shfl_xor_sync(~0u, first, offset);
        second = fmaxf(fmaxf(second, __shfl_xor_sync(~0u, second, offset)), fminf(first, other));
        first = fmaxf(first, other);
    }
    return __fadd_ru(first, second);
}

// Lists the pivot's centroids, and says which slack they leave; by one warp. moved: slacks are there.
__device__ void update_list(const Block &block, const Shared &shared, int k, float radius, bool moved, ListState &state)
{
    Reach reach;
    const int listed = list_centroids(shared, k, radius, reach);
    __syncwarp();
    const bool changed = list_changed(block, shared.list, listed, state.listed) || !moved;
    const float drift = changed ? 0.0f : __fadd_ru(state.drift, largest_two_moves(block.shifts, shared.list, listed));
    __syncwarp();
    if ((threadIdx.x & 31) == 0) // distances of the contract err by far less than 2^-20 of them: see slack_of()
        state = {listed, reach, drift, changed ? INFINITY : __fmul_ru(drift, 1.0f + 0x1p-17f)};
}

} // namespace
} // namespace pgkm::cuda
