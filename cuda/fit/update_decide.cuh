// update_decide.cuh - what ends every iteration on the device, whichever kernel updates.
#pragma once

#include "fit/update.cuh"

namespace pgkm::cuda {

// Why a fit stops, or that it goes on, after an iteration that is the `iteration`th.
//
// Labels are not compared: equal labels in two iterations without empty clusters mean equal
// sums, hence equal centroids and a shift of exactly 0, which ends the fit for any tol >= 0.
// A negative tol stops the device and goes to the host.
__device__ inline StopReason reason_to_stop(double shift, double tol, std::int32_t iteration, std::int32_t most)
{
    if (shift <= tol || (shift != 0.0 && iteration >= most))
        return finished;
    return shift == 0.0 ? compare_labels : running;
}

// Notes the iteration and its outcome (one thread of the device).
template <typename T>
__device__ inline void note_iteration(const UpdateArguments<T> &a, double shift, bool converged, std::int32_t iteration,
                                      StopReason reason)
{
    Control *control = a.control;
    if (converged)
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

// One thread: takes the iteration's shift into account and decides whether the fit goes on;
// returns whether it does.
template <typename T>
__device__ inline bool decide(const UpdateArguments<T> &a, double shift)
{
    Control *control = a.control;
    const std::int32_t iteration = control->n_iter + 1, most = control->max_iter;
    const double tol = control->tol;
    const bool cancels = stopped(control), converged = shift <= tol;
    const StopReason reason = reason_to_stop(shift, tol, iteration, most);
    control->arrived = 0;
    note_iteration(a, shift, converged, iteration, reason);
    const bool stops = reason != running || cancels;
    if (a.has_handle && stops)
        cudaGraphSetConditional(a.handle, 0);
    return !stops;
}

// A cluster without mass: the device stops and has changed nothing.
template <typename T>
__device__ inline void stop_for_empty(const UpdateArguments<T> &a)
{
    atomicCAS(&a.control->stop, running, empty_cluster);
}

// Any cluster without mass? Every thread of the block gets the answer.
__device__ inline bool block_finds_empty(const Accumulators &sums, int k)
{
    bool empty = false;
    for (int j = static_cast<int>(threadIdx.x); j < k; j += static_cast<int>(blockDim.x)) {
        std::int64_t any = 0;
        for (int i = 2 * j; i < 2 * k * parts_of(sums.weighted); i += 2 * k)
            any |= __ldcg(sums.masses + i) | __ldcg(sums.masses + i + 1);
        empty |= any == 0;
    }
    return __syncthreads_or(empty) != 0;
}

} // namespace pgkm::cuda
