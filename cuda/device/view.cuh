// view.cuh - what every kernel is given: rows of one problem and where their sums go.
#pragma once

#include <cstdint>

#include "numeric/contract.hpp"

namespace pgkm::cuda {

// How a feature's values become integers (contract.hpp), the origin as the rows' type has it: for float32 rows it is a
// float32 number, and so is a value less it, exactly.
template <typename T>
struct alignas(2 * sizeof(T)) FeatureScale {
    T origin;
    std::int32_t exponent;
};

// For the host: the scales of one problem.
template <typename T>
inline FeatureScale<T> device_scale(const PgkmFeatureScale &scale)
{
    return {static_cast<T>(scale.origin), scale.exponent};
}

// A run of rows of one problem on the device, with the centroids they are compared with.
template <typename T>
struct View {
    const T *values;       // n x d, row-major
    const double *weights; // n, or nullptr
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
    const T *centroids;                    // k x d
    const FeatureScale<T> *feature_scales; // d
    std::int32_t weight_exponent;
    std::int32_t part = 0; // of weighted rows: the limb (contract.hpp) that is summed, 0 the upper one, 1 the lower
    const std::uint16_t *counts = nullptr; // how many equal rows each stands for, or nullptr: 1
};

// The most rows that one stands for (entries/). 64 bits hold the sums of 2^17 rows in integers of 46 bits, so of 128
// such rows, and of 256 in integers that are not negative.
inline constexpr int most_copies = 1 << 10;

__host__ __device__ inline int copies_of(const std::uint16_t *counts, std::int64_t row)
{
    return counts == nullptr ? 1 : counts[row];
}

// Sums of weighted rows are made twice, once for each limb of the contract, which both keep the bounds of a value
// without weight.
__host__ __device__ constexpr int parts_of(bool weighted)
{
    return weighted ? 2 : 1;
}

// Integer sums in two limbs, value = hi * 2^23 + lo, each a 64-bit integer, so that no 128-bit atomic is
// needed anywhere: with |hi|, |lo| of a row at most 2^22, and 2^29 where sums follow the rows, none
// overflows before 2^34 rows. [.][0] is hi, [.][1] is lo.
struct Accumulators {
    std::int64_t *totals; // parts x k x d x 2
    std::int64_t *masses; // parts x k x 2
    bool weighted = false;
};

inline constexpr int limb_bits = 23;

struct Split {
    std::int32_t hi;
    std::int32_t lo;
};

// The limbs of a scaled value of at most 2^45: |hi| <= 2^22, lo in [-2^22, 2^22), so that
// 511 of either fit a 32-bit partial sum.
__host__ __device__ inline Split split_limbs(std::int64_t value)
{
    const std::int64_t hi = (value + (std::int64_t{1} << (limb_bits - 1))) >> limb_bits;
    return {static_cast<std::int32_t>(hi), static_cast<std::int32_t>(value - hi * (std::int64_t{1} << limb_bits))};
}

inline constexpr int limb_additions = 511;

__host__ __device__ inline Int128 join_limb_sums(std::int64_t hi, std::int64_t lo)
{
    return static_cast<Int128>(hi) * (Int128{1} << limb_bits) + lo;
}

// The i-th of `count` sums, of all its parts.
__host__ __device__ inline Int128 sum_of(const std::int64_t *sums, std::int64_t count, std::int64_t i, bool weighted)
{
    const Int128 upper = join_limb_sums(sums[2 * i], sums[2 * i + 1]);
    return weighted ? join_limbs(upper, join_limb_sums(sums[2 * (count + i)], sums[2 * (count + i) + 1])) : upper;
}

__device__ inline void add64(std::int64_t *target, std::int64_t value)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(target), static_cast<unsigned long long>(value));
}

// A limb of a weighted value.
__device__ inline std::int64_t quantise_part(double product, double scale, int part)
{
    const Limbs limbs = quantise_weighted(product, scale);
    return part == 0 ? limbs.hi : limbs.lo;
}

// A feature's scale, its power of two made: for loops over rows.
template <typename T>
struct Scaling {
    T origin;
    double scale;
};

template <typename T>
__device__ inline Scaling<T> scaling_of(const View<T> &view, int f)
{
    const FeatureScale<T> scale = view.feature_scales[f];
    return {scale.origin, power_of_two(scale.exponent)};
}

// What row `row` adds to feature `f` of its cluster, and to its mass, in one part of the sums. The subtraction is
// exact.
template <typename T>
__device__ inline std::int64_t feature_integer(const View<T> &view, std::int64_t row, int f, const Scaling<T> &scaling,
                                               int part)
{
    const double value = static_cast<double>(view.values[row * view.d + f] - scaling.origin);
    return view.weights == nullptr ? quantise(value, scaling.scale)
                                   : quantise_part(view.weights[row] * value, scaling.scale, part);
}

// The same of a row without weight.
template <typename T>
__device__ inline Split plain_limbs(const View<T> &view, std::int64_t row, int f)
{
    const Scaling<T> scaling = scaling_of(view, f);
    return split_limbs(quantise(static_cast<double>(view.values[row * view.d + f] - scaling.origin), scaling.scale));
}

// Why a fit on the device stopped, or that it goes on.
enum StopReason : std::int32_t {
    running = 0,
    finished = 1,       // converged or max_iter reached
    empty_cluster = 2,  // nothing was updated: rows are relocated first
    compare_labels = 3, // updated; a shift of 0 above tol: only the labels can tell
    cancelled = 4,
};

// The state of a fit on the device. Kernels return at once unless stop == running, so that
// work may be enqueued ahead of the decision that ends it.
struct Control {
    std::int32_t stop;
    std::int32_t n_iter;
    std::int32_t max_iter;
    std::int32_t converged;
    double tol;
    double shift;
    std::uint32_t arrived; // blocks of the kernel that updates that are done
};

__device__ inline bool stopped(const Control *control)
{
    return control != nullptr && *const_cast<const volatile std::int32_t *>(&control->stop) != running;
}

// One answer for all threads of a block, for kernels with barriers: a cancel may come between the reads of two
// warps, and those that went on would use shared memory that the others have not written.
__device__ inline bool block_stopped(const Control *control)
{
    return __syncthreads_or(stopped(control)) != 0;
}

} // namespace pgkm::cuda
