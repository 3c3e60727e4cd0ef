// diagonal_warp.cuh (mixture) - diag and spherical: E step and sums by warps that work alone.
//
// Shape: up to 32 components of 16 features, or 16 of 32; components come in C tiles of 16, features in F of 8.
// Data: a warp takes a strip of 8 rows at a time, as y = x - origin in float64. Their log densities are the product of the
// coefficients (components by [y, y^2], in shared memory or registers for the whole launch) with the rows' features; the
// product's lanes hold four or eight components of two rows each, which after log-sum-exp are, without moving, the left
// side of the product that adds r [y, y^2] to the sums (in registers). Only the rows' features pass through shared memory,
// since the two products want them by row and by feature.
// Threads: no barrier between warps until the end, where the block adds up their sums in their order.
// Error: float64 but for exponentials of float32 rows; about the origin, see fused.hpp.
#pragma once

#include "mixture/row_tile.cuh"

namespace pgkm::cuda::mixture {

template <typename T, int Components, int Features>
class DiagonalWarp;

template <int Components, int Features>
struct WarpBlock {
    template <typename T>
    using Kernel = DiagonalWarp<T, Components, Features>;
    static constexpr int components = Components, feature_tiles = Features;

    static constexpr int warps = 4;
    static constexpr int threads = 32 * warps;
    static constexpr int per_multiprocessor = 3;
    static constexpr int strip_rows = 8;
    static constexpr int stride = conflict_free(16 * Features); // of a row, y then y^2
    static constexpr int coefficient_count = Components * Features * 256 + 16 * Components;

    // Shared memory: coefficients, a strip for each warp, a value of each thread.
    static constexpr int strip_offset = coefficient_count;
    static constexpr int room_offset = strip_offset + warps * strip_rows * stride;
    static constexpr int bytes(int) { return 8 * (room_offset + threads); }
};

template <typename T, int Components, int Features>
class DiagonalWarp {
    using Block = WarpBlock<Components, Features>;

public:
    __device__ DiagonalWarp(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : values_(launch.values + item.first * launch.d), mixture_(mixture), d_(launch.d), n_(item.n),
          coefficients_(memory), strip_(memory + Block::strip_offset + warp() * strip_rows * stride),
          room_(memory + Block::room_offset)
    {
        fill<Block>(memory, mixture.coefficients, Block::coefficient_count);
        __syncthreads();
        for (int i = lane(); i < strip_rows * stride; i += 32)
            strip_[i] = 0.0; // features beyond d stay 0
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int at = lane() + 32 * i, row = at / d_, f = at % d_;
            origin_[i] = at < strip_rows * d_ ? mixture.origin[f] : 0.0;
            to_[i] = row * stride + f;
        }
        if constexpr (keeps)
#pragma unroll
            for (int m = 0; m < Components; ++m)
#pragma unroll
                for (int s = 0; s < 2 * Features; ++s)
                    load(m, s, kept_[m][s]);
        const double *constant = coefficients_ + Components * Features * 256 + g();
#pragma unroll
        for (int m = 0; m < Components; ++m) {
            constant_[m][0] = constant[16 * m];
            constant_[m][1] = constant[16 * m + 8];
        }
    }

    __device__ void run()
    {
        const int strips = (n_ + strip_rows - 1) / strip_rows;
        double factors = 1.0;
        int pending = 0;
        fetch(warp());
        for (int strip = warp(); strip < strips; strip += Block::warps) {
            __syncwarp();
            put(strip);
            __syncwarp();
            fetch(strip + Block::warps);
            double share[Components][4];
            densities(share);
            factors *= shares(strip * strip_rows + 2 * t(), share);
            add(share);
            if (++pending == strips_per_flush) {
                flush(factors);
                factors = 1.0;
                pending = 0;
            }
        }
        flush(factors);
    }

    // The sums of all warps into the item's copy.
    __device__ void store(int slot)
    {
        double *out = mixture_.sums + slot * mixture_.layout.values();
        const bool writes = threadIdx.x < 32;
#pragma unroll
        for (int m = 0; m < Components; ++m) {
#pragma unroll
            for (int s = 0; s < 2 * Features; ++s)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const double sum = over_warps(product_[m][s][i]);
                    const int j = 16 * m + g() + i / 2 * 8, f = s % Features * 8 + 2 * t() + i % 2;
                    if (writes && j < mixture_.k && f < d_)
                        out[(s < Features ? mixture_.layout.first(j) : mixture_.layout.second(j)) + f] += sum;
                }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                double mass = over_warps(sum_of_masses_[m][half]);
                mass += __shfl_xor_sync(~0u, mass, 1);
                mass += __shfl_xor_sync(~0u, mass, 2);
                const int j = 16 * m + g() + 8 * half;
                if (writes && t() == 0 && j < mixture_.k)
                    out[j] += mass;
            }
        }
        double likelihood = over_warps(log_likelihood_);
        likelihood += __shfl_xor_sync(~0u, likelihood, 1);
        likelihood += __shfl_xor_sync(~0u, likelihood, 2);
        if (threadIdx.x == 0)
            out[mixture_.k] += likelihood;
    }

private:
    static constexpr int strip_rows = Block::strip_rows, stride = Block::stride;
    // Factors of at most 32^2 each: below 2^1023; and masses in float32 lose no digit.
    static constexpr int strips_per_flush = 32;
    // Whether registers hold the coefficients; else they come from shared memory each time.
    static constexpr bool keeps = Components * Features <= 2;
    static constexpr int loads = 2 * Features; // of a lane for one strip
    using Exponential = Wide<T>;

    // One value of every warp, added up in the warps' order.
    __device__ double over_warps(double value) const
    {
        __syncthreads();
        room_[threadIdx.x] = value;
        __syncthreads();
        double sum = 0.0;
        for (int w = 0; w < Block::warps; ++w)
            sum += room_[w * 32 + lane()];
        return sum;
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

    // The next strip's values, on their way while this one is worked on.
    __device__ void fetch(int strip)
    {
        const std::int64_t first = std::int64_t{strip} * strip_rows * d_;
        const std::int64_t left = std::int64_t{n_} * d_ - first;
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int at = lane() + 32 * i;
            fetched_[i] = at < strip_rows * d_ && at < left ? values_[first + at] : T{0};
        }
    }
    // Rows that there are not are 0: about a large origin their squares would be infinite.
    __device__ void put(int strip) const
    {
        const int count = min(strip_rows, n_ - strip * strip_rows) * d_;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            if (lane() + 32 * i < strip_rows * d_) {
                const double y = lane() + 32 * i < count ? static_cast<double>(fetched_[i]) - origin_[i] : 0.0;
                strip_[to_[i]] = y;
                strip_[to_[i] + 8 * Features] = y * y;
            }
    }

    __device__ void flush(double factors)
    {
        log_likelihood_ += log(factors);
#pragma unroll
        for (int m = 0; m < Components; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                sum_of_masses_[m][half] += static_cast<double>(mass_[m][half]);
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
        const double *y = strip_ + g() * stride + t();
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
    __device__ double shares(int row, double (&share)[Components][4])
    {
        return responsibilities<Exponential>(share, n_ - row, log_likelihood_, [&](int m, int element, Exponential r) {
            mass_[m][element / 2] += r;
            share[m][element] = static_cast<double>(r);
        });
    }

    // The product's inner index t stands for row 2 t, t + 4 for row 2 t + 1.
    __device__ void add(const double (&share)[Components][4])
    {
        const double *y = strip_ + 2 * t() * stride + g();
#pragma unroll
        for (int s = 0; s < 2 * Features; ++s) {
            const double b[2] = {y[8 * s], y[stride + 8 * s]};
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                const double a[4] = {share[m][0], share[m][2], share[m][1], share[m][3]};
                multiply_add(product_[m][s], a, b);
            }
        }
    }

    const T *values_;
    const MixtureView &mixture_; // read again at the end: registers are short
    const int d_, n_;
    const double *coefficients_;
    double *strip_, *room_;
    T fetched_[loads];
    double origin_[loads];
    int to_[loads];
    double kept_[keeps ? Components : 1][2 * Features][4];
    double constant_[Components][2];
    Exponential mass_[Components][2] = {};             // since the last flush
    double sum_of_masses_[Components][2] = {};         // components g and g + 8
    double product_[Components][2 * Features][4] = {}; // by fragment: r y, then r y^2
    double log_likelihood_ = 0.0;                      // of the rows 2 t and 2 t + 1, the same for every g
};

} // namespace pgkm::cuda::mixture
