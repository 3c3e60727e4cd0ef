// strips_loop.cu - all iterations of a fit in one launch, for few rows of 17 to 64 features: the products and
// candidates of strips.cu, but each block keeps its rows, which belong to one pivot, for the whole fit.
//
// What a block keeps in shared memory: its rows' labels, their slack, the rows themselves where there is room, and the
// centroids, which it makes itself in each iteration (replicated_update.cuh). A row's slack is how much nearer it was
// to its own centroid than to any other of the pivot's list when it was last compared with them, less what centroids of
// the list have moved since (Hamerly 2010): while that is positive its label stays. Warps gather the rows without
// slack, so that strips are full of them. A centroid that is not on the list cannot be nearest to any row of the pivot,
// whatever the slack; where the list changes, all rows are compared again.
#include "plan/choose.hpp"
#include "fused/strips_block.cuh"

namespace pgkm::cuda {
namespace {

// Compares up to 16 rows of the warp's queue with the centroids; returns whether labels changed.
template <int C, int W>
__device__ bool take_queued(const MoveArguments &a, const Block &block, const Shared &shared,
                            const MoveCounters &counters, const PivotList &list, float drift,
                            const std::uint16_t *queue, int rows_queued)
{
    const int lane = static_cast<int>(threadIdx.x & 31), odd = lane & 1;
    const int place[2] = {queue[min(lane / 4, rows_queued - 1)], queue[min(8 + lane / 4, rows_queued - 1)]};
    const std::int32_t row[2] = {block.kept ? place[0] : block.row[place[0]],
                                 block.kept ? place[1] : block.row[place[1]]};
    const int mine = odd ? place[1] : place[0], last = block.label[mine];
    const bool valid = odd * 8 + lane / 4 < rows_queued && (lane & 2) == 0;
    Rows<C> rows;
    float square[2];
    load_rows<C, W>(block.source, a.view.d, shared, row, list.scale, rows, square);
    const RowBound bound[2] = {bound_row<C>(list, square[0]), bound_row<C>(list, square[1])};
    unsigned own[2];
    Least<true> least;
    filter_list<C>(shared, rows, bound, list, own, least);
    const int sole = sole_label(shared, list, own);
    const float slack = sole < 0
                            ? -1.0f
                            : slack_of(odd ? least.first[1] : least.first[0], odd ? least.second[1] : least.second[0],
                                       odd ? square[1] : square[0], odd ? bound[1] : bound[0], list, a.view.d);
    const int label = settle_strip(block.source, {block.now, a.view.k, a.view.d, centroid_stride(a.view.d)}, shared,
                                   list, row, own, sole);
    if (valid)
        block.slack[mine] = __fadd_rd(slack, drift);
    const bool moves = valid && label != last;
    const unsigned moved = __ballot_sync(~0u, moves);
    if (moved == 0)
        return false;
    if (moves) {
        block.label[mine] = static_cast<std::uint8_t>(label);
        a.last.set(block.first + mine, label);
    }
    move_rows(a, block.source, counters, odd ? row[1] : row[0], last, label, moved);
    return true;
}

// Starts a row's way to the second-level cache.
__device__ void prefetch_row(const MoveArguments &a, std::int32_t row)
{
    const float *values = a.view.values + std::int64_t{row} * a.view.d;
    tensor::prefetch_line(values);
    if (a.view.d > 32)
        tensor::prefetch_line(values + 32);
    tensor::prefetch_line(values + a.view.d - 1);
}

// Labels and moves of the block's rows; returns whether labels of the warp's rows changed.
template <int C, int W>
__device__ bool take_rows(const MoveArguments &a, const Block &block, const Shared &shared,
                          const MoveCounters &counters, const PivotList &list, const ListState &state)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const float limit = state.limit, drift = state.drift;
    const int share = (block.count + warps - 1) / warps; // the warp's rows
    int waiting = 0, first = static_cast<int>(threadIdx.x / 32) * share;
    const int end = min(first + share, block.count);
    const auto open = [&](int i) { return i < end && !(block.slack[i] > limit); };
    bool moved = false, wanted = open(first + lane);
    for (;; first += 32) {
        const bool ends = first >= end;
        const unsigned ballot = __ballot_sync(~0u, wanted);
        if (wanted)
            block.queue[waiting + __popc(ballot & ((1u << lane) - 1))] = static_cast<std::uint16_t>(first + lane);
        waiting += __popc(ballot);
        wanted = open(first + 32 + lane);
        if (wanted && !block.kept)
            prefetch_row(a, block.row[first + 32 + lane]);
        __syncwarp();
        while (waiting >= strip_rows || (ends && waiting > 0)) {
            const int taken = min(waiting, strip_rows);
            waiting -= taken;
            moved |= take_queued<C, W>(a, block, shared, counters, list, drift, block.queue + waiting, taken);
        }
        __syncwarp();
        if (ends)
            return moved;
    }
}

// New centroids from the sums, and their shifts, by the whole block; false: a cluster is empty, and nothing has
// changed. Other threads than those of the shifts find the centroids' distances from the pivot meanwhile.
__device__ bool update_centroids(const LoopArguments &l, Block &block, const Shared &shared, const Accumulators &sums)
{
    const UpdateArguments<float> &u = l.moves.update;
    const int k = u.k, d = u.d, stride = centroid_stride(d);
    if (make_means(sums, k, d, block.scales, block.next, stride))
        return false;
    make_shifts(u, block.next, block.now, stride, block.shifts);
    if (u.cosine) // the means have changed
        __syncthreads();
    measure_centroids({block.next, k, d, stride}, block.shift, shared.squares, (k + 31) / 32 * 32);
    __syncthreads();
    drop_repeated({block.next, k, d, stride}, shared);
    float *free = block.before;
    block.before = block.now;
    block.now = block.next;
    block.next = free;
    return true;
}

// The centroids and their history, for the host; by the threads from `first` on, one block's.
__device__ void leave_centroids(const UpdateArguments<float> &u, const Block &block, int first)
{
    const int n_values = u.k * u.d;
    for (int i = static_cast<int>(threadIdx.x) - first; i < n_values; i += threads - first) {
        const int at = i / u.d * centroid_stride(u.d) + i % u.d;
        u.centroids[i] = block.now[at];
        u.centroids[n_values + i] = block.before[at];
        u.centroids[2 * n_values + i] = block.next[at]; // the set that was before that one, until the next iteration
    }
}

// The decision, by one thread of each block.
__device__ StopReason decide_alike(const UpdateArguments<float> &u, const Block &block, double tol,
                                   std::int32_t iteration, std::int32_t most)
{
    const double shift = sum_shifts(block.shifts, u.k);
    const StopReason reason = reason_to_stop(shift, tol, iteration, most);
    if (blockIdx.x == 0)
        note_iteration(u, shift, tol, iteration, reason);
    return reason;
}

// The host finds the sums in the first set.
__device__ void leave_sums(const UpdateArguments<float> &u, const Accumulators &sums)
{
    if (blockIdx.x != 0 || sums.totals == u.sums.totals)
        return;
    for (int i = static_cast<int>(threadIdx.x); i < 2 * u.k * u.d; i += threads)
        u.sums.totals[i] = __ldcg(sums.totals + i);
    for (int i = static_cast<int>(threadIdx.x); i < 2 * u.k; i += threads)
        u.sums.masses[i] = __ldcg(sums.masses + i);
}

template <int C, int W>
__global__ void __launch_bounds__(threads, 1) strips_loop_kernel(const __grid_constant__ LoopArguments l)
{
    __shared__ ListState state;
    __shared__ StopReason reason;
    __shared__ bool goes_on;
    const MoveArguments &a = l.moves;
    const UpdateArguments<float> &u = a.update;
    const bool first_thread = threadIdx.x == 0;
    const std::int32_t most = u.control->max_iter;
    const double tol = u.control->tol;
    std::int32_t iteration = u.control->n_iter;
    const Shared shared = carve<C>(a);
    Block block = carve_block(l);
    const float radius = a.pivots.radius[block.pivot];
    load_block(l, block);
    measure_centroids({block.now, u.k, u.d, centroid_stride(u.d)}, block.shift, shared.squares);
    if (first_thread)
        state = {};
    __syncthreads();
    drop_repeated({block.now, u.k, u.d, centroid_stride(u.d)}, shared);
    if (threadIdx.x < 32)
        update_list(block, shared, u.k, radius, false, state);
    __syncthreads();
    GridBarrier barrier(l.memory.arrivals);
    bool moved_before = false;
    for (int turn = 0;; turn ^= 1) {
        const bool cancels = first_thread && blockIdx.x == 0 && stopped(u.control);
        const PivotList list = fill_list<C, W>({block.now, u.k, u.d, centroid_stride(u.d)}, shared, block.shift, radius,
                                               state.listed, state.reach);
        const bool warp_moved = take_rows<C, W>(a, block, shared, block.counters[turn], list, state);
        const bool moved = __syncthreads_or(warp_moved) != 0;
        const Accumulators &sums = turn == 0 ? u.sums : l.memory.other;
        if (moved || moved_before)
            publish_two(block.counters[turn], block.counters[turn ^ 1], sums);
        moved_before = moved;
        __syncthreads();
        if (first_thread) {
            barrier.arrive(cancels);
            goes_on = barrier.wait();
        }
        __syncthreads();
        if (!goes_on)
            return;
        if (!update_centroids(l, block, shared, sums)) {
            if (first_thread && blockIdx.x == 0)
                stop_for_empty(u);
            return leave_sums(u, sums);
        }
        ++iteration;
        if (threadIdx.x < 32)
            update_list(block, shared, u.k, radius, true, state);
        else if (threadIdx.x == 32)
            reason = decide_alike(u, block, tol, iteration, most);
        else if (threadIdx.x >= 64 && blockIdx.x == 0)
            leave_centroids(u, block, 64);
        __syncthreads();
        if (reason != running)
            return leave_sums(u, sums);
    }
}

template <int C, int W>
bool launch(const Stage<float> &stage, LoopArguments l)
{
    const int most = stage.context.facts.shared_bytes_per_block - 1024; // beside the kernel's own variables
    MoveArguments &a = l.moves;
    l.layout = lay_out<C>(a, kept_stride(a.view.d, W));
    if (l.layout.bytes > most)
        l.layout = lay_out<C>(a, 0);
    if (l.layout.bytes > most)
        return false;
    const auto kernel = strips_loop_kernel<C, W>;
    allow_memory(kernel, static_cast<std::size_t>(l.layout.bytes));
    const std::int64_t runs = (a.view.n + a.share - 1) / a.share + a.pivots.count;
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(stage.context.facts.multiprocessors, runs));
    void *arguments[] = {&l};
    checked("strips_loop_kernel", [&] {
        return cudaLaunchCooperativeKernel(reinterpret_cast<void *>(kernel), dim3(blocks), dim3(threads), arguments,
                                           static_cast<std::size_t>(l.layout.bytes), stage.stream);
    });
    return true;
}

} // namespace

bool loop_strips(const Stage<float> &stage, const MoveArguments &arguments, const LoopMemory &memory)
{
    const std::int64_t most = stage.context.facts.multiprocessors, n = arguments.view.n;
    LoopArguments l = {arguments, memory, {}};
    if (n > alone_rows(stage.context.facts) || 2 * arguments.pivots.count > most)
        return false;
    // So many that all pivots' runs, of which each may have one that is not full, find a block.
    l.moves.share = (n - 1) / (most - arguments.pivots.count) + 1;
    bool launched = false;
    with_strip_shape(arguments.view.d, [&](auto products, auto width) {
        launched = launch<decltype(products)::value, decltype(width)::value>(stage, l);
    });
    return launched;
}

} // namespace pgkm::cuda
