// update.cu - from integer sums to new centroids, as update_centroids() of src/backend/update.hpp does, for any shape.
//
// A block takes some clusters at a time, as many of their values as it has room for in shared memory; its threads share
// out the values. The two sums whose order counts (norm, shift) are chains over the features: a thread for each
// cluster. The block that arrives last decides; it adds the clusters' shifts in order only where the decision or the
// caller needs that (goes_on()). A kernel before it looks for clusters without mass: a launch of one block does so
// itself.
#include "sums/update.cuh"

#include <algorithm>

#include "plugin/check.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 128;
constexpr int each = 4; // values of a thread at a time, whose sums are on their way at once
constexpr int room = threads * each;
constexpr int most_clusters = 32; // of a block at a time

// What a block takes at a time: `width` features of `clusters` clusters.
struct Tile {
    int clusters;
    int width;
    __host__ __device__ explicit Tile(int d)
    {
        const int chunks = (d + room - 1) / room;
        width = (d + chunks - 1) / chunks;
        clusters = width == d ? min(room / d, most_clusters) : 1;
    }
    // Apart in memory by an odd number of values, so that the clusters' chains read from different banks.
    __host__ __device__ int stride() const { return width | 1; }
};

struct BlockMemory {
    double values[room + most_clusters]; // of a tile, its clusters Tile::stride() apart
    double sums[most_clusters];          // chains
    double norms[most_clusters];         // 0: the cluster keeps its centroid
};

template <typename T>
__device__ inline Int128 total_at(const UpdateArguments<T> &a, std::int64_t at)
{
    return sum_of(a.sums.totals, std::int64_t{a.k} * a.d, at, a.sums.weighted);
}

template <typename T>
__device__ inline T mean_at(const UpdateArguments<T> &a, Int128 total, int j, int f)
{
    const Int128 mass = sum_of(a.sums.masses, a.k, j, a.sums.weighted);
    const FeatureScale<T> scale = a.feature_scales[f];
    return static_cast<T>(mean_of(total, mass, static_cast<double>(scale.origin), scale.exponent, a.weight_exponent));
}

// write(cluster of the tile, feature, read(the same)) for each value. The squares of what it returns are summed in the
// order of the features, to memory.sums.
template <typename Read, typename Write>
__device__ void chain_tiles(BlockMemory &memory, const Tile &tile, int clusters, int d, Read &&read, Write &&write)
{
    const int self = static_cast<int>(threadIdx.x), stride = tile.stride();
    if (self < clusters)
        memory.sums[self] = 0.0;
    for (int first = 0; first < d; first += tile.width) {
        const int width = min(tile.width, d - first);
        decltype(read(0, 0)) found[each];
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int at = self + i * threads, cluster = at / width;
            if (cluster < clusters)
                found[i] = read(cluster, first + at - cluster * width);
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int at = self + i * threads, cluster = at / width, f = at - cluster * width;
            if (cluster < clusters)
                memory.values[cluster * stride + f] = write(cluster, first + f, found[i]);
        }
        __syncthreads();
        if (self < clusters) {
            const double *values = memory.values + self * stride;
            double sum = memory.sums[self];
#pragma unroll 8
            for (int f = 0; f < width; ++f)
                sum = ::fma(values[f], values[f], sum);
            memory.sums[self] = sum;
        }
        __syncthreads();
    }
}

template <typename T>
__device__ inline bool is_empty(const UpdateArguments<T> &a, int j)
{
    return sum_of(a.sums.masses, a.k, j, a.sums.weighted) == 0;
}

// Means in a.fresh, and what they are divided by to become unit vectors.
template <typename T>
__device__ void make_directions(const UpdateArguments<T> &a, BlockMemory &memory, const Tile &tile, int first,
                                int clusters)
{
    const auto at = [&](int cluster, int f) { return std::int64_t{first + cluster} * a.d + f; };
    chain_tiles(
        memory, tile, clusters, a.d, [&](int cluster, int f) { return total_at(a, at(cluster, f)); },
        [&](int cluster, int f, Int128 total) {
            const T mean =
                a.empty_remain && is_empty(a, first + cluster) ? T{0} : mean_at(a, total, first + cluster, f);
            a.fresh[at(cluster, f)] = mean;
            return static_cast<double>(mean);
        });
    const int self = static_cast<int>(threadIdx.x);
    if (self < clusters) {
        const double square = memory.sums[self];
        memory.norms[self] = ::sqrt(square);
        if (square < 0x1p-900) // the contract's rare way
            memory.norms[self] = normalise(a.fresh + std::int64_t{first + self} * a.d, a.d) ? 1.0 : 0.0;
    }
    __syncthreads();
}

// Replaces the centroids of some clusters; notes their history and shifts.
template <typename T>
__device__ void replace_centroids(const UpdateArguments<T> &a, BlockMemory &memory, const Tile &tile, int first,
                                  int clusters)
{
    if (a.cosine)
        make_directions(a, memory, tile, first, clusters);
    const std::int64_t set = std::int64_t{a.k} * a.d;
    struct Found {
        Int128 total;
        T old, before;
    };
    const auto at = [&](int cluster, int f) { return std::int64_t{first + cluster} * a.d + f; };
    chain_tiles(
        memory, tile, clusters, a.d,
        [&](int cluster, int f) {
            const std::int64_t i = at(cluster, f);
            return Found{a.cosine ? 0 : total_at(a, i), a.centroids[i], a.centroids[set + i]};
        },
        [&](int cluster, int f, const Found &found) {
            const std::int64_t i = at(cluster, f);
            T next = found.old;
            if (!a.cosine && !(a.empty_remain && is_empty(a, first + cluster)))
                next = mean_at(a, found.total, first + cluster, f);
            else if (a.cosine && memory.norms[cluster] != 0.0)
                next = static_cast<T>(static_cast<double>(a.fresh[i]) / memory.norms[cluster]);
            for (int part = 0; !a.sums_stay && part < parts_of(a.sums.weighted); ++part)
                reinterpret_cast<longlong2 *>(a.sums.totals)[part * set + i] = make_longlong2(0, 0);
            a.centroids[2 * set + i] = found.before;
            a.centroids[set + i] = found.old;
            a.centroids[i] = next;
            return static_cast<double>(next) - static_cast<double>(found.old);
        });
    if (static_cast<int>(threadIdx.x) < clusters)
        a.shifts[first + static_cast<int>(threadIdx.x)] = memory.sums[threadIdx.x];
    __syncthreads();
}

// The clusters' shifts in order, by the whole block; thread 0 has the sum.
template <typename T>
__device__ double chain_shifts(const UpdateArguments<T> &a, BlockMemory &memory)
{
    double shift = 0.0;
    for (int first = 0; first < a.k; first += room) {
        const int count = min(room, a.k - first);
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const int at = static_cast<int>(threadIdx.x) + i * threads;
            memory.values[at] = at < count ? __ldcg(a.shifts + first + at) : 0.0;
        }
        __syncthreads();
        if (threadIdx.x == 0)
#pragma unroll 16
            for (int i = 0; i < count; ++i)
                shift += memory.values[i];
        __syncthreads();
    }
    return shift;
}

// The last block to arrive closes the iteration.
template <typename T>
__device__ void close_iteration(const UpdateArguments<T> &a, BlockMemory &memory)
{
    double shift = 0.0;
    if (a.k > long_chain)
        shift = sum_by_block(a.k, [&](int j) { return __ldcg(a.shifts + j); });
    // One answer for the block: thread 0 writes what it is taken from.
    if (!__syncthreads_or(threadIdx.x == 0 && a.k > long_chain && goes_on(a.control, shift, a.k)))
        shift = chain_shifts(a, memory);
    for (int j = threadIdx.x; !a.sums_stay && j < 2 * a.k * parts_of(a.sums.weighted); j += threads)
        a.sums.masses[j] = 0;
    if (threadIdx.x == 0)
        decide(a, shift);
}

// A cluster a thread. One without mass stops the fit.
template <typename T>
__global__ void __launch_bounds__(threads) find_empty_kernel(UpdateArguments<T> a)
{
    const int j = static_cast<int>(blockIdx.x * threads + threadIdx.x);
    if (j < a.k && !stopped(a.control) && is_empty(a, j))
        stop_for_empty(a);
}

// The same by the only block of a launch; all its threads get the answer.
template <typename T>
__device__ inline bool block_finds_empty(const UpdateArguments<T> &a)
{
    bool empty = false;
    for (int j = static_cast<int>(threadIdx.x); j < a.k; j += threads)
        empty |= is_empty(a, j);
    empty = __syncthreads_or(empty);
    if (empty && threadIdx.x == 0)
        stop_for_empty(a);
    return empty;
}

template <typename T>
__global__ void __launch_bounds__(threads, sizeof(T) == 4 ? 8 : 5) update_kernel(UpdateArguments<T> a)
{
    __shared__ BlockMemory memory;
    if (block_stopped(a.control)) // one answer for the block: the flag may change while its threads read it
        return;
    if (gridDim.x == 1 && !a.empty_remain && block_finds_empty(a))
        return;
    const Tile tile(a.d);
    for (int j = static_cast<int>(blockIdx.x) * tile.clusters; j < a.k;
         j += static_cast<int>(gridDim.x) * tile.clusters)
        replace_centroids(a, memory, tile, j, min(tile.clusters, a.k - j));
    if (arrives_last(&a.control->arrived))
        close_iteration(a, memory);
}

} // namespace

template <typename T>
void update(const UpdateArguments<T> &arguments, cudaStream_t stream)
{
    const auto blocks = [&](int clusters) { return static_cast<unsigned>((arguments.k + clusters - 1) / clusters); };
    const unsigned tiles = std::min(blocks(Tile(arguments.d).clusters), 4096u);
    if (tiles > 1 && !arguments.empty_remain)
        enqueue(find_empty_kernel<T>, blocks(threads), threads, 0, stream, arguments);
    enqueue(update_kernel<T>, tiles, threads, 0, stream, arguments);
}

template void update<float>(const UpdateArguments<float> &, cudaStream_t);
template void update<double>(const UpdateArguments<double> &, cudaStream_t);

} // namespace pgkm::cuda
