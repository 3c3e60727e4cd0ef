// entries.cu - finds the rows whose label changed and sorts what they do to the sums by cluster, all on the device.
//
// A counting sort in three kernels: count the entries; count them by cluster, where the last block sums the counts up
// to the places where clusters begin; place them. A block counts in shared memory, so that one large cluster costs no
// more than many, and takes places for its rows of one cluster at once; beyond about 25,000 clusters rows rarely meet,
// and each takes its own. Within a cluster the order is any: sums are integers. Where most labels are as before, a
// kernel costs two reads of the labels. The device decides whether all rows enter anew, so that the launches may be
// enqueued ahead.
#include "sums/entries.hpp"

#include <cub/block/block_reduce.cuh>

#include "device/sum_up.cuh"
#include "sums/update.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 1024;
constexpr int each = 4; // rows of a thread at a time
constexpr int tile = threads * each;
constexpr int blocks_per_unit = 2;

// The entries of one row: the cluster it enters and the one it leaves; -1: none.
struct Change {
    std::int32_t to, from;
};

__device__ inline Change change_of(std::int64_t row, std::int64_t n, const std::int32_t *labels, const Entries &entries,
                                   bool all)
{
    if (row >= n)
        return {-1, -1};
    const std::int32_t label = labels[row], last = all ? -1 : entries.last[row];
    return label == last ? Change{-1, -1} : Change{label, last};
}

// body(i, row, change) for `each` rows of every thread, a tile after the other; between(): after a tile.
template <typename Body, typename Between>
__device__ void each_tile(std::int64_t n, const std::int32_t *labels, const Entries &entries, bool all, Body &&body,
                          Between &&between)
{
    for (std::int64_t first = std::int64_t{blockIdx.x} * tile; first < n; first += std::int64_t{gridDim.x} * tile) {
        Change change[each];
#pragma unroll
        for (int i = 0; i < each; ++i)
            change[i] = change_of(first + i * threads + threadIdx.x, n, labels, entries, all);
#pragma unroll
        for (int i = 0; i < each; ++i)
            body(i, static_cast<std::int32_t>(first) + i * threads + static_cast<std::int32_t>(threadIdx.x), change[i]);
        between(first);
    }
}

__global__ void __launch_bounds__(threads)
    find_moves_kernel(std::int64_t n, const Control *control, const std::int32_t *labels, Entries entries)
{
    using Reduce = cub::BlockReduce<std::uint32_t, threads>;
    __shared__ typename Reduce::TempStorage storage;
    if (block_stopped(control))
        return;
    std::uint32_t moved = 0;
    each_tile(
        n, labels, entries, false,
        [&](int, std::int32_t, const Change &change) {
            moved += (change.to >= 0 ? 1 : 0) + (change.from >= 0 ? 1 : 0);
        },
        [](std::int64_t) {});
    moved = Reduce(storage).Sum(moved);
    if (threadIdx.x == 0 && moved != 0)
        atomicAdd(&entries.counts->moved, moved);
}

// The block's own counters of k clusters, where `Shared`.
__device__ inline std::uint32_t *own_counters()
{
    extern __shared__ std::uint32_t counters[];
    return counters;
}

__device__ inline void clear(std::uint32_t *counters, int k)
{
    for (int j = static_cast<int>(threadIdx.x); j < k; j += threads)
        counters[j] = 0;
}

// Sums that all rows enter anew are cleared: `n_totals` words, `n_masses` words.
template <bool Shared>
__global__ void __launch_bounds__(threads)
    count_entries_kernel(std::int64_t n, const Control *control, const std::int32_t *labels, Entries entries,
                         Accumulators sums, std::int64_t n_totals, std::int64_t n_masses, std::int32_t k)
{
    if (block_stopped(control))
        return;
    const bool all = enter_all(entries, n);
    if (all && entries.last != nullptr) {
        const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
        for (std::int64_t i = first; i < n_totals; i += std::int64_t{gridDim.x} * threads)
            sums.totals[i] = 0;
        for (std::int64_t i = first; i < n_masses; i += std::int64_t{gridDim.x} * threads)
            sums.masses[i] = 0;
    }
    std::uint32_t *counters = Shared ? own_counters() : entries.cursors;
    if constexpr (Shared) {
        clear(counters, k);
        __syncthreads();
    }
    each_tile(
        n, labels, entries, all,
        [&](int, std::int32_t, const Change &change) {
            if (change.to >= 0)
                atomicAdd(counters + change.to, 1u);
            if (change.from >= 0)
                atomicAdd(counters + change.from, 1u);
        },
        [](std::int64_t) {});
    if constexpr (Shared) {
        __syncthreads();
        for (int j = static_cast<int>(threadIdx.x); j < k; j += threads)
            if (counters[j] != 0)
                atomicAdd(entries.cursors + j, counters[j]);
    }
    if (arrives_last(&entries.counts->arrived))
        sum_up<threads>(entries.cursors, k);
}

template <bool Shared>
__global__ void __launch_bounds__(threads)
    place_entries_kernel(std::int64_t n, const Control *control, const std::int32_t *labels, Entries entries,
                         std::int32_t k)
{
    if (block_stopped(control))
        return;
    const bool all = enter_all(entries, n);
    std::uint32_t *counters = Shared ? own_counters() : entries.cursors;
    if constexpr (Shared) {
        clear(counters, k);
        __syncthreads();
    }
    Change changes[each];
    std::uint32_t to[each], from[each]; // places, where `Shared` among the block's
    each_tile(
        n, labels, entries, all,
        [&](int i, std::int32_t, const Change &change) {
            changes[i] = change;
            if (change.to >= 0)
                to[i] = atomicAdd(counters + change.to, 1u);
            if (change.from >= 0)
                from[i] = atomicAdd(counters + change.from, 1u);
        },
        [&](std::int64_t first) {
            if constexpr (Shared) {
                __syncthreads();
                for (int j = static_cast<int>(threadIdx.x); j < k; j += threads)
                    if (counters[j] != 0)
                        counters[j] = atomicAdd(entries.cursors + j, counters[j]);
                __syncthreads();
            }
#pragma unroll
            for (int i = 0; i < each; ++i) {
                const auto row =
                    static_cast<std::int32_t>(first) + i * threads + static_cast<std::int32_t>(threadIdx.x);
                const Change &change = changes[i];
                if (change.to >= 0) {
                    entries.list[to[i] + (Shared ? counters[change.to] : 0)] = {row, change.to};
                    if (entries.last != nullptr)
                        entries.last[row] = change.to;
                }
                if (change.from >= 0)
                    entries.list[from[i] + (Shared ? counters[change.from] : 0)] = {~row, change.from};
            }
            if constexpr (Shared) {
                __syncthreads();
                clear(counters, k);
                __syncthreads();
            }
        });
}

} // namespace

Entries carve_entries(Carver &carver, std::int64_t rows, std::int32_t k, bool follow)
{
    Entries entries = {};
    entries.last = follow ? carver.take<std::int32_t>(rows) : nullptr;
    entries.counts = carver.take<EntryCounts>(1); // cursors are behind it: one memset clears both
    entries.cursors = carver.take<std::uint32_t>(k);
    entries.list = carver.take<Entry>(rows);
    return entries;
}

std::size_t entry_bytes(std::int64_t rows, std::int32_t k, bool follow)
{
    Carver carver(nullptr);
    carve_entries(carver, rows, k, follow);
    return carver.used();
}

template <typename T>
void sort_entries(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, const Entries &entries,
                  const Accumulators &sums)
{
    const cudaStream_t stream = stage.stream;
    const DeviceFacts &facts = stage.context.facts;
    enqueue_fill(entries.counts, 0,
                 static_cast<std::size_t>(reinterpret_cast<char *>(entries.cursors + view.k) -
                                          reinterpret_cast<char *>(entries.counts)),
                 stream);
    const int blocks = blocks_for(view.n, tile, facts.multiprocessors * blocks_per_unit);
    const std::int64_t words = 2 * std::int64_t{parts_of(sums.weighted)} * view.k;
    if (entries.last != nullptr)
        enqueue(find_moves_kernel, blocks, threads, 0, stream, view.n, stage.control, labels, entries);
    const auto sort = [&](auto shared, std::size_t bytes) {
        constexpr bool Shared = decltype(shared)::value;
        enqueue(count_entries_kernel<Shared>, blocks, threads, bytes, stream, view.n, stage.control, labels, entries,
                sums, words * view.d, words, view.k);
        enqueue(place_entries_kernel<Shared>, blocks, threads, bytes, stream, view.n, stage.control, labels, entries,
                view.k);
    };
    const std::int64_t bytes = std::int64_t{view.k} * static_cast<std::int64_t>(sizeof(std::uint32_t));
    if (bytes <= facts.shared_bytes_per_block / blocks_per_unit - 8192)
        sort(std::true_type(), static_cast<std::size_t>(bytes));
    else
        sort(std::false_type(), 0);
}

template void sort_entries<float>(const Stage<float> &, const View<float> &, const std::int32_t *, const Entries &,
                                  const Accumulators &);
template void sort_entries<double>(const Stage<double> &, const View<double> &, const std::int32_t *, const Entries &,
                                   const Accumulators &);

} // namespace pgkm::cuda
