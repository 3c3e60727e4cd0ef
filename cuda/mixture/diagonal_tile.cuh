// diagonal_tile.cuh (mixture) - diag and spherical: E step and sums by a block that holds a tile of rows in shared
// memory.
//
// Shape: up to 64 components of 64 features, more than one warp's registers have room for (diagonal_warp.cuh).
// Components come in C tiles of 16, features in F of 8, F even.
// Data: a block of 2 C warps (4 C for the largest shape) takes 8 rows a warp at a time (row_tile.cuh). First each
// warp finds the responsibilities of 8 of the rows: their log densities are the product of the coefficients
// (components by [y, y^2], in shared memory for the whole launch) with the rows, and log-sum-exp goes over the lanes
// that share a row. Then each warp adds all rows to its part of the sums, which stays in registers: 16 components by
// half of the features (a quarter), r y and r y^2.
// Error: float64 but for exponentials of float32 rows; log densities of a polynomial about the origin, see fused.hpp.
#pragma once

#include "mixture/diagonal_warp.cuh"

namespace pgkm::cuda::mixture {

template <typename T, int Components, int Features>
class DiagonalTile;

template <int Components, int Features>
struct DiagonalBlock {
    template <typename T>
    using Kernel = DiagonalTile<T, Components, Features>;
    static constexpr int components = Components, feature_tiles = Features;

    static constexpr bool ahead = false;
    // Warps that share the sums of 16 components: of the largest shape a multiprocessor holds one block.
    static constexpr int sharers = Components == 4 && Features == 8 ? 4 : 2;
    static constexpr int warps = sharers * Components;
    static constexpr int threads = 32 * warps;
    static constexpr int rows = 8 * warps;
    static constexpr int features = 8 * Features;
    static constexpr int row_stride = conflict_free(features);
    static constexpr int share_stride = conflict_free(rows);

    // Shared memory: origin, y, responsibilities, coefficients.
    static constexpr int coefficient_offset = features + rows * row_stride + 16 * Components * share_stride;
    __host__ __device__ static constexpr int coefficient_count(int)
    {
        return Components * Features * 256 + 16 * Components;
    }
    static constexpr int bytes(int k) { return 8 * (coefficient_offset + coefficient_count(k)); }

    // Of a multiprocessor: what its registers and shared memory (of compute capability 9.0) hold.
    static constexpr int per_multiprocessor = sharers == 4 ? 1 : (Features == 8 ? 6 : 8) / Components;
};

template <typename T, int Components, int Features>
class DiagonalTile : public RowTile<DiagonalTile<T, Components, Features>, T, DiagonalBlock<Components, Features>> {
    using Block = DiagonalBlock<Components, Features>;
    using Base = RowTile<DiagonalTile, T, Block>;
    using Base::coefficients_, Base::d_, Base::factors_, Base::log_likelihood_, Base::mixture_, Base::n_, Base::rows_,
        Base::shares_;

  public:
    __device__ DiagonalTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : Base(launch, item, mixture, memory)
    {
    }

    // Of the warp's rows this lane has 2 t and the next.
    __device__ void find_shares(int first)
    {
        double density[Components][4];
        const auto fragment = [&](int m, int s, double(&a)[4]) {
            load_fragment(coefficients_, m * 2 * Features + s, lane(), a);
        };
        log_densities<Components, Features>(rows_ + (8 * warp() + g()) * Block::row_stride + t(), coefficients_,
                                            fragment, density);
        double *const share = shares_ + g() * Block::share_stride + 8 * warp() + 2 * t();
        const int row = first + 8 * warp() + 2 * t();
        factors_ *= responsibilities<T>(density, n_ - row, log_likelihood_, [&](int m, int element, T r) {
            share[(16 * m + element / 2 * 8) * Block::share_stride + element % 2] = static_cast<double>(r);
        });
    }

    // All rows of the tile to this warp's part of the sums.
    __device__ void add()
    {
        const double *share = shares_ + (16 * component_tile() + g()) * Block::share_stride + t();
        const double *y = rows_ + t() * Block::row_stride + 8 * first_part() + g();
#pragma unroll 2
        for (int row = 0; row < Block::rows; row += 8, share += 8, y += 8 * Block::row_stride) {
            const double a[4] = {share[0], share[8 * Block::share_stride], share[4],
                                 share[8 * Block::share_stride + 4]};
#pragma unroll
            for (int p = 0; p < parts; ++p) {
                const double b[2] = {y[8 * p], y[4 * Block::row_stride + 8 * p]};
                const double squares[2] = {b[0] * b[0], b[1] * b[1]};
                multiply_add(sums_[p][0], a, b);
                multiply_add(sums_[p][1], a, squares);
            }
            if (sees_to_masses()) {
                masses_[0] += a[0] + a[2];
                masses_[1] += a[1] + a[3];
            }
        }
    }

    // Into the item's copy of the sums.
    __device__ void store(int slot)
    {
        double *out = mixture_.sums + slot * mixture_.layout.values();
#pragma unroll
        for (int p = 0; p < parts; ++p)
            store_diagonal(sums_[p], mixture_, 16 * component_tile(), 8 * (first_part() + p), d_, out);
        store_masses(masses_, sees_to_masses(), mixture_.k, 16 * component_tile(), out);
        Base::store_likelihood(out, g() == 0); // lanes of one t have seen the same rows
    }

  private:
    static constexpr int parts = Features / Block::sharers; // eights of features of a warp's sums

    static __device__ int component_tile()
    {
        return warp() / Block::sharers;
    }
    static __device__ int first_part()
    {
        return warp() % Block::sharers * parts;
    }
    static __device__ bool sees_to_masses()
    {
        return warp() % Block::sharers == 0;
    }

    double sums_[parts][2][4] = {}; // by fragment: r y, r y^2
    double masses_[2] = {};         // components g and g + 8 of the tile
};

} // namespace pgkm::cuda::mixture
