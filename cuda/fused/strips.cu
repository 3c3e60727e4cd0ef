// strips.cu (fused) - an iteration over float32 rows of 17 to 64 features whose scores are
// products of the tensor cores (strips_scores.cuh), for rows ordered by pivots (order/ordered_rows.hpp),
// sums that follow the rows.
//
// A block takes a run of the pivots' order. For each pivot in it, it lists the centroids
// that can be nearest to one of its rows and splits them around the pivot. Its warps
// then take strips of 16 rows by themselves: a lane loads four features of rows l / 4 and
// l / 4 + 8 per 16-deep product straight from global memory (which feature takes which slot of
// the product does not matter as long as both sides agree), so that rows pass through no shared
// memory and no barrier. To use: k up to 128 and sums that fit the block's memory.
#include "plan/choose.hpp"
#include "fused/strips_rows.cuh"

namespace pgkm::cuda {
namespace {

// The two rows of a strip whose values a lane loads, and the place of the one it sees to when the
// candidates are known: its first for even lanes, its second for odd ones (two lanes each).
struct Strip {
    std::int32_t row[2];
    int place; // in the pivots' order
    int last;  // label
};

// Beyond the end: any row will do.
__device__ void find_strip(const MoveArguments &a, int first, int end, Strip &strip)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int place = min(first + h * 8 + lane / 4, end - 1);
        strip.row[h] = a.ordered.order[place];
    }
    strip.place = min(first + (lane & 1) * 8 + lane / 4, end - 1);
    strip.last = static_cast<const std::uint8_t *>(a.last.values)[strip.place]; // strips_k < 255
}

// Starts the rows' way from memory to the second-level cache: 64 bytes per lane.
__device__ void prefetch_strip(const MoveArguments &a, const Strip &strip)
{
    const int q = static_cast<int>(threadIdx.x & 3);
    for (int h = 0; h < 2; ++h)
        if (q * 16 < a.view.d)
            tensor::prefetch_line(a.view.values + std::int64_t{strip.row[h]} * a.view.d + q * 16);
}

template <int C, int W>
__device__ void take_strip(const MoveArguments &a, const Shared &shared, const MoveCounters &counters,
                           const PivotList &list, const Strip &strip, const Strip &next, int first, int end)
{
    const int lane = static_cast<int>(threadIdx.x & 31), odd = lane & 1;
    const RowSource source = {a.view.values, a.view.d};
    Rows<C> rows;
    float square[2];
    load_rows<C, W>(source, a.view.d, shared, strip.row, list.scale, rows, square);
    const RowBound bound[2] = {bound_row<C>(list, square[0]), bound_row<C>(list, square[1])};
    unsigned own[2];
    filter_list<C>(shared, rows, bound, list, own);
    prefetch_strip(a, next);
    const int sole = sole_label(shared, list, own);
    const int label = settle_strip(source, {a.view.centroids, a.view.k, a.view.d}, shared, list, strip.row, own, sole);
    const bool moves = label != strip.last && first + odd * 8 + lane / 4 < end && (lane & 2) == 0;
    const unsigned moved = __ballot_sync(~0u, moves);
    if (moved == 0)
        return;
    if (moves)
        a.last.set(strip.place, label);
    move_rows(a, source, counters, odd ? strip.row[1] : strip.row[0], strip.last, label, moved);
}

// The block's rows.
template <int C, int W>
__device__ void take_share(const MoveArguments &a, const Shared &shared, const MoveCounters &counters)
{
    int at = static_cast<int>(min(a.first + blockIdx.x * a.share, a.end));
    const int last = static_cast<int>(min(at + a.share, a.end));
    int pivot = 0;
    while (at < last) {
        while (a.ordered.facts->offset[pivot + 1] <= at)
            ++pivot;
        const int end = min(last, a.ordered.facts->offset[pivot + 1]);
        int first = at + static_cast<int>(threadIdx.x / 32) * strip_rows;
        Strip next;
        find_strip(a, first, end, next);
        __syncthreads();
        const PivotList list = open_pivot<C, W>(a, shared, pivot);
        for (; first < end; first += warps * strip_rows) {
            const Strip strip = next;
            find_strip(a, first + warps * strip_rows, end, next);
            take_strip<C, W>(a, shared, counters, list, strip, next, first, end);
        }
        at = end;
    }
}

template <int C, int W>
__global__ void __launch_bounds__(threads, 1) strips_kernel(const __grid_constant__ MoveArguments a)
{
    if (block_stopped(a.update.control))
        return;
    const Shared shared = carve<C>(a);
    const MoveCounters counters = {static_cast<int>(shared.counters - shared_words(0)), a.view.k, a.view.d, 1};
    counters.clear();
    take_share<C, W>(a, shared, counters);
    counters.publish(a.update.sums);
}

template <int C, int W>
void launch(const Stage<float> &stage, MoveArguments a)
{
    const std::size_t bytes = shared_bytes<C>(a);
    const auto kernel = strips_kernel<C, W>;
    const std::int64_t n = a.view.n, most = stage.context.facts.multiprocessors;
    for (std::int64_t done = 0; done < n;) {
        const std::int64_t rows = std::min(n - done, most * (move_limit - strip_rows));
        a.share = ((rows + most - 1) / most + strip_rows - 1) / strip_rows * strip_rows;
        a.first = done;
        a.end = done += rows;
        const auto blocks = static_cast<unsigned>(std::min(most, (rows + a.share - 1) / a.share));
        enqueue(kernel, blocks, threads, bytes, stage.stream, a);
    }
}

} // namespace

void iterate_strips(const Stage<float> &stage, const MoveArguments &arguments)
{
    with_row_shape(arguments.view.d, [&](auto products, auto width) {
        launch<decltype(products)::value, decltype(width)::value>(stage, arguments);
    });
    end_iteration(stage, arguments);
}

} // namespace pgkm::cuda
