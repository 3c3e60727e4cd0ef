// full_tile.cuh (mixture) - full covariances: E step and sums by a block that holds a tile of rows in shared memory.
//
// Shape: up to 16 components of 32 features, or 32 of 16; components come in tiles of 16, features in F of 8.
// Data: a block of 4 F warps takes 64 F rows of 8 F features at a time (row_tile.cuh). First each warp finds the log
// densities of 16 of the rows: they times W' of one component after the other, on the tensor cores, from fragments of
// W that stay in shared memory for the whole launch; the squares are added up over a row's four lanes, and
// log-sum-exp follows in them. Then each warp adds all rows to its part of the sums, which stays in registers:
// responsibilities (components by rows) times products y_a y_b (rows by pairs), of the features a = w and a = 8 F - 1
// - w with all b up to the end of a's eight. A pair of these has F + 1 eights whatever w is, so that warps have equal
// work.
// Error: float64 but for exponentials of float32 rows; about the origin, see fused.hpp.
#pragma once

#include "mixture/row_tile.cuh"

namespace pgkm::cuda::mixture {

template <typename T, int Components, int Features>
class FullTile;

template <int Components, int Features>
struct FullBlock {
    template <typename T>
    using Kernel = FullTile<T, Components, Features>;
    static constexpr int components = Components, feature_tiles = Features;

    static constexpr bool ahead = false;
    static constexpr int warps = 4 * Features;
    static constexpr int threads = 32 * warps;
    static constexpr int rows = 64 * Features;
    static constexpr int features = 8 * Features;
    static constexpr int row_stride = conflict_free(features);
    static constexpr int share_stride = conflict_free(rows);
    static constexpr int low_parts = (Features + 1) / 2; // eights of b up to a = 4 F - 1
    static constexpr int fragments = Features * (Features + 1) / 2;

    // Shared memory: origin, y, responsibilities, coefficients of k components, rounded up to fours.
    static constexpr int coefficient_offset = features + rows * row_stride + 16 * Components * share_stride;
    __host__ __device__ static constexpr int coefficient_count(int k)
    {
        return (k + 3) / 4 * 4 * (fragments * 64 + features + 1);
    }
    static constexpr int bytes(int k) { return 8 * (coefficient_offset + coefficient_count(k)); }

    static constexpr int per_multiprocessor = 16 / warps;
};

template <typename T, int Components, int Features>
class FullTile : public RowTile<FullTile<T, Components, Features>, T, FullBlock<Components, Features>> {
    using Block = FullBlock<Components, Features>;
    using Base = RowTile<FullTile, T, Block>;
    using Base::coefficients_, Base::d_, Base::factors_, Base::log_likelihood_, Base::mixture_, Base::n_, Base::rows_,
        Base::shares_;
    static constexpr int features = Block::features, fragments = Block::fragments, low_parts = Block::low_parts,
                         row_stride = Block::row_stride, rows = Block::rows, share_stride = Block::share_stride;

  public:
    __device__ FullTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : Base(launch, item, mixture, memory), k_((mixture.k + 3) / 4 * 4)
    {
    }

    // Of the warp's rows a lane has g and g + 8, of the components t, t + 4, ...
    __device__ void find_shares(int first)
    {
        double y[Features][4];
        const double *row = rows_ + (warp() * 16 + g()) * row_stride + t();
#pragma unroll
        for (int s = 0; s < Features; ++s)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                y[s][i] = row[i % 2 * 8 * row_stride + 8 * s + i / 2 * 4];
        constexpr int own = 4 * Components; // components of a lane
        const double *constant = coefficients_ + k_ * (fragments * 64 + features) + t();
        double density[own][2];
#pragma unroll
        for (int q = 0; q < own; ++q) {
            density[q][0] = density[q][1] = -INFINITY;
            if (4 * q >= k_)
                continue;
            double square[4][2];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                squares(y, 4 * q + j, square[j]);
#pragma unroll
            for (int i = 0; i < 2; ++i)
                density[q][i] =
                    fma(-0.5, gather(square[0][i], square[1][i], square[2][i], square[3][i]), constant[4 * q]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            double row_densities[own];
#pragma unroll
            for (int q = 0; q < own; ++q)
                row_densities[q] = density[q][i];
            const int row = warp() * 16 + g() + 8 * i;
            factors_ *= row_shares<T, 1, 2>(row_densities, first + row < n_, log_likelihood_, [&](int q, T r) {
                if (4 * q < k_)
                    shares_[(4 * q + t()) * share_stride + row] = static_cast<double>(r);
            });
        }
    }

    // All rows of the tile to this warp's part of the sums.
    __device__ void add()
    {
        const int last = features - 1 - warp(), low_last = warp() / 8, high_last = last / 8;
        const double *y = rows_ + t() * row_stride, *share = shares_ + g() * share_stride + t();
        const bool first_sums = warp() < Features, masses = warp() == Features;
        for (int row = 0; row < rows; row += 8, y += 8 * row_stride, share += 8) {
            double a[Components][4];
#pragma unroll
            for (int m = 0; m < Components; ++m)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[m][i] = share[(16 * m + i % 2 * 8) * share_stride + i / 2 * 4];
            const double low[2] = {y[warp()], y[4 * row_stride + warp()]},
                         high[2] = {y[last], y[4 * row_stride + last]};
#pragma unroll
            for (int part = 0; part < Features; ++part) {
                if (part > high_last)
                    break;
                const double x[2] = {y[8 * part + g()], y[4 * row_stride + 8 * part + g()]};
                const double with_high[2] = {x[0] * high[0], x[1] * high[1]};
#pragma unroll
                for (int m = 0; m < Components; ++m)
                    multiply_add(high_[m][part], a[m], with_high);
                if (part < low_parts && part <= low_last) {
                    const double with_low[2] = {x[0] * low[0], x[1] * low[1]};
#pragma unroll
                    for (int m = 0; m < Components; ++m)
                        multiply_add(low_[m][part], a[m], with_low);
                }
            }
            if (first_sums || masses) {
                const double x[2] = {masses ? 1.0 : y[8 * warp() + g()],
                                     masses ? 1.0 : y[4 * row_stride + 8 * warp() + g()]};
#pragma unroll
                for (int m = 0; m < Components; ++m)
                    multiply_add(other_[m], a[m], x);
            }
        }
    }

    // Into the item's copy of the sums.
    __device__ void store(int slot)
    {
        double *out = mixture_.sums + slot * mixture_.layout.values();
#pragma unroll
        for (int m = 0; m < Components; ++m) {
#pragma unroll
            for (int part = 0; part < low_parts; ++part)
                store_second(low_[m][part], out, m, warp(), part);
#pragma unroll
            for (int part = 0; part < Features; ++part)
                store_second(high_[m][part], out, m, features - 1 - warp(), part);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int j = 16 * m + g() + i / 2 * 8, f = 8 * warp() + 2 * t() + i % 2;
                if (j < mixture_.k && warp() < Features && f < d_)
                    out[mixture_.layout.first(j) + f] += other_[m][i];
                if (j < mixture_.k && warp() == Features && t() == 0 && i % 2 == 0)
                    out[j] += other_[m][i];
            }
        }
        Base::store_likelihood(out, t() == 0); // lanes of one g have seen the same rows
    }

  private:
    // Squares |W (x - mean)|^2 of the warp's rows g and g + 8 for component j, this lane's part.
    __device__ void squares(const double (&y)[Features][4], int j, double (&square)[2]) const
    {
        const double2 *fragment = reinterpret_cast<const double2 *>(coefficients_) + j * fragments * 32 + lane();
        const double2 *centre =
            reinterpret_cast<const double2 *>(coefficients_ + k_ * fragments * 64 + j * features) + t();
        square[0] = square[1] = 0.0;
#pragma unroll
        for (int c = 0; c < Features; ++c) {
            const double2 at = centre[4 * c];
            double z[4] = {-at.x, -at.y, -at.x, -at.y};
#pragma unroll
            for (int s = 0; s <= c; ++s, fragment += 32) {
                const double2 w = *fragment;
                const double b[2] = {w.x, w.y};
                multiply_add(z, y[s], b);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i)
                square[i / 2] = fma(z[i], z[i], square[i / 2]);
        }
    }

    // Adds up four components' squares over a row's four lanes; lane t is left with that of component t.
    __device__ double gather(double s0, double s1, double s2, double s3) const
    {
        const bool high = (t() & 2) != 0, odd = (t() & 1) != 0;
        const double even_sum = (high ? s2 : s0) + __shfl_xor_sync(~0u, high ? s0 : s2, 2);
        const double odd_sum = (high ? s3 : s1) + __shfl_xor_sync(~0u, high ? s1 : s3, 2);
        return (odd ? odd_sum : even_sum) + __shfl_xor_sync(~0u, odd ? even_sum : odd_sum, 1);
    }

    __device__ void store_second(const double (&sum)[4], double *out, int m, int a, int part) const
    {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int j = 16 * m + g() + i / 2 * 8, b = 8 * part + 2 * t() + i % 2;
            if (j < mixture_.k && a < d_ && b <= a)
                out[mixture_.layout.second(j) + a * (a + 1) / 2 + b] += sum[i];
        }
    }

    const int k_;                               // rounded up to fours
    double low_[Components][low_parts][4] = {}; // r y_a y_b of a = warp()
    double high_[Components][Features][4] = {}; // of a = features - 1 - warp()
    double other_[Components][4] = {};          // r y of eight features, or r
};

} // namespace pgkm::cuda::mixture
