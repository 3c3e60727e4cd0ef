// gains.cu (seed) - a k-means++ step after its filter: exact distances of the rows that a trial may bring nearer, the
// choice of a trial, and the masses that follow the chosen one.
//
// The trial that leaves the least potential is the one that gains the most: masses of v_i less those of the new v_i,
// added over the rows that fall. Masses stay as they are but for these rows while some v_i keeps the exponent of the
// largest, since that alone is in the scale; where none does, all are weighed again.
// Data: each trial has a list of places. A place has a row's position; by that go its v_i and, through the order,
// values. Threads: 32 pairs of row and trial a warp (device/row_distances.cuh), rows by blockIdx.x and trials by
// blockIdx.y; atomics add integers. The block that finishes last decides for all; with peers that is greedy.cu's.
// Reference: test/reference/seed.cpp, the same rows.
#include <cooperative_groups.h>

#include "device/row_distances.cuh"
#include "plan/stages.hpp"
#include "seed/greedy_step.cuh"
#include "seed/trials.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int list_threads = 64; // of a block that goes over lists: its rows fit into 32 KB

template <typename T>
using ListedRows = RowDistances<T, OneCentroid<T>>;

template <typename T>
__device__ double weighted(const GreedyRows<T> &rows, std::int64_t position, double distance)
{
    return rows.weights == nullptr ? distance : rows.weights[position] * distance;
}

// Tells the peers of a v_i.
template <typename T>
__device__ void tell(const GreedyRows<T> &rows, std::uint32_t position, double nearest)
{
    if (rows.changes.positions == nullptr)
        return;
    const auto lanes = cooperative_groups::coalesced_threads();
    const std::uint32_t first = lanes.thread_rank() == 0 ? atomicAdd(&rows.state->changed, lanes.size()) : 0;
    const std::uint32_t at = lanes.shfl(first, 0) + lanes.thread_rank();
    rows.changes.positions[at] = position;
    rows.changes.nearest[at] = nearest;
}

// Calls take(place, position, weighted distance from the trial) for the list's entries from `first` to `end`; by all
// threads of the blocks with this blockIdx.y.
template <typename T, typename Take>
__device__ void each_listed(const GreedyRows<T> &rows, int trial, std::int64_t first, std::int64_t end, Take &&take)
{
    extern __shared__ uint4 list_memory[];
    const std::size_t bytes = ListedRows<T>::bytes(rows.d);
    const T *centroid = picked_row(rows, trial);
    ListedRows<T> listed(reinterpret_cast<char *>(list_memory) + threadIdx.x / 32 * bytes, rows.values, centroid,
                         rows.d);
    const std::int64_t lane = threadIdx.x & 31, stride = std::int64_t{gridDim.x} * list_threads;
    for (std::int64_t i = first + std::int64_t{blockIdx.x} * list_threads + threadIdx.x; i - lane < end; i += stride) {
        const bool there = i < end;
        const std::uint32_t place = there ? rows.lists[trial * rows.own + i] : 0,
                            position = there ? rows.positions[place] : 0;
        const double distance = listed.distance(there ? row_at(rows, position) : nullptr, centroid);
        if (there)
            take(place, position, weighted(rows, position, distance));
    }
}

template <typename T>
__global__ void __launch_bounds__(threads) begin_kernel(GreedyRows<T> rows, std::int64_t first, std::int64_t count)
{
    const T *centroid = picked_row(rows, 0);
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = first + std::int64_t{blockIdx.x} * threads + threadIdx.x; i < first + count; i += stride) {
        const std::uint32_t position = rows.positions[i];
        const T *row = rows.ordered.values + std::int64_t{rows.ordered.order[i]} * rows.d;
        const double nearest = weighted(rows, position, distance_ahead(row, centroid, rows.d));
        rows.nearest[position] = nearest;
        tell(rows, position, nearest);
        float2 sums = rows.ordered.measures[i];
        const float length = sqrtf(sums.x * (1.0f + sums_error(rows.d))) * (1.0f + 0x1p-22f);
        widen_lengths(sums.x, sums.y);
        const float lost = sums.y + 0x1p-40f;
        rows.facts[i] = {reach_of(rows, position, nearest, lost), length, lost};
    }
    if (first + count == rows.own && blockIdx.x == 0 && threadIdx.x == 0)
        rows.state->rescan = 1;
}

template <typename T>
__global__ void __launch_bounds__(list_threads)
    gains_kernel(GreedyRows<T> rows, std::int64_t first, std::int64_t most, bool last, std::int64_t *chosen)
{
    GreedyState *state = rows.state;
    if (state->seed.done != 0)
        return;
    const double scale = seed_scale(&state->seed);
    const int t = static_cast<int>(blockIdx.y);
    UInt128 mine = 0; // of fewer than 2^18 rows and those that they stand for
    each_listed(rows, t, first, min(first + most, std::int64_t{state->open[t]}),
                [&](std::uint32_t, std::uint32_t position, double distance) {
                    const double before = rows.nearest[position];
                    if (distance < before)
                        mine += static_cast<unsigned long long>(
                            copies_of(rows.counts, position) *
                            (quantise_mass(before, scale) - quantise_mass(distance, scale)));
                });
    const unsigned long long low = sum_in_block<list_threads>(static_cast<unsigned long long>(mine) & 0xffffffffULL),
                             high = sum_in_block<list_threads>(static_cast<unsigned long long>(mine >> 32));
    if (threadIdx.x == 0 && (low | high) != 0) {
        atomicAdd(&state->seed.potential[t][0], low);
        atomicAdd(&state->seed.potential[t][1], high);
    }
    if (last && arrives_last(&state->arrived) && threadIdx.x == 0)
        choose(state->seed, rows.trials, chosen, [&](int t) { return potential_of(state->seed, t); });
}

template <typename T>
__global__ void __launch_bounds__(list_threads) update_kernel(GreedyRows<T> rows)
{
    GreedyState *state = rows.state;
    if (state->seed.done != 0)
        return;
    const double largest = __longlong_as_double(static_cast<long long>(state->seed.largest));
    const int exponent = square_exponent(largest), best = state->seed.best;
    unsigned long long fallen = 0;
    each_listed(rows, best, 0, state->open[best], [&](std::uint32_t place, std::uint32_t position, double distance) {
        const double before = rows.nearest[position];
        if (!(distance < before))
            return;
        rows.nearest[position] = distance;
        tell(rows, position, distance);
        HalfFacts &facts = rows.facts[place];
        facts.reach = reach_of(rows, position, distance, facts.lost);
        fallen += lower_mass(rows, position, before, distance, exponent) ? 1 : 0;
    });
    lower_tops<list_threads>(state, fallen);
    if (rows.changes.positions == nullptr && arrives_last(&state->arrived) && threadIdx.x == 0)
        end_step(state);
}

template <typename T>
__global__ void __launch_bounds__(threads) largest_kernel(GreedyRows<T> rows)
{
    if (rows.state->rescan == 0)
        return;
    double largest = 0.0;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < rows.n; i += stride)
        largest = fmax(largest, rows.nearest[i]);
    raise_largest(&rows.state->seed.largest, largest);
}

// A slice a block.
template <typename T>
__global__ void __launch_bounds__(threads) masses_kernel(GreedyRows<T> rows)
{
    static_assert(seed_slice == threads);
    GreedyState *state = rows.state;
    if (*const_cast<volatile std::int32_t *>(&state->rescan) == 0)
        return;
    const double largest = __longlong_as_double(static_cast<long long>(state->seed.largest));
    const int exponent = square_exponent(largest);
    const double scale = power_of_two(exponent);
    unsigned long long tops = 0;
    const std::int64_t slices = (rows.n + seed_slice - 1) / seed_slice;
    for (std::int64_t slice = blockIdx.x; slice < slices; slice += gridDim.x) {
        const std::int64_t i = slice * seed_slice + threadIdx.x;
        const double nearest = i < rows.n ? rows.nearest[i] : 0.0;
        const unsigned long long copies = i < rows.n ? static_cast<unsigned long long>(copies_of(rows.counts, i)) : 0;
        const unsigned long long sum =
            sum_in_block<threads>(copies * static_cast<unsigned long long>(quantise_mass(nearest, scale)));
        if (threadIdx.x == 0)
            rows.slices[slice] = sum;
        tops += is_top(nearest, exponent) ? 1 : 0;
    }
    const unsigned long long sum = sum_in_block<threads>(tops);
    if (threadIdx.x == 0 && sum != 0)
        atomicAdd(&state->tops, sum);
    if (arrives_last(&state->arrived) && threadIdx.x == 0)
        state->rescan = 0;
}

// Shared memory of a block that goes over lists.
template <typename T>
std::size_t list_bytes(const GreedyRows<T> &rows)
{
    return list_threads / 32 * ListedRows<T>::bytes(rows.d);
}

} // namespace

template <typename T>
void GreedyKernels<T>::begin_nearest(std::int64_t first, std::int64_t count) const
{
    const int blocks = blocks_for(count, threads, context.facts.multiprocessors * 8);
    enqueue(begin_kernel<T>, blocks, threads, 0, context.compute.get(), rows, first, count);
}

template <typename T>
void GreedyKernels<T>::sum_gains(std::int64_t first, std::int64_t count, bool last, std::int64_t *chosen) const
{
    // A block adds at most 2^18 masses of 46 bits.
    const std::size_t bytes = list_bytes(rows);
    const int resident = resident_blocks(context, gains_kernel<T>, list_threads, bytes) / rows.trials;
    const int blocks =
        std::max(blocks_for(count, list_threads, std::max(resident, 1)), static_cast<int>(count >> 17) + 1);
    enqueue(gains_kernel<T>, {blocks, rows.trials}, list_threads, bytes, context.compute.get(), rows, first, count,
            last, chosen);
}

template <typename T>
void GreedyKernels<T>::update_nearest() const
{
    const std::size_t bytes = list_bytes(rows);
    const int resident = resident_blocks(context, update_kernel<T>, list_threads, bytes);
    enqueue(update_kernel<T>, blocks_for(rows.own, 4 * list_threads, resident), list_threads, bytes,
            context.compute.get(), rows);
}

template <typename T>
void GreedyKernels<T>::weigh_again() const
{
    const int blocks = blocks_for(rows.n, threads, context.facts.multiprocessors * 2); // most steps leave at once
    enqueue(largest_kernel<T>, blocks, threads, 0, context.compute.get(), rows);
    enqueue(masses_kernel<T>, blocks, threads, 0, context.compute.get(), rows);
}

template struct GreedyKernels<float>;
template struct GreedyKernels<double>;

} // namespace pgkm::cuda
