// fused.hpp - E step and sums in one kernel, one read of the rows, for mixtures of moderate size.
//
// Rows are taken about an origin amid the means, y = x - origin, so that a component's log density is a polynomial in
// y whose coefficients do not depend on the row: a matrix product with [y, y y'], as the M step's sums are. Both run
// on the tensor cores in float64. Sums about the means follow from those about the origin (recentre). That costs
// digits where means lie far apart in units of the components' own spread, so plan_task() asks how far.
#pragma once

#include <vector>

#include "plugin/context.hpp"
#include "mixture/items.cuh"
#include "mixture/parameters.hpp"

namespace pgkm::cuda::mixture {

// A task: fused where the mixture is small enough, else by products (diag, spherical), unless labels are given or
// wanted, rows have weights or the means lie too far apart.
template <typename T>
Task plan_task(const Context &context, const PgkmProblem &problem, const PgkmMixture &mixture, PgkmMixtureSums &out,
               std::int64_t d, bool weighted);

// Blocks that run at once: items should be a multiple of it.
int blocks_of(const Context &context, const Task &task, std::int64_t d);

// The largest squared Mahalanobis distance of a mean from the origin for which fused kernels and products keep 1e-10 of
// agreement for float64 rows, 1e-5 for float32, with two digits to spare.
template <typename T>
inline constexpr double most_reach = sizeof(T) == 4 ? 1e8 : 1e4;

// The shape of a fused kernel: tiles of 16 components and of 8 features. diag, spherical: up to 64 components of 64
// features; 2 x 2, or 1 x 4, a warp does by itself, others a block. full: up to 16 components of 32 features, 32 of 16.
struct FusedShape {
    bool full;
    int components, features; // tiles, as many as the kernel has

    FusedShape(PgkmCovariance type, std::int64_t k, std::int64_t d);
    bool fits() const
    {
        return full ? components <= 2 && components * features <= 4 : components <= 4 && features <= 8;
    }
    std::int64_t coefficient_count(std::int64_t k) const; // float64 values
};

struct BlockNeeds {
    int shared_bytes;
    int per_multiprocessor; // blocks that run there at once
};
BlockNeeds needs_of(const FusedShape &shape, int k);

// The mixture's coefficients about an origin of d features, as fragments for the tensor cores, into
// FusedShape::coefficient_count() zeros.
void pack_coefficients(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, double *packed);

// Enqueues the kernel: one block an item, mixtures of k components rounded up to fours.
template <typename T>
void fused_step(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream);

// Sums about the origin to sums about the means.
void recentre(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, PgkmMixtureSums &sums);

} // namespace pgkm::cuda::mixture
