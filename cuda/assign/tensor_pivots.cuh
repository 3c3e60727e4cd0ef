// tensor_pivots.cuh - up to 16 pivots near the data, and the rows sorted by nearest pivot.
//
// Seeds are spread over a sample of the centroids (farthest first, Gonzalez 1985), each
// centroid joins its nearest seed, and a pivot is the mean of its members. Rows join the
// pivot that a bfloat16 product finds nearest. All of it is only a heuristic: any pivots and
// any grouping give the same labels, good ones make the filter sharp and short.
#pragma once

#include "assign/tensor_layout.cuh"

namespace pgkm::cuda::tensor {
namespace {

__device__ inline int sampled(int i, int sample, int k)
{
    return static_cast<int>(std::int64_t{i} * k / sample);
}

template <typename T>
__device__ inline float distance_by_warp(const T *a, const T *b, int d)
{
    float sum = 0.0f;
    for (int f = static_cast<int>(threadIdx.x & 31); f < d; f += 32) {
        const float difference = static_cast<float>(a[f] - b[f]);
        sum = fmaf(difference, difference, sum);
    }
    return fminf(sum_lanes(sum), 3e38f); // NaN too becomes "far"
}

// Block i: distances from sample i to all samples; and the reach of every sample-th centroid.
template <typename T>
__global__ void pair_kernel(View<T> view, const Control *control, Layout<T> l)
{
    if (stopped(control))
        return;
    const int i = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x / 32);
    const T *mine = view.centroids + std::int64_t{sampled(i, l.sample, view.k)} * view.d;
    for (int j = warp; j < l.sample; j += static_cast<int>(blockDim.x / 32)) {
        const T *other = view.centroids + std::int64_t{sampled(j, l.sample, view.k)} * view.d;
        const float distance = distance_by_warp(mine, other, view.d);
        if ((threadIdx.x & 31) == 0)
            l.pairs[i * l.sample + j] = distance;
    }
    T most = 0;
    for (int j = i; j < view.k; j += l.sample)
        for (int f = static_cast<int>(threadIdx.x); f < view.d; f += static_cast<int>(blockDim.x)) {
            const T away = view.centroids[std::int64_t{j} * view.d + f] - view.centroids[f];
            most = max(most, away < 0 ? -away : away);
        }
    most = max_lanes(most);
    if ((threadIdx.x & 31) == 0)
        raise(&l.groups_at->reach, static_cast<double>(most));
}

// One block of 256: picks the seeds.
template <typename T>
__global__ void seed_kernel(const Control *control, Layout<T> l, int k)
{
    __shared__ unsigned long long farthest[2];
    if (block_stopped(control))
        return;
    const int i = static_cast<int>(threadIdx.x);
    float near = infinity();
    int chosen = 0;
    if (i < 2)
        farthest[i] = 0;
    __syncthreads();
    for (int g = 0; g < l.groups; ++g) {
        if (i == 0)
            l.groups_at->seed[g] = sampled(chosen, l.sample, k);
        // Distances are non-negative: their bits compare as integers, with the index below.
        unsigned long long mine = 0;
        if (i < l.sample) {
            near = fminf(near, l.pairs[chosen * l.sample + i]);
            mine = static_cast<unsigned long long>(__float_as_uint(near)) << 32 | static_cast<unsigned>(i);
        }
        mine = max_lanes(mine);
        if ((i & 31) == 0)
            atomicMax(&farthest[g & 1], mine);
        __syncthreads();
        chosen = static_cast<int>(farthest[g & 1] & 0xffffffffu);
        if (i == 0)
            farthest[(g + 1) & 1] = 0;
        __syncthreads();
    }
}

// One warp per centroid: joins the nearest seed and adds itself to that group's mean.
template <typename T>
__global__ void join_kernel(View<T> view, const Control *control, Layout<T> l)
{
    if (stopped(control))
        return;
    const int j = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32),
              lane = static_cast<int>(threadIdx.x & 31);
    if (j >= view.k)
        return;
    const T *mine = view.centroids + std::int64_t{j} * view.d;
    float best = infinity();
    int group = 0;
    for (int g = 0; g < l.groups; ++g) {
        const float distance =
            distance_by_warp(mine, view.centroids + std::int64_t{l.groups_at->seed[g]} * view.d, view.d);
        if (distance < best) {
            best = distance;
            group = g;
        }
    }
    for (int f = lane; f < view.d; f += 32)
        atomicAdd(l.sums + group * view.d + f, mine[f] - view.centroids[f]);
    if (lane == 0)
        atomicAdd(&l.groups_at->members[group], 1);
}

// Block g: the pivot of group g, exact for the filter and in bfloat16 for grouping. Pivots
// that do not exist get an infinite norm.
template <typename T>
__global__ void pivot_kernel(View<T> view, const Control *control, Layout<T> l)
{
    if (block_stopped(control))
        return;
    const int g = static_cast<int>(blockIdx.x);
    const int members = g < l.groups ? l.groups_at->members[g] : 0;
    float square = 0.0f;
    for (int f = static_cast<int>(threadIdx.x); f < l.d32; f += 256) {
        const T mean = members > 0 && f < view.d ? l.sums[g * view.d + f] / static_cast<T>(members) : T(0);
        const __nv_bfloat16 rounded = __float2bfloat16(static_cast<float>(mean));
        square = fmaf(__bfloat162float(rounded), __bfloat162float(rounded), square);
        l.pivot_tile[(f / 16 * max_groups + g) * 16 + f % 16] = rounded;
        if (f < view.d)
            l.pivots[g * view.d + f] = view.centroids[f] + mean;
    }
    square = sum_in_block<256>(square);
    if (threadIdx.x == 0)
        l.groups_at->half_norm[g] = members > 0 ? square / 2 : infinity();
}

} // namespace
} // namespace pgkm::cuda::tensor
