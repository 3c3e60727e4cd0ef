// items.cuh (mixture) - what the kernels of EM are given: mixtures, runs of rows, and where sums go.
#pragma once

#include <cstdint>

#include "device/warp.cuh"

namespace pgkm::cuda::mixture {

// Where a problem's sums lie, in float64: for each component its mass, then the log-likelihood; the
// first sums, k x d; the second, `second_size` for each component (PgkmMixtureSums).
struct SumsLayout {
    std::int64_t k, d, second_size;

    __host__ __device__ std::int64_t first(std::int64_t j) const { return k + 1 + j * d; }
    __host__ __device__ std::int64_t second(std::int64_t j) const { return k + 1 + k * d + j * second_size; }
    __host__ __device__ std::int64_t values() const { return second(k); }
};

// One problem's mixture on the device.
struct MixtureView {
    std::int32_t k;
    std::int32_t slots;         // copies of the sums
    const double *means;        // k x d
    const double *factors;      // full: k x d x d, tied: d x d, lower triangular; diag: k x d; spherical: k
    const double *constants;    // k: a component's logarithm of the density at its mean, weighted
    const double *origin;       // tied, fused: d, amid the means
    double *targets;            // tied: W (mean - origin), k x d
    const double *coefficients; // fused (fused.hpp)
    double *products;           // by products: their coefficients (products.hpp)
    double *sums;               // slots x layout.values()
    double *results;            // layout.values(): all copies of the sums added up
    SumsLayout layout;
};

// A run of rows of one problem that fills one copy of its sums. In the workspace it has, component by
// component, a value for each row (log densities, then responsibilities), and in a row k the
// logarithms of the mixture's density.
struct Item {
    std::int64_t first;   // row, from the launch's values
    std::int64_t label;   // of its first row in the launch's labels
    std::int64_t shares;  // its values in the workspace: (k + 1) x n
    std::int64_t rotated; // tied: its rows W (x - origin) in the workspace: n x d
    std::int32_t n;
    std::int32_t problem;
    std::int32_t slot;
};

// What every kernel gets. Blocks (x, .., ..) work on item x.
template <typename T>
struct Launch {
    const T *values;       // row-major
    const double *weights; // of these rows, or NULL
    std::int32_t d;
    const MixtureView *mixtures;
    const Item *items;
    double *workspace;
    std::int32_t *labels;
    const std::int32_t *stop; // not 0: return at once
};

__device__ inline bool stopped(const std::int32_t *stop)
{
    return *const_cast<const volatile std::int32_t *>(stop) != 0;
}

} // namespace pgkm::cuda::mixture
