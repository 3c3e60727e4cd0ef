// stages.hpp (mixture) - the stages of an E step with the sums of the M step, for any shape.
//
// Each enqueues one launch over `n_items` items, of which the longest has `most_rows` rows and the
// largest mixture `most_k` components.
#pragma once

#include "../context.hpp"
#include "items.cuh"

namespace pgkm::cuda::mixture {

struct Extent {
    unsigned n_items;
    std::int32_t most_rows;
    std::int32_t most_k;
};

// Rows of a tile; items begin at multiples of it.
inline constexpr int tile_rows = 64;

// Log densities of all components into the workspace.
template <typename T>
void full_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);
template <typename T>
void scaled_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);
template <typename T>
void tied_densities(const Launch<T> &launch, const Extent &extent, cudaStream_t stream);

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

// Adds up all copies of the sums, in their order.
void combine_sums(const MixtureView *mixtures, std::int64_t n_problems, std::int64_t most_values, cudaStream_t stream);

} // namespace pgkm::cuda::mixture
