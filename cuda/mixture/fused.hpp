// fused.hpp - E step and sums in one kernel, one read of the rows, for mixtures of moderate size.
//
// Rows are taken about an origin amid the means, y = x - origin, so that a component's log density is
// a polynomial in y whose coefficients do not depend on the row: a matrix product with [y, y y'], as the
// M step's sums are. Both run on the tensor cores in float64. Sums about the means follow from
// those about the origin (recentre). That costs digits where means lie far apart in units of the
// components' own spread, so plan_task() asks how far.
#pragma once

#include <vector>

#include "plugin/context.hpp"
#include "mixture/items.cuh"
#include "mixture/parameters.hpp"

namespace pgkm::cuda::mixture {

// A task with its road: fused where the mixture is small enough, unless labels are given or wanted.
template <typename T>
Task plan_task(const Context &context, const PgkmProblem &problem, const PgkmMixture &mixture, PgkmMixtureSums &out,
               std::int64_t d);

// Blocks that run at once on a task's road: items should be a multiple of it.
int blocks_of(const Context &context, const Task &task, std::int64_t d);

// ---- diagonal (diag, spherical): up to 64 components of 64 features ----

// Tiles of 16 components and of 8 features: up to 2 x 2 or 1 x 4 a warp does by itself, with sums of its own
// (diagonal_warp.cuh), others a block (diagonal_tile.cuh).
struct DiagonalShape {
    int components, features; // tiles
    bool tiled;               // by a block

    DiagonalShape(std::int64_t k, std::int64_t d);
    static bool fits(std::int64_t k, std::int64_t d) { return k <= 64 && d <= 64; }
    std::int64_t coefficient_count() const { return std::int64_t{components} * features * 256 + 16 * components; }
    std::int64_t shared_bytes() const; // that a block asks for
    int blocks() const;                // of a multiprocessor
};

// Coefficients of log densities as fragments of the product's left side, then the constants, into
// coefficient_count() zeros.
void diagonal_coefficients(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin,
                           double *packed);

int warp_blocks(); // of a multiprocessor, for shapes that are not tiled

template <typename T>
void fused_diagonal(const Launch<T> &launch, unsigned n_items, int k, cudaStream_t stream);
// Its part for shapes that are tiled.
template <typename T>
void tiled_diagonal(const Launch<T> &launch, unsigned n_items, const DiagonalShape &shape, cudaStream_t stream);

// ---- full: up to 16 components of 32 features, 32 of 16 ----

struct FullShape {
    int components, features; // tiles of 16, of 8

    FullShape(std::int64_t k, std::int64_t d) : components(k <= 16 ? 1 : 2), features(static_cast<int>((d + 7) / 8)) {}
    bool fits(std::int64_t k) const { return k <= 32 && features <= 4 && components * features <= 4; }
    std::int64_t coefficient_count(std::int64_t k) const
    {
        return (k + 3) / 4 * 4 * (features * (features + 1) * 32 + 8 * features + 1);
    }
    std::int64_t shared_bytes(std::int64_t k) const; // of a block
};

// Fragments of W', means about the origin times W, and constants, for k rounded up to fours, into
// coefficient_count() zeros.
void full_coefficients(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, double *packed);

template <typename T>
void fused_full(const Launch<T> &launch, unsigned n_items, int k, cudaStream_t stream);

// Sums about the origin to sums about the means.
void recentre(const PgkmMixture &mixture, std::int64_t d, const std::vector<double> &origin, PgkmMixtureSums &sums);

} // namespace pgkm::cuda::mixture
