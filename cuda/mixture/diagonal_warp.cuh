// diagonal_warp.cuh - diag and spherical: E step and sums by a warp that works alone.
//
// It takes 8 rows at a time. Their log densities are the product of the coefficients (components by
// [y, y^2], in shared memory or registers for the whole launch) with the rows' features; the product's lanes
// hold four or eight components of two rows each, which after log-sum-exp are, without moving, the left
// side of the product that adds r [y, y^2] to the sums (in registers). Only the rows' features pass
// through shared memory, since the two products want them by row and by feature.
#pragma once

#include "mixture/log_sum_exp.cuh"
#include "mixture/items.cuh"
#include "device/mma.cuh"

namespace pgkm::cuda::mixture {

inline constexpr int group_rows = 8;
inline constexpr int groups_per_flush =
    32; // factors of at most 32^2 each: below 2^1023; and masses in float32 lose no digit

template <int Components, int Features>
struct DiagonalSums {
    double product[Components][2 * Features][4] = {}; // by fragment: r y, then r y^2
    double mass[Components][2] = {};                  // components g and g + 8
    double log_likelihood = 0.0;                      // of the rows 2 t and 2 t + 1, the same for every g
};

template <typename T, int Components, int Features>
class DiagonalWarp {
public:
    __device__ DiagonalWarp(const Launch<T> &launch, const Item &item, const MixtureView &mixture,
                            const double *coefficients, double *tile)
        : values_(launch.values + item.first * launch.d), d_(launch.d), n_(item.n), coefficients_(coefficients),
          tile_(tile)
    {
        for (int i = lane(); i < group_rows * stride; i += 32)
            tile_[i] = 0.0; // features beyond d stay 0
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int cell = lane() + 32 * i, row = cell / d_, f = cell % d_;
            origin_[i] = cell < group_rows * d_ ? mixture.origin[f] : 0.0;
            to_[i] = row * stride + f;
        }
        if constexpr (keeps)
#pragma unroll
            for (int m = 0; m < Components; ++m)
#pragma unroll
                for (int s = 0; s < 2 * Features; ++s)
                    load(m, s, kept_[m][s]);
        const double *constant = coefficients + Components * Features * 256 + g();
#pragma unroll
        for (int m = 0; m < Components; ++m) {
            constant_[m][0] = constant[16 * m];
            constant_[m][1] = constant[16 * m + 8];
        }
    }

    // Groups [first, first + step, ...) of the item's rows.
    __device__ void run(int first, int step, DiagonalSums<Components, Features> &sums)
    {
        const int groups = (n_ + group_rows - 1) / group_rows;
        double factors = 1.0;
        int pending = 0;
        fetch(first);
        for (int group = first; group < groups; group += step) {
            __syncwarp();
            put(group);
            __syncwarp();
            fetch(group + step);
            double share[Components][4];
            densities(share);
            factors *= shares(group * group_rows + 2 * t(), share, sums);
            add(share, sums);
            if (++pending == groups_per_flush) {
                flush(factors, sums);
                factors = 1.0;
                pending = 0;
            }
        }
        flush(factors, sums);
    }

private:
    // Whether registers hold the coefficients; else they come from shared memory each time.
    static constexpr bool keeps = Components * Features <= 2;
    static constexpr int stride = conflict_free(16 * Features);
    static constexpr int loads = 2 * Features; // of a lane for one group
    using Exponential = Wide<T>;

    static __device__ int lane()
    {
        return static_cast<int>(threadIdx.x) % 32;
    }
    static __device__ int g()
    {
        return lane() / 4;
    }
    static __device__ int t()
    {
        return lane() % 4;
    }

    __device__ void load(int m, int s, double (&fragment)[4]) const
    {
        load_fragment(coefficients_, m * 2 * Features + s, lane(), fragment);
    }
    __device__ void coefficients(int m, int s, double (&fragment)[4]) const
    {
        if constexpr (keeps)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                fragment[i] = kept_[m][s][i];
        else
            load(m, s, fragment);
    }

    // The next group's values, on their way while this one is worked on.
    __device__ void fetch(int group)
    {
        const std::int64_t first = std::int64_t{group} * group_rows * d_;
        const std::int64_t left = std::int64_t{n_} * d_ - first;
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int cell = lane() + 32 * i;
            fetched_[i] = cell < group_rows * d_ && cell < left ? values_[first + cell] : T{0};
        }
    }
    // Rows that there are not are 0: about a large origin their squares would be infinite.
    __device__ void put(int group) const
    {
        const int cells = min(group_rows, n_ - group * group_rows) * d_;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if (lane() + 32 * i < group_rows * d_) {
                const double y = lane() + 32 * i < cells ? static_cast<double>(fetched_[i]) - origin_[i] : 0.0;
                tile_[to_[i]] = y;
                tile_[to_[i] + 8 * Features] = y * y;
            }
    }

    __device__ void flush(double factors, DiagonalSums<Components, Features> &sums)
    {
        sums.log_likelihood += log(factors);
#pragma unroll
        for (int m = 0; m < Components; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                sums.mass[m][half] += static_cast<double>(mass_[m][half]);
                mass_[m][half] = 0;
            }
    }

    __device__ void densities(double (&density)[Components][4]) const
    {
#pragma unroll
        for (int m = 0; m < Components; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                density[m][i] = constant_[m][i / 2];
        const double *y = tile_ + g() * stride + t();
#pragma unroll
        for (int s = 0; s < 2 * Features; ++s) {
            const double b[2] = {y[8 * s], y[8 * s + 4]};
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                double a[4];
                coefficients(m, s, a);
                multiply_add(density[m], a, b);
            }
        }
    }

    // Log densities of rows `row` and row + 1 to responsibilities; returns the factor of the likelihood
    // that is left beside exp() of the largest log densities.
    __device__ double shares(int row, double (&share)[Components][4], DiagonalSums<Components, Features> &sums)
    {
        return responsibilities<Exponential>(share, n_ - row, sums.log_likelihood,
                                             [&](int m, int element, Exponential r) {
                                                 mass_[m][element / 2] += r;
                                                 share[m][element] = static_cast<double>(r);
                                             });
    }

    // The product's inner index t stands for row 2 t, t + 4 for row 2 t + 1.
    __device__ void add(const double (&share)[Components][4], DiagonalSums<Components, Features> &sums) const
    {
        const double *y = tile_ + 2 * t() * stride + g();
#pragma unroll
        for (int s = 0; s < 2 * Features; ++s) {
            const double b[2] = {y[8 * s], y[stride + 8 * s]};
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                const double a[4] = {share[m][0], share[m][2], share[m][1], share[m][3]};
                multiply_add(sums.product[m][s], a, b);
            }
        }
    }

    const T *values_;
    const int d_, n_;
    const double *coefficients_;
    double *tile_; // the group's y and y^2, a row after the other
    T fetched_[loads];
    double origin_[loads];
    int to_[loads];
    double kept_[keeps ? Components : 1][2 * Features][4];
    double constant_[Components][2];
    Exponential mass_[Components][2] = {}; // since the last flush
};

} // namespace pgkm::cuda::mixture
