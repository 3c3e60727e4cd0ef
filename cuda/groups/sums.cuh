// sums.cuh (groups) - the sums of one problem in the shared memory of its block.
//
// Layout: a cluster has group_width() counters of 32 bits, a limb (device/view.cuh) each: of its d features and its
// mass, and of weighted rows the same again for the lower part. A block has a few copies of all clusters' counters,
// so that fewer threads meet at one, and one set of 64-bit sums.
// Threads: rows are added with atomics in shared memory; the whole block flushes the counters into the 64-bit sums
// before limb_additions of a counter can overflow it. Sums are integers: their order does not matter, and they are
// exact.
#pragma once

#include "device/limbs.cuh"
#include "groups/groups.hpp"

namespace pgkm::cuda {

__device__ inline Split scaled_limbs(double value, int exponent, bool weighted, int part)
{
    const double scale = power_of_two(exponent);
    return split_limbs(weighted ? quantise_part(value, scale, part) : quantise(value, scale));
}

// Called, so that what float32 rows need rarely costs their loops no registers.
static __device__ __noinline__ Split rare_limbs(double value, int exponent, bool weighted, int part)
{
    return scaled_limbs(value, exponent, weighted, part);
}

// The limbs of feature f of a row, or of its mass (f = d); of weighted rows the lower part's follow. scales: d.
template <typename T>
__device__ inline Split limbs_of(const View<T> &view, const FeatureScale<T> *scales, std::int64_t row, int f)
{
    const bool weighted = view.weights != nullptr;
    const int part = f > view.d ? 1 : 0;
    f -= part * (view.d + 1);
    const double weight = weighted ? view.weights[row] : 1.0;
    if (f == view.d)
        return weighted ? rare_limbs(weight, view.weight_exponent, true, part) : Split{0, 1};
    const FeatureScale<T> scale = scales[f];
    const T value = view.values[row * view.d + f] - scale.origin; // exact
    const double weighed = weight * static_cast<double>(value);
    if constexpr (sizeof(T) == 8) {
        return scaled_limbs(weighed, scale.exponent, weighted, part);
    } else {
        if (weighted || !has_float_scale(scale.exponent))
            return rare_limbs(weighed, scale.exponent, weighted, part);
        return float_limbs(value, float_scale(scale.exponent));
    }
}

// Adds a row to the counters of its cluster.
template <typename T>
__device__ inline void add_row(const View<T> &view, const FeatureScale<T> *scales, std::int64_t row,
                               std::int32_t *counters)
{
    const int sums = parts_of(view.weights != nullptr) * (view.d + 1);
    for (int f = 0; f < sums; ++f)
        add_limbs(counters + 2 * f, limbs_of(view, scales, row, f));
}

// Adds `replicas` copies of `count` counters to the 64-bit sums and clears them; the whole block, which waits for
// itself before and after.
__device__ inline void flush_counters(std::int64_t *sums, std::int32_t *counters, int count, int replicas)
{
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += group_threads) {
        std::int64_t sum = sums[i];
        for (int r = 0; r < replicas; ++r) {
            sum += counters[r * count + i];
            counters[r * count + i] = 0;
        }
        sums[i] = sum;
    }
    __syncthreads();
}

// Sets `count` values to zero; the whole block.
template <typename V>
__device__ inline void clear(V *values, int count)
{
    for (int i = threadIdx.x; i < count; i += group_threads)
        values[i] = 0;
}

} // namespace pgkm::cuda
