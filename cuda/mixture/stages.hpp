// stages.hpp (mixture) - the stages of an E step with the sums of the M step, for any shape.
//
// Each enqueues one launch and throws Error where that fails. The workspace holds float64 values, see Item.
#pragma once

#include <algorithm>

#include "plugin/context.hpp"
#include "mixture/items.cuh"

namespace pgkm::cuda::mixture {

// What a launch is over.
struct Extent {
    unsigned n_items;
    std::int32_t most_rows; // of the longest item
    std::int32_t most_k;    // of the largest mixture
};

// Rows of a tile; items begin at multiples of it.
inline constexpr int tile_rows = 64;

inline constexpr unsigned most_blocks = 65535; // of a grid's second and third dimension

// Blocks of a tile of rows by some components.
inline dim3 tile_grid(const Extent &extent, int components)
{
    return dim3(extent.n_items, static_cast<unsigned>((extent.most_rows + tile_rows - 1) / tile_rows),
                std::min(most_blocks, static_cast<unsigned>((extent.most_k + components - 1) / components)));
}

// Tied: the mixtures' targets, before the densities.
void rotate_means(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t d, std::int64_t most_k,
                  cudaStream_t stream);

// Tied: rows W (x - origin) into the workspace.
template <typename T>
void rotate_rows(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);

// Log densities of all components into the workspace; tied: of the rotated rows.
template <typename T>
void full_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);
template <typename T>
void scaled_densities(const Launch<T> &launch, const Extent &extent, PgkmCovariance type, cudaStream_t stream);

// Log densities to responsibilities; labels unless NULL.
template <typename T>
void normalise(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);
// Responsibilities of given labels.
template <typename T>
void given_shares(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);

// Log-likelihood and, with `masses`, the components' masses.
template <typename T>
void share_sums(const Launch<T> &launch, const Extent &extent, bool masses, cudaStream_t stream);
// First sums, and with `squares` the second ones of diag and spherical.
template <typename T>
void weighted_sums(const Launch<T> &launch, const Extent &extent, bool squares, cudaStream_t stream);
// Second sums of full.
template <typename T>
void scatter_sums(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);

// Adds up all copies of the sums, in an order that their number alone decides.
void combine_sums(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t most_values, cudaStream_t stream);

} // namespace pgkm::cuda::mixture
