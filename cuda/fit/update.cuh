// update.cuh - the end of an iteration on the device: new centroids, shift, convergence.
#pragma once

#include <cuda_runtime.h>

#include "device/operands.cuh"
#include "device/view.cuh"

namespace pgkm::cuda {

// What the host reads while the device iterates; page-locked and mapped.
struct Progress {
    volatile std::int32_t iteration;
    volatile double       shift;
};

template <typename T>
struct UpdateArguments {
    Control            *control;
    Progress           *progress; // or nullptr
    Accumulators        sums;     // zeroed for the next iteration
    T                  *centroids; // three sets of k x d: current, previous, the one before it
    T                  *fresh;     // k x d
    double             *shifts;    // k
    const std::int32_t *feature_exponent;
    std::int32_t        weight_exponent;
    std::int32_t        k;
    std::int32_t        d;
    bool                cosine;
    Operands<T>         operands;
    cudaGraphConditionalHandle handle; // set to 0 when the fit stops, if has_handle
    bool                has_handle;
};

// Enqueues one update. What it decides is in arguments.control.
template <typename T>
void update(const UpdateArguments<T> &arguments, cudaStream_t stream);

// Enqueues the preparation of the operands for the current centroids, and the bounds in the
// operands' head.
template <typename T>
void prepare(const UpdateArguments<T> &arguments, cudaStream_t stream);

} // namespace pgkm::cuda
