// finish.cuh - the update by the block that finishes an assignment last, so that an iteration
// is one launch: for few cells, where a launch of its own costs more than the update.
#pragma once

#include "device/exact.cuh"
#include "fit/update_decide.cuh"

namespace pgkm::cuda {

// Cells that one block updates in little more time than a launch takes.
inline constexpr int finish_cells = 8192;

// Whether this block is the last of the launch to get here, by a count of those that did; all its
// threads get the answer, and see what the others wrote.
__device__ inline bool arrives_last(std::uint32_t *arrived)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

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

// Gives a cluster's new mean unit length; a zero mean keeps the old centroid (one thread).
__device__ inline void normalise_mean(const UpdateArguments<float> &a, float *next, const float *old)
{
    if (!normalise(next, a.d))
        for (int f = 0; f < a.d; ++f)
            next[f] = old[f];
}

// New centroids from the sums of unweighted rows, their history, the shift and the decision.
// `memory`: k (12 d + 8) bytes of shared memory. All that is read is read at once. The sums stay as they are: rows move between them.
__device__ inline void finish_iteration(const UpdateArguments<float> &a, void *memory)
{
    const int cells = a.k * a.d, self = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    double *shifts = static_cast<double *>(memory);
    float *next = reinterpret_cast<float *>(shifts + a.k), *old = next + cells, *older = old + cells;
    bool empty = false;
    for (int i = self; i < cells; i += threads) {
        const int j = i / a.d;
        const std::int64_t *total = a.sums.totals + 2 * i, *mass = a.sums.masses + 2 * j;
        const std::int64_t high = __ldcg(total), low = __ldcg(total + 1), mass_high = __ldcg(mass), mass_low = __ldcg(mass + 1);
        old[i] = a.centroids[i];
        older[i] = a.centroids[cells + i];
        empty |= mass_high == 0 && mass_low == 0;
        next[i] = static_cast<float>(mean_of(join_limb_sums(high, low), join_limb_sums(mass_high, mass_low),
                                             a.feature_exponent[i - j * a.d], 0));
    }
    if (__syncthreads_or(empty)) {
        if (self == 0) {
            stop_for_empty(a);
            a.control->arrived = 0;
            if (a.has_handle)
                cudaGraphSetConditional(a.handle, 0);
        }
        return;
    }
    if (a.cosine) {
        for (int j = self; j < a.k; j += threads)
            normalise_mean(a, next + j * a.d, old + j * a.d);
        __syncthreads();
    }
    for (int i = self; i < cells; i += threads) {
        a.centroids[2 * cells + i] = older[i];
        a.centroids[cells + i] = old[i];
        a.centroids[i] = next[i];
    }
    for (int j = self; j < a.k; j += threads)
        shifts[j] = distance_ahead(next + j * a.d, old + j * a.d, a.d);
    __syncthreads();
    if (self != 0)
        return;
    double shift = 0.0;
#pragma unroll 8
    for (int j = 0; j < a.k; ++j)
        shift += shifts[j];
    decide(a, shift);
}

} // namespace pgkm::cuda
