// diagonal_tile.cuh - diag and spherical: E step and sums by a block that holds a tile of rows in shared
// memory, for more components and features than one warp's registers have room for (diagonal_warp.cuh).
//
// Components come in C tiles of 16, features in F of 8, F even. A block of 2 C warps (4 C for the largest
// shape) takes 8 rows a warp at a time, as y = x - origin in float64. First each warp finds the responsibilities of 8
// of the rows: their log densities are the product of the coefficients (components by [y, y^2], in shared memory for
// the whole launch) with the rows, and log-sum-exp goes over the lanes that share a row. Then each warp adds all rows
// to its part of the sums, which stays in registers: 16 components by half of the features (a quarter), r y and r y^2.
// The block waits for its warps three times a tile: rows loaded, responsibilities found, both read.
#pragma once

#include "mixture/log_sum_exp.cuh"
#include "mixture/items.cuh"
#include "device/mma.cuh"

namespace pgkm::cuda::mixture {

template <int Components, int Features>
struct DiagonalBlock {
    // Warps that share the sums of 16 components: of the largest shape a multiprocessor holds one block.
    static constexpr int shares = Components == 4 && Features == 8 ? 4 : 2;
    static constexpr int warps = shares * Components;
    static constexpr int threads = 32 * warps;
    static constexpr int rows = 8 * warps;
    static constexpr int width = 8 * Features;
    static constexpr int row_stride = conflict_free(width);
    static constexpr int share_stride = conflict_free(rows);
    static constexpr int coefficients = Components * Features * 256 + 16 * Components;

    // Shared memory: coefficients, origin, y, responsibilities.
    static constexpr int origin_offset = coefficients;
    static constexpr int row_offset = origin_offset + width;
    static constexpr int share_offset = row_offset + rows * row_stride;
    static constexpr int bytes = 8 * (share_offset + 16 * Components * share_stride);

    // Of a multiprocessor: what its registers and shared memory (of compute capability 9.0) hold.
    static constexpr int per_multiprocessor = shares == 4 ? 1 : (Features == 8 ? 6 : 8) / Components;
};

template <typename T, int Components, int Features>
class DiagonalTile : DiagonalBlock<Components, Features> {
    using Base = DiagonalBlock<Components, Features>;
    using Base::row_stride;
    using Base::rows;
    using Base::share_stride;
    using Base::threads;

public:
    __device__ DiagonalTile(const Launch<T> &launch, const Item &item, const MixtureView &mixture, double *memory)
        : values_(launch.values + item.first * launch.d), mixture_(mixture), d_(launch.d), n_(item.n),
          coefficients_(memory), origin_(memory + Base::origin_offset), rows_(memory + Base::row_offset),
          shares_(memory + Base::share_offset)
    {
        for (int i = static_cast<int>(threadIdx.x); i < Base::coefficients; i += threads)
            memory[i] = mixture.coefficients[i];
        for (int i = static_cast<int>(threadIdx.x); i < d_; i += threads)
            memory[Base::origin_offset + i] = mixture.origin[i];
        for (int i = static_cast<int>(threadIdx.x); i < rows * row_stride; i += threads)
            rows_[i] = 0.0; // features beyond d stay 0
    }

    __device__ void run()
    {
        double factors = 1.0;
        int pending = 0;
        for (int first = 0; first < n_; first += rows) {
            __syncthreads();
            load(first);
            __syncthreads();
            fetch_ahead(first + rows);
            factors *= find_shares(first + 8 * warp() + 2 * t());
            __syncthreads();
            add();
            if (++pending == tiles_per_logarithm) {
                log_likelihood_ += log(factors);
                factors = 1.0;
                pending = 0;
            }
        }
        log_likelihood_ += log(factors);
        __syncthreads();
    }

    // Into the item's copy of the sums.
    __device__ void store(int slot)
    {
        double *out = mixture_.sums + slot * mixture_.layout.values();
#pragma unroll
        for (int p = 0; p < parts; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int j = 16 * component_tile() + g() + i / 2 * 8, f = 8 * (first_part() + p) + 2 * t() + i % 2;
                if (j >= mixture_.k || f >= d_)
                    continue;
                out[mixture_.layout.first(j) + f] += sums_[p][0][i];
                out[mixture_.layout.second(j) + f] += sums_[p][1][i];
            }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const double mass = over_lanes<1, 2>(masses_[half], [](double a, double b) { return a + b; });
            const int j = 16 * component_tile() + g() + 8 * half;
            if (sees_to_masses() && t() == 0 && j < mixture_.k)
                out[j] += mass;
        }
        // Lanes of one t have seen the same rows.
        rows_[threadIdx.x] = g() == 0 ? log_likelihood_ : 0.0;
        __syncthreads();
        if (threadIdx.x != 0)
            return;
        double sum = 0.0;
        for (int i = 0; i < threads; ++i)
            sum += rows_[i];
        out[mixture_.k] += sum;
    }

private:
    static constexpr int parts = Features / Base::shares; // eights of features of a warp's sums
    static constexpr int tiles_per_logarithm = 32;        // a lane has two rows of a tile: factors of at most 64^2 each
    static constexpr int loads = sizeof(T) == 4 ? 8 : 4;  // of a thread, on their way together

    static __device__ int lane()
    {
        return static_cast<int>(threadIdx.x) % 32;
    }
    static __device__ int warp()
    {
        return static_cast<int>(threadIdx.x) / 32;
    }
    static __device__ int g()
    {
        return lane() / 4;
    }
    static __device__ int t()
    {
        return lane() % 4;
    }
    static __device__ int component_tile()
    {
        return warp() / Base::shares;
    }
    static __device__ int first_part()
    {
        return warp() % Base::shares * parts;
    }
    static __device__ bool sees_to_masses()
    {
        return warp() % Base::shares == 0;
    }

    // Rows that there are not are 0.
    __device__ void load(int first) const
    {
        const int cells = rows * d_, count = min(rows, n_ - first) * d_;
        const T *from = values_ + std::int64_t{first} * d_;
        const int row_step = threads / d_, feature_step = threads % d_;
        int row = static_cast<int>(threadIdx.x) / d_, f = static_cast<int>(threadIdx.x) % d_;
        for (int begin = static_cast<int>(threadIdx.x); begin < cells; begin += loads * threads) {
            T value[loads];
#pragma unroll
            for (int u = 0; u < loads; ++u)
                value[u] = begin + u * threads < count ? from[begin + u * threads] : T{0};
#pragma unroll
            for (int u = 0; u < loads; ++u) {
                const int cell = begin + u * threads;
                if (cell < cells)
                    rows_[row * row_stride + f] = cell < count ? static_cast<double>(value[u]) - origin_[f] : 0.0;
                row += row_step;
                f += feature_step;
                if (f >= d_) {
                    f -= d_;
                    ++row;
                }
            }
        }
    }

    // The next tile's rows into the L2 cache while this one is worked on.
    __device__ void fetch_ahead(int first) const
    {
        constexpr int line = 128 / sizeof(T);
        const std::int64_t begin = std::int64_t{first} * d_ + static_cast<int>(threadIdx.x) * line;
        const std::int64_t end = std::int64_t{min(first + rows, n_)} * d_;
        for (std::int64_t i = begin; i < end; i += threads * line)
            asm volatile("prefetch.global.L2 [%0];" ::"l"(values_ + i));
    }

    __device__ void coefficients(int m, int s, double (&fragment)[4]) const
    {
        load_fragment(coefficients_, m * 2 * Features + s, lane(), fragment);
    }

    // Responsibilities of the warp's rows, of which this lane has `row` and row + 1; returns the factor of the
    // likelihood that is left beside exp() of the largest log densities.
    __device__ double find_shares(int row)
    {
        double density[Components][4];
        const double *constant = coefficients_ + Components * Features * 256 + g();
#pragma unroll
        for (int m = 0; m < Components; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                density[m][i] = constant[16 * m + i / 2 * 8];
        const double *y = rows_ + (8 * warp() + g()) * row_stride + t();
#pragma unroll
        for (int s = 0; s < Features; ++s) {
            const double b[2] = {y[8 * s], y[8 * s + 4]}, squares[2] = {b[0] * b[0], b[1] * b[1]};
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                double a[4];
                coefficients(m, s, a);
                multiply_add(density[m], a, b);
            }
#pragma unroll
            for (int m = 0; m < Components; ++m) {
                double a[4];
                coefficients(m, Features + s, a);
                multiply_add(density[m], a, squares);
            }
        }
        double *const share = shares_ + g() * share_stride + 8 * warp() + 2 * t();
        return responsibilities<Wide<T>>(density, n_ - row, log_likelihood_, [&](int m, int element, Wide<T> r) {
            share[(16 * m + element / 2 * 8) * share_stride + element % 2] = static_cast<double>(r);
        });
    }

    // All rows of the tile to this warp's part of the sums.
    __device__ void add()
    {
        const double *share = shares_ + (16 * component_tile() + g()) * share_stride + t();
        const double *y = rows_ + t() * row_stride + 8 * first_part() + g();
#pragma unroll 2
        for (int row = 0; row < rows; row += 8, share += 8, y += 8 * row_stride) {
            const double a[4] = {share[0], share[8 * share_stride], share[4], share[8 * share_stride + 4]};
#pragma unroll
            for (int p = 0; p < parts; ++p) {
                const double b[2] = {y[8 * p], y[4 * row_stride + 8 * p]};
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

    const T *values_;
    const MixtureView &mixture_; // read again at the end: registers are short
    const int d_, n_;
    const double *coefficients_, *origin_;
    double *rows_, *shares_;
    double sums_[parts][2][4] = {}; // by fragment: r y, r y^2
    double masses_[2] = {};         // components g and g + 8 of the tile
    double log_likelihood_ = 0.0;
};

} // namespace pgkm::cuda::mixture
