// tensor_order.cuh - a lasting order of the columns in which near centroids are neighbours, and the rows of a pivot in
// the order of their labels' columns.
//
// Then a tile of rows has few bundles of columns near, and the same ones again (tensor_limits.cuh). Up to 256 sampled
// centroids form a chain, each the nearest of those left to the one before; centroids follow their nearest sample. Any
// order is right, a good one leaves much out. None of it looks at the fit's end: a half of it would leave no order of
// all rows.
#pragma once

#include "assign/tensor_tile.cuh"
#include "device/sum_up.cuh"

namespace pgkm::cuda::tensor {
namespace {

__device__ inline int sampled(int i, int sample, int k)
{
    return static_cast<int>(std::int64_t{i} * k / sample);
}

// Block i: distances from sample i to all samples.
template <typename T>
__global__ void pair_kernel(View<T> view, Layout<T> l)
{
    const int i = static_cast<int>(blockIdx.x);
    const T *mine = view.centroids + std::int64_t{sampled(i, l.sample, view.k)} * view.d;
    for (int j = static_cast<int>(threadIdx.x / 32); j < l.sample; j += static_cast<int>(blockDim.x / 32)) {
        const T *other = view.centroids + std::int64_t{sampled(j, l.sample, view.k)} * view.d;
        const float distance = rough_square_by_warp(mine, other, view.d);
        if ((threadIdx.x & 31) == 0)
            l.pairs[i * l.sample + j] = distance;
    }
}

// Shared memory of chain_kernel.
inline std::size_t chain_bytes(int sample)
{
    return sizeof(std::uint16_t) * static_cast<std::size_t>(sample) * static_cast<std::size_t>(sample);
}

// One block of 1024, which brings the samples' distances (pair_kernel) near; then one warp: their chain. Of a distance
// the upper half will do. It is positive, so that its bits compare.
template <typename T>
__global__ void __launch_bounds__(1024) chain_kernel(Layout<T> l)
{
    extern __shared__ std::uint16_t near_pairs[];
    for (int i = static_cast<int>(threadIdx.x); i < l.sample * l.sample; i += 1024)
        near_pairs[i] = static_cast<std::uint16_t>(__float_as_uint(l.pairs[i]) >> 16);
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    constexpr int each = 8;
    const int lane = static_cast<int>(threadIdx.x);
    unsigned gone = 0; // of the samples lane, lane + 32, ...
    int at = 0;
    for (int place = 0; place < l.sample; ++place) {
        if (at % 32 == lane) {
            gone |= 1u << at / 32;
            l.rank[at] = place;
        }
        unsigned least = ~0u;
        for (int i = 0; i < each; ++i) {
            const int j = lane + i * 32;
            if (j < l.sample && (gone >> i & 1) == 0)
                least =
                    min(least, static_cast<unsigned>(near_pairs[at * l.sample + j]) << 16 | static_cast<unsigned>(j));
        }
        at = static_cast<int>(__reduce_min_sync(~0u, least) & 255u);
    }
}

// A block per centroid: its nearest sample.
template <typename T>
__global__ void near_kernel(View<T> view, Layout<T> l)
{
    __shared__ unsigned long long nearest;
    if (threadIdx.x == 0)
        nearest = ~0ULL;
    __syncthreads();
    const int j = static_cast<int>(blockIdx.x);
    const T *mine = view.centroids + std::int64_t{j} * view.d;
    for (int i = static_cast<int>(threadIdx.x / 32); i < l.sample; i += static_cast<int>(blockDim.x / 32)) {
        const float distance =
            rough_square_by_warp(mine, view.centroids + std::int64_t{sampled(i, l.sample, view.k)} * view.d, view.d);
        // Distances are non-negative: their bits compare as integers, with the index below.
        if (threadIdx.x % 32 == 0)
            atomicMin(&nearest,
                      static_cast<unsigned long long>(__float_as_uint(distance)) << 32 | static_cast<unsigned>(i));
    }
    __syncthreads();
    if (threadIdx.x == 0)
        l.near[j] = static_cast<std::int32_t>(nearest & 0xffffffffu);
}

// One block of 1024: each centroid's position.
template <typename T>
__global__ void __launch_bounds__(1024) position_kernel(Layout<T> l, int k)
{
    __shared__ std::int32_t next[256];
    const int i = static_cast<int>(threadIdx.x);
    if (i < 256)
        next[i] = 0;
    __syncthreads();
    for (int j = i; j < k; j += 1024)
        atomicAdd(&next[l.rank[l.near[j]]], 1);
    __syncthreads();
    if (i == 0)
        for (int r = 0, sum = 0; r < 256; ++r) {
            const int mine = next[r];
            next[r] = sum;
            sum += mine;
        }
    __syncthreads();
    for (int j = i; j < k; j += 1024)
        l.stable[j] = atomicAdd(&next[l.rank[l.near[j]]], 1);
    if (i == 0)
        l.progress->ordered = 1;
}

// Positions that share a bin, as a power of two, and the bins of a pivot.
__host__ __device__ inline int bin_shift(int k)
{
    int shift = 0;
    while (((k - 1) >> shift) + 1 > order_bins / most_pivots)
        ++shift;
    return shift;
}
__host__ __device__ inline int pivot_bins(int k)
{
    return ((k - 1) >> bin_shift(k)) + 1;
}

// Rows of one pivot and of labels that are neighbours in the columns' order share a bin.
template <typename T>
__device__ inline int bin_of(const Layout<T> &l, std::int32_t place, int k)
{
    int g = 0;
    while (g + 1 < most_pivots && place >= l.rows.facts->offset[g + 1])
        ++g;
    const std::int32_t label = l.labels[l.rows.order[place]];
    return g * pivot_bins(k) + (label >= 0 && label < k ? l.stable[label] >> bin_shift(k) : 0);
}

template <typename T>
__global__ void bin_kernel(Layout<T> l, std::int32_t n, int k)
{
    const std::int32_t place = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place < n)
        atomicAdd(&l.bins[bin_of(l, place, k)], 1);
}

// One block of 1024: from counts to first places.
template <typename T>
__global__ void __launch_bounds__(1024) first_kernel(Layout<T> l, int bins)
{
    sum_up<1024>(l.bins, bins);
}

// The rows' new order, in the list of rows to settle, which is idle.
template <typename T>
__global__ void arrange_kernel(Layout<T> l, std::int32_t n, int k)
{
    const std::int32_t place = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place < n)
        l.settle[atomicAdd(&l.bins[bin_of(l, place, k)], 1)] = l.rows.order[place];
}

template <typename T>
__global__ void adopt_kernel(Layout<T> l, std::int32_t n)
{
    const std::int32_t place = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (place < n)
        l.rows.order[place] = l.settle[place];
}

template <typename V, typename T>
void fill_bytes(const Stage<T> &stage, V *memory, int byte, std::size_t count)
{
    enqueue_fill(memory, byte, count * sizeof *memory, stage.stream);
}

template <typename T>
void forget_gaps(const Stage<T> &stage, const Layout<T> &l)
{
    if (l.gaps != nullptr)
        fill_bytes(stage, l.gaps, 0, static_cast<std::size_t>(l.tile_room) * static_cast<std::size_t>(l.bundles));
}

// Before the first assignment: no labels, no gaps.
template <typename T>
void forget_labels(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    if (l.labels == nullptr)
        return;
    fill_bytes(stage, l.progress, 0, 1);
    fill_bytes(stage, l.labels, 0xff, static_cast<std::size_t>(view.n));
    fill_bytes(stage, l.last, 0, static_cast<std::size_t>(view.k) * static_cast<std::size_t>(view.d));
    forget_gaps(stage, l);
}

// Columns and rows in the order of the labels of the last assignment. Gaps are void.
template <typename T>
void order_by_labels(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    const cudaStream_t stream = stage.stream;
    const unsigned clusters = static_cast<unsigned>(view.k), lines = static_cast<unsigned>((view.n + 255) / 256);
    const auto n = static_cast<std::int32_t>(view.n);
    enqueue(pair_kernel<T>, l.sample, 256, 0, stream, view, l);
    const std::size_t chain = chain_bytes(l.sample);
    enqueue(chain_kernel<T>, 1, 1024, chain, stream, l);
    enqueue(near_kernel<T>, clusters, 256, 0, stream, view, l);
    enqueue(position_kernel<T>, 1, 1024, 0, stream, l, view.k);
    fill_bytes(stage, l.bins, 0, order_bins);
    enqueue(bin_kernel<T>, lines, 256, 0, stream, l, n, view.k);
    enqueue(first_kernel<T>, 1, 1024, 0, stream, l, most_pivots * pivot_bins(view.k));
    enqueue(arrange_kernel<T>, lines, 256, 0, stream, l, n, view.k);
    enqueue(adopt_kernel<T>, lines, 256, 0, stream, l, n);
    make_halves(stage.context, l.rows);
    forget_gaps(stage, l);
}

} // namespace
} // namespace pgkm::cuda::tensor
