// finish.cuh - new centroids by one block from the sums of unweighted float32 rows: by the block that finishes an
// assignment last, so that an iteration is one launch where a launch of its own costs more than the update. The
// contract's operations in its order.
#pragma once

#include "device/exact.cuh"
#include "sums/update.cuh"

namespace pgkm::cuda {

// One answer for the block: the flag may change while its threads read it. A graph's loop is
// told to end.
__device__ inline bool block_stopped(const UpdateArguments<float> &a)
{
    __shared__ bool halted;
    if (threadIdx.x == 0) {
        halted = stopped(a.control);
        if (halted && a.has_handle && blockIdx.x == 0)
            cudaGraphSetConditional(a.handle, 0);
    }
    __syncthreads();
    return halted;
}

// The clusters' means by the whole block into its shared memory; returns whether a cluster has no mass.
__device__ inline bool make_means(const Accumulators &sums, int k, int d, const FeatureScale<float> *scales,
                                  float *means)
{
    constexpr int ahead = 4; // values whose sums are on their way at a time
    const int step = static_cast<int>(blockDim.x), step_j = step / d, step_f = step - step_j * d;
    const auto *totals = reinterpret_cast<const longlong2 *>(sums.totals);
    const auto *masses = reinterpret_cast<const longlong2 *>(sums.masses);
    bool empty = false;
    int j = static_cast<int>(threadIdx.x) / d, f = static_cast<int>(threadIdx.x) - j * d;
    for (int first = static_cast<int>(threadIdx.x); first < k * d; first += ahead * step) {
        longlong2 total[ahead], mass[ahead];
        int cluster[ahead], feature[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            cluster[i] = j;
            feature[i] = f;
            const bool wraps = f + step_f >= d;
            j += step_j + (wraps ? 1 : 0);
            f += step_f - (wraps ? d : 0);
            if (cluster[i] < k) {
                total[i] = __ldcg(totals + first + i * step);
                mass[i] = __ldcg(masses + cluster[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            if (cluster[i] >= k)
                break;
            empty |= mass[i].x == 0 && mass[i].y == 0;
            const FeatureScale<float> scale = scales[feature[i]];
            means[cluster[i] * d + feature[i]] =
                static_cast<float>(mean_of(join_limb_sums(total[i].x, total[i].y), join_limb_sums(mass[i].x, mass[i].y),
                                           static_cast<double>(scale.origin), scale.exponent, 0));
        }
    }
    return __syncthreads_or(empty) != 0;
}

// Makes the new means unit vectors where the metric is cosine (a zero mean keeps the old centroid), and notes the
// squared distance of each from the old centroid; by the whole block.
__device__ inline void make_shifts(const UpdateArguments<float> &a, float *next, const float *old, double *shifts)
{
    for (int j = static_cast<int>(threadIdx.x); j < a.k; j += static_cast<int>(blockDim.x)) {
        float *mean = next + j * a.d;
        const float *before = old + j * a.d;
        if (a.cosine && !normalise(mean, a.d))
            for (int f = 0; f < a.d; ++f)
                mean[f] = before[f];
        shifts[j] = distance_ahead(mean, before, a.d);
    }
}

// The fit's shift: that of its clusters, in order; by one thread.
__device__ inline double sum_shifts(const double *shifts, int k)
{
    double shift = 0.0;
#pragma unroll 8
    for (int j = 0; j < k; ++j)
        shift += shifts[j];
    return shift;
}

// New centroids, their history, the shift and the decision. `memory`: k (12 d + 8) bytes of shared memory. The sums
// stay as they are: rows move between them.
__device__ inline void finish_iteration(const UpdateArguments<float> &a, void *memory)
{
    const int n_values = a.k * a.d, self = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    double *shifts = static_cast<double *>(memory);
    float *next = reinterpret_cast<float *>(shifts + a.k), *old = next + n_values, *older = old + n_values;
    for (int i = self; i < n_values; i += threads) {
        old[i] = a.centroids[i];
        older[i] = a.centroids[n_values + i];
    }
    if (make_means(a.sums, a.k, a.d, a.feature_scales, next)) {
        if (self == 0) {
            stop_for_empty(a);
            if (a.has_handle)
                cudaGraphSetConditional(a.handle, 0);
        }
        return;
    }
    make_shifts(a, next, old, shifts);
    __syncthreads();
    for (int i = self; i < n_values; i += threads) {
        a.centroids[2 * n_values + i] = older[i];
        a.centroids[n_values + i] = old[i];
        a.centroids[i] = next[i];
    }
    const double sum = a.k > long_chain ? sum_by_block(a.k, [&](int j) { return shifts[j]; }) : 0.0;
    if (self == 0)
        decide(a, a.k > long_chain && goes_on(a.control, sum, a.k) ? sum : sum_shifts(shifts, a.k));
}

} // namespace pgkm::cuda
