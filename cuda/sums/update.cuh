// update.cuh - the end of an iteration on the device: new centroids, shift, and whether the fit goes on.
#pragma once

#include <cuda_runtime.h>

#include "device/last_block.cuh"
#include "device/view.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {

// What the host reads while the device iterates; page-locked and mapped.
struct Progress {
    volatile std::int32_t iteration;
    volatile double shift; // while the fit goes on: its clusters' in any order
};

template <typename T>
struct UpdateArguments {
    Control *control;
    Progress *progress;                    // or nullptr
    Accumulators sums;                     // zeroed by update() for the next iteration, unless they stay
    T *centroids;                          // three sets of k x d: current, previous, the one before it
    T *fresh;                              // k x d
    double *shifts;                        // k
    const FeatureScale<T> *feature_scales; // d
    std::int32_t weight_exponent;
    std::int32_t k;
    std::int32_t d;
    bool cosine;
    bool sums_stay;    // the next iteration moves rows between them
    bool empty_remain; // clusters without mass keep their centroids; else they stop the fit
};

// Enqueues one update. What it decides is in arguments.control.
template <typename T>
void update(const UpdateArguments<T> &arguments, cudaStream_t stream);

// The shift is a chain over the clusters in ascending order, and long where they are many. Whether the fit goes on can
// mostly be told without it: two sums of k terms, none negative, in different orders differ by at most 2.01 k 2^-53 of
// either. What the fit returns is always the chain; its
// progress may show the other sum.
__device__ inline bool goes_on(const Control *control, double sum, int k)
{
    return control->n_iter + 1 < control->max_iter && sum > 0.0 && sum < 0x1p1000 &&
           sum * (1.0 - k * 0x1p-51) > control->tol;
}

// Fewest clusters for which that repays.
inline constexpr int long_chain = 64;

// The sum of term(0) to term(k - 1) by the whole block, in an order that k and the block's size fix; for all threads.
template <typename Term>
__device__ inline double sum_by_block(int k, Term &&term)
{
    __shared__ double parts[32];
    const int self = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    double sum = 0.0;
#pragma unroll 8
    for (int j = self; j < k; j += threads)
        sum += term(j);
    sum = sum_lanes(sum);
    if (self % 32 == 0)
        parts[self / 32] = sum;
    __syncthreads();
    sum = 0.0;
    for (int warp = 0; warp < threads / 32; ++warp)
        sum += parts[warp];
    return sum;
}

// One thread: takes the iteration's shift into account and decides whether the fit goes on.
//
// Labels are not compared: equal labels in two iterations without empty clusters mean equal
// sums, hence equal centroids and a shift of exactly 0, which ends the fit for any tol >= 0.
// A negative tol stops the device and goes to the host.
template <typename T>
__device__ inline void decide(const UpdateArguments<T> &a, double shift)
{
    Control *control = a.control;
    const std::int32_t iteration = control->n_iter + 1;
    const bool converges = shift <= control->tol;
    const StopReason reason = converges || (shift != 0.0 && iteration >= control->max_iter) ? finished
                              : shift == 0.0                                                ? compare_labels
                                                                                            : running;
    if (converges)
        control->converged = 1;
    control->shift = shift;
    control->n_iter = iteration;
    if (reason != running)
        atomicCAS(&control->stop, running, reason);
    if (a.progress != nullptr) {
        a.progress->shift = shift;
        a.progress->iteration = iteration;
    }
}

// A cluster without mass: the device stops and has changed nothing.
template <typename T>
__device__ inline void stop_for_empty(const UpdateArguments<T> &a)
{
    atomicCAS(&a.control->stop, running, empty_cluster);
}

} // namespace pgkm::cuda
