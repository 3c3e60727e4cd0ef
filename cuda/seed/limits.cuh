// limits.cuh (seed) - the numbers of the filter's bound (filter.cu) for one row or trial.
#pragma once

#include "seed/greedy.hpp"

namespace pgkm::cuda {

inline constexpr float never_open = 0x1p126f, always_open = -0x1p127f; // limits; any product is far below

template <typename T>
__device__ inline std::int64_t row_number(const GreedyRows<T> &rows, std::int64_t position)
{
    return rows.order == nullptr ? position : rows.order[position];
}

// A value as its half is made from it.
template <typename T>
__device__ inline float scaled(const GreedyRows<T> &rows, T value, int f)
{
    return static_cast<float>((static_cast<double>(value) - static_cast<double>(rows.shift[f])) * rows.scale);
}

// At least what rounding took from a row: `rest` is the sum of squares of what fp16 did. float32 had rounded values of
// these lengths, added up, before.
__device__ inline float rounding_of(float lengths, float rest, int d)
{
    const float sums = 1.0f + 0x1p-20f * static_cast<float>(d + 8);
    return (sqrtf(rest) + 0x1p-23f * lengths) * sums + 0x1p-40f;
}

// Of |x~||c~|: what half of the errors of products and of the sums that they are compared with may be.
template <typename T>
__device__ inline double share_of(const GreedyRows<T> &rows)
{
    return 32.0 * rows.chunks * 0x1p-22 + 0x1p-19;
}

// The limit of a row with this v_i. A row at 0 comes no nearer; where distances underflow, any may count.
template <typename T>
__device__ inline float limit_of(const GreedyRows<T> &rows, std::int64_t position, double nearest)
{
    if (nearest == 0.0)
        return never_open;
    const double distance = rows.weights == nullptr ? nearest : nearest / rows.weights[position];
    const double reach = sqrt(distance) * rows.scale * (1.0 + 0x1p-20) + rows.facts[position].rounding;
    const double limit = 0.5 * (rows.facts[position].square - (1.0 + 0x1p-7 + 0x1p-18) * reach * reach);
    const bool bounded = nearest > 0x1p-900 && distance > 0x1p-900 && limit > static_cast<double>(always_open);
    return bounded ? __double2float_rd(limit) : always_open;
}

} // namespace pgkm::cuda
