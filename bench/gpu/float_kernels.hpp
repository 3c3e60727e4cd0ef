// float_kernels.hpp - k-means as it would be without the contract: labels by float32 scores that
// nothing settles, sums by float32 atomics. Only to be compared with.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace bench {

// Rows, centroids and labels on the device.
struct FloatProblem {
    const float  *values;    // n x d
    const float  *centroids; // k x d
    std::int64_t  n;
    int           d, k;
    std::int32_t *labels; // n, or nullptr
    float        *sums;   // k x d
    float        *counts; // k
    int           multiprocessors;
};

// Whether fused() takes the shape: points in registers, all centroids and sums on the chip.
bool fits_fused(int d, int k);

// |c|^2 / 2 of every centroid into halves (k floats).
void halves(const FloatProblem &problem, float *halves, cudaStream_t stream);
void float_labels(const FloatProblem &problem, const float *halves, cudaStream_t stream);
void float_sums(const FloatProblem &problem, cudaStream_t stream);
// Labels (not kept) and sums in one read of the rows.
void float_fused(const FloatProblem &problem, const float *halves, cudaStream_t stream);

} // namespace bench
