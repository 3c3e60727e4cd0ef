// products.hpp (mixture) - E step and sums by matrix products, for diag, spherical and tied mixtures of any size.
//
// Rows are taken about an origin amid the means, y = x - origin, as in fused.hpp, whose rules say for which mixtures
// that keeps enough digits. Log densities are a product of [y, y y] with coefficients (spherical: of y alone; tied: of
// the rotated rows W y), sums a product of responsibilities with [y, y y]; both run on the tensor cores in float64.
// Between the two lie, in the workspace, exponentials of log densities about the largest of each strip of 64
// components, and for each strip and row what they must be multiplied by.
#pragma once

#include "plugin/context.hpp"
#include "mixture/log_sum_exp.cuh"
#include "mixture/parameters.hpp"
#include "mixture/product_tile.cuh"

namespace pgkm::cuda::mixture {

inline constexpr int strip = product_columns; // components of a block, whose exponentials are about their largest

// A mixture's coefficients on the device. Components and features are rounded up, zeros fill them: for each component
// the factors of y; diag: then, for each, those of y^2; then the constants; then, spherical and tied, the factors of
// |y|^2.
struct ProductLayout {
    std::int64_t components, features;
    int runs; // of components x features factors

    __host__ __device__ ProductLayout(std::int64_t k, std::int64_t d, bool diagonal)
        : components((k + strip - 1) / strip * strip),
          features((d + product_depth - 1) / product_depth * product_depth), runs(diagonal ? 2 : 1)
    {
    }
    __host__ __device__ std::int64_t constants() const { return components * runs * features; }
    __host__ __device__ std::int64_t halves() const { return constants() + components; }
    __host__ __device__ std::int64_t values() const { return halves() + components; }
};

// An item's part of the workspace, for n rows rounded up to whole tiles.
template <typename T>
struct ProductShares {
    T *exponentials; // k x rows
    double *tops;    // strips x rows: the largest log density, then the factor of the exponentials
    double *sums;    // strips x rows: of the exponentials
    double *norms;   // rows: logarithms of the mixture's density
    double *squares; // rows: |y|^2; spherical
    std::int64_t rows;

    __host__ __device__ static std::int64_t values_per_row(std::int64_t k)
    {
        return (k * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 + 2 * ((k + strip - 1) / strip) + 2;
    }
    __device__ ProductShares(double *workspace, const Item &item, std::int64_t k)
        : exponentials(reinterpret_cast<T *>(workspace + item.shares)),
          rows((item.n + tile_rows - 1) / tile_rows * tile_rows)
    {
        const std::int64_t strips = (k + strip - 1) / strip;
        tops = workspace + item.shares + (k * static_cast<std::int64_t>(sizeof(T)) + 7) / 8 * rows;
        sums = tops + strips * rows;
        norms = sums + strips * rows;
        squares = norms + rows;
    }
};

// The mixtures' coefficients from means, factors and constants; tied: from targets. reach, unless NULL, becomes the
// largest |w (mean - origin)|^2, as bits of a float64 value (fused.hpp).
void prepare_products(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                      PgkmCovariance type, unsigned long long *reach, cudaStream_t stream);
// Rows to exponentials and their factors.
template <typename T>
void product_densities(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream);
// All sums, about the origin. Of the squares of y each feature's (diag), that of all features together (spherical), or
// none (tied).
template <typename T>
void product_sums(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream);
// Results about the origin to results about the means.
void recentre_products(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t most_values,
                       cudaStream_t stream);

// Copies of the sums that keep the device busy.
std::int64_t product_slots(const DeviceFacts &facts, bool diagonal, std::int64_t k, std::int64_t d);

} // namespace pgkm::cuda::mixture
