// diagonal_warp.cuh (mixture) - diag and spherical: E step and sums by warps that work alone.
//
// Shape: up to 32 components of 16 features, or 16 of 32; components come in C tiles of 16, features in F of 8.
// Data: a block is one warp and takes 8 rows at a time (row_tile.cuh). Their log densities are the product of the
// coefficients (components by [y, y^2], in shared memory or registers for the whole launch) with the rows' features;
// the product's lanes hold four or eight components of two rows each, which after log-sum-exp are, without moving,
// the left side of the product that adds r [y, y^2] to the sums (in registers). Only the rows' features pass through
// shared memory, since the two products want them by row and by feature.
// Error: float64 but for exponentials of float32 rows; about the origin, see fused.hpp.
#pragma once

#include "mixture/row_tile.cuh"

namespace pgkm::cuda::mixture {

// Log densities of 8 rows, components by rows: each constant and the product of the coefficients with [y, y^2].
// y: of row g from feature t on. fragment(m, s, a): the coefficients of 16 components for the s-th eight of [y, y^2].
template <int Components, int Features, typename Fragment>
__device__ inline void log_densities(const double *y, const double *coefficients, Fragment &&fragment,
                                     double (&density)[Components][4])
{
    const double *constant = coefficients + Components * Features * 256 + g();
#pragma unroll
    for (int m = 0; m < Components; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            density[m][i] = constant[16 * m + i / 2 * 8];
#pragma unroll
    for (int s = 0; s < Features; ++s) {
        const double b[2] = {y[8 * s], y[8 * s + 4]}, squares[2] = {b[0] * b[0], b[1] * b[1]};
#pragma unroll
        for (int m = 0; m < Components; ++m) {
            double a[4];
            fragment(m, s, a);
            multiply_add(density[m], a, b);
        }
#pragma unroll
        for (int m = 0; m < Components; ++m) {
            double a[4];
            fragment(m, Features + s, a);
            multiply_add(density[m], a, squares);
        }
    }
}

// Adds a lane's part of the sums r y and r y^2 of the components and features from `component` and `feature` on.
__device__ inline void store_diagonal(const double (&sums)[2][4], const MixtureView &mixture, int component,
                                      int feature, int d, double *out)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int j = component + g() + i / 2 * 8, f = feature + 2 * t() + i % 2;
        if (j >= mixture.k || f >= d)
            continue;
        out[mixture.layout.first(j) + f] += sums[0][i];
        out[mixture.layout.second(j) + f] += sums[1][i];
    }
}

// The same of the masses of components g and g + 8 from `component` on, where `wanted`; all lanes call it.
__device__ inline void store_masses(const double (&masses)[2], bool wanted, int k, int component, double *out)
{
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const double mass = over_lanes<1, 2>(masses[half], [](double a, double b) { return a + b; });
        const int j = component + g() + 8 * half;
        if (wanted && t() == 0 && j < k)
            out[j] += mass;
    }
}

template <typename T, int Components, int Features>
class DiagonalWarp;

template <int Components, int Features>
struct WarpBlock {
    template <typename T>
    using Kernel = DiagonalWarp<T, Components, Features>;
    static constexpr int components = Components, feature_tiles = Features;

    static constexpr bool ahead = true; // rows wait in registers
    static constexpr int threads = 32;
    static constexpr int rows = 8;
    static constexpr int features = 8 * Features;
    static constexpr int row_stride = conflict_free(features);

    // Shared memory: origin, y, coefficients.
    static constexpr int coefficient_offset = features + rows * row_stride;
    __host__ __device__ static constexpr int coefficient_count(int)
    {
        return Components * Features * 256 + 16 * Components;
    }
    static constexpr int bytes(int k) { return 8 * (coefficient_offset + coefficient_count(k)); }

    static constexpr int per_multiprocessor = 12;
};

template <typename T, int Components, int Features>
class DiagonalWarp : public RowTile<DiagonalWarp<T, Components, Features>, T, WarpBlock<Components, Features>> {
    using Block = WarpBlock<Components, Features>;
    using Base = RowTile<DiagonalWarp, T, Block>;
    using Base::coefficients_, Base::d_, Base::factors_, Base::log_likelihood_, Base::mixture_, Base::n_, Base::rows_;

  public:
    __device__ DiagonalWarp(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : Base(launch, item, mixture, memory)
    {
        wait_for_block<Block>();
        if constexpr (keeps)
#pragma unroll
            for (int i = 0; i < Components * 2 * Features; ++i)
                load_fragment(coefficients_, i, lane(), kept_[i]);
    }

    // This lane has rows 2 t and 2 t + 1 of components g and g + 8 of each sixteen.
    __device__ void find_shares(int first)
    {
        const auto fragment = [&](int m, int s, double(&a)[4]) {
            if constexpr (keeps)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[i] = kept_[m * 2 * Features + s][i];
            else
                load_fragment(coefficients_, m * 2 * Features + s, lane(), a);
        };
        log_densities<Components, Features>(rows_ + g() * Block::row_stride + t(), coefficients_, fragment, share_);
        factors_ *= responsibilities<T>(share_, n_ - first - 2 * t(), log_likelihood_, [&](int m, int element, T r) {
            mass_[m][element / 2] += r;
            share_[m][element] = static_cast<double>(r);
        });
    }

    // The product's inner index t stands for row 2 t, t + 4 for row 2 t + 1.
    __device__ void add()
    {
        const double *y = rows_ + 2 * t() * Block::row_stride + g();
#pragma unroll
        for (int s = 0; s < Features; ++s) {
            const double b[2] = {y[8 * s], y[Block::row_stride + 8 * s]}, squares[2] = {b[0] * b[0], b[1] * b[1]};
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                const double a[4] = {share_[m][0], share_[m][2], share_[m][1], share_[m][3]};
                multiply_add(sums_[m][s][0], a, b);
                multiply_add(sums_[m][s][1], a, squares);
            }
        }
    }

    __device__ void flush()
    {
#pragma unroll
        for (int m = 0; m < Components; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                masses_[m][half] += static_cast<double>(mass_[m][half]);
                mass_[m][half] = 0;
            }
    }

    // Into the item's copy of the sums.
    __device__ void store(int slot)
    {
        double *out = mixture_.sums + slot * mixture_.layout.values();
#pragma unroll
        for (int m = 0; m < Components; ++m) {
#pragma unroll
            for (int s = 0; s < Features; ++s)
                store_diagonal(sums_[m][s], mixture_, 16 * m, 8 * s, d_, out);
            store_masses(masses_[m], true, mixture_.k, 16 * m, out);
        }
        Base::store_likelihood(out, g() == 0); // lanes of one t have seen the same rows
    }

  private:
    // Whether registers hold the coefficients; else they come from shared memory each time.
    static constexpr bool keeps = Components * Features <= 2;

    double kept_[keeps ? Components * 2 * Features : 1][4];
    double share_[Components][4];                  // log densities, then responsibilities
    T mass_[Components][2] = {};                   // since the last flush: in float32 it loses no digit
    double masses_[Components][2] = {};            // components g and g + 8
    double sums_[Components][Features][2][4] = {}; // by fragment: r y, r y^2
};

} // namespace pgkm::cuda::mixture
