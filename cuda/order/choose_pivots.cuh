// choose_pivots.cuh - up to 16 pivots near the rows, from a sample of them.
//
// Seeds are found by turns: the sample farthest from those so far (farthest first, Gonzalez 1985), and one that lies
// farther from them than four fifths of the samples do. The first ones keep what is far away apart; the second ones go
// where the rows are, which the farthest rows of heavy tails are not. Each sample joins its nearest seed, and a pivot
// is the mean of its samples. Any pivots are right; good ones save time.
//
// pair_kernel: a block a sample, a warp a distance. seed_kernel: one block, a thread a sample; ranks by counting.
// join_kernel: a block a sample. pivot_kernel: a block a pivot.
#pragma once

#include "device/exact.cuh"
#include "order/ordered_rows.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__host__ __device__ int samples_of(const OrderedRows<T> &rows)
{
    return static_cast<int>(rows.n < pivot_samples ? rows.n : pivot_samples);
}

template <typename T>
__device__ const T *sample_at(const OrderedRows<T> &rows, int i)
{
    return rows.values + i * rows.n / samples_of(rows) * rows.d;
}

template <typename T>
__global__ void mean_kernel(OrderedRows<T> rows)
{
    const int f = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), samples = samples_of(rows);
    if (f >= rows.d)
        return;
    double sum = 0.0;
    for (int i = 0; i < samples; ++i)
        sum += static_cast<double>(sample_at(rows, i)[f]) / samples;
    rows.mean[f] = static_cast<T>(sum);
}

template <typename T>
__global__ void pair_kernel(OrderedRows<T> rows)
{
    const int i = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x & 31), samples = samples_of(rows);
    const T *mine = sample_at(rows, i);
    for (int j = static_cast<int>(threadIdx.x / 32); j <= samples; j += static_cast<int>(blockDim.x / 32)) {
        const float square = rough_square_by_warp(mine, j < samples ? sample_at(rows, j) : rows.mean, rows.d);
        if (lane == 0)
            rows.pairs[i * (samples + 1) + j] = square;
    }
}

// The place of the value that so many of a block's values, one a thread, are below; for all threads.
__device__ int place_of_rank(const float (&values)[pivot_samples], int count, int rank)
{
    __shared__ int place;
    __syncthreads();
    const int i = static_cast<int>(threadIdx.x);
    int below = 0;
    for (int j = 0; j < count; ++j)
        below += values[j] < values[i] || (values[j] == values[i] && j < i);
    if (i < count && below == rank)
        place = i;
    __syncthreads();
    return place;
}

// That of the largest.
__device__ int place_of_largest(const float (&values)[pivot_samples], int count)
{
    __shared__ unsigned long long largest;
    const int i = static_cast<int>(threadIdx.x);
    __syncthreads();
    if (i == 0)
        largest = 0;
    __syncthreads();
    // Distances are non-negative: their bits compare as integers, with the index below.
    const unsigned long long mine =
        max_lanes(i < count ? static_cast<unsigned long long>(__float_as_uint(values[i])) << 32 | threadIdx.x : 0ULL);
    if (i % 32 == 0)
        atomicMax(&largest, mine);
    __syncthreads();
    return static_cast<int>(largest & 0xffffffffu);
}

// needs_gain: one pivot where more would not bring rows much nearer.
template <typename T>
__global__ void __launch_bounds__(pivot_samples) seed_kernel(OrderedRows<T> rows, int most, bool needs_gain)
{
    __shared__ float nearest[pivot_samples];
    const int i = static_cast<int>(threadIdx.x), samples = samples_of(rows);
    const auto place_of_share = [&](double share) {
        return place_of_rank(nearest, samples, static_cast<int>(share * (samples - 1)));
    };
    nearest[i] = i < samples ? rows.pairs[i * (samples + 1) + samples] : 0.0f;
    const float farthest = nearest[place_of_largest(nearest, samples)], usual = nearest[place_of_share(0.5)];
    __syncthreads();
    nearest[i] = far_away;
    int chosen = 0, pick = 0;
    while (chosen < most) {
        if (i == 0)
            rows.facts->seed[chosen] = pick;
        if (i < samples)
            nearest[i] = fminf(nearest[i], rows.pairs[pick * (samples + 1) + i]);
        ++chosen;
        pick = place_of_largest(nearest, samples);
        if (nearest[pick] <= farthest / 400 && nearest[place_of_share(0.9)] <= usual / 400)
            break;
        if (chosen % 2 == 1) {
            const int other = place_of_share(0.8);
            pick = nearest[other] > 0.0f ? other : pick;
        }
        __syncthreads();
    }
    // A quarter of the distance (a sixteenth of its square) is the least gain worth an order.
    const bool gains =
        nearest[place_of_largest(nearest, samples)] * 16 <= farthest || nearest[place_of_share(0.5)] * 16 <= usual;
    if (i == 0)
        rows.facts->pivots = (gains || !needs_gain) && farthest < far_away ? chosen : 1;
}

template <typename T>
__global__ void join_kernel(OrderedRows<T> rows)
{
    const int i = static_cast<int>(blockIdx.x), samples = samples_of(rows);
    const float *pairs = rows.pairs + i * (samples + 1);
    int pivot = 0;
    for (int p = 1; p < rows.facts->pivots; ++p)
        pivot = pairs[rows.facts->seed[p]] < pairs[rows.facts->seed[pivot]] ? p : pivot;
    const T *mine = sample_at(rows, i);
    for (int f = static_cast<int>(threadIdx.x); f < rows.d; f += static_cast<int>(blockDim.x))
        atomicAdd(rows.sums + pivot * rows.d + f, mine[f] - rows.mean[f]);
    if (threadIdx.x == 0)
        atomicAdd(&rows.facts->members[pivot], 1);
}

// Exact for the filters, and in bfloat16 to find the nearest by.
template <typename T>
__global__ void __launch_bounds__(256) pivot_kernel(OrderedRows<T> rows)
{
    const int p = static_cast<int>(blockIdx.x), members = rows.facts->members[p], padded = (rows.d + 15) / 16 * 16;
    float square = 0.0f;
    for (int f = static_cast<int>(threadIdx.x); f < padded; f += 256) {
        const T mean = members > 0 && f < rows.d ? rows.sums[p * rows.d + f] / static_cast<T>(members) : T(0);
        const __nv_bfloat16 rounded = __float2bfloat16(static_cast<float>(mean));
        square = fmaf(__bfloat162float(rounded), __bfloat162float(rounded), square);
        rows.tile[(f / 16 * most_pivots + p) * 16 + f % 16] = rounded;
        if (f < rows.d)
            rows.pivots[p * rows.d + f] = rows.mean[f] + mean;
    }
    square = sum_in_block<256>(square);
    if (threadIdx.x == 0)
        rows.facts->half_norm[p] = members > 0 ? square / 2 : INFINITY;
}

} // namespace
} // namespace pgkm::cuda
