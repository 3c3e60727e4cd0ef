// halves.cuh (seed) - rows and trials as halves relative to a pivot, and the numbers of the filter's bound (filter.cu).
#pragma once

#include "device/halves.cuh"
#include "seed/greedy.hpp"

namespace pgkm::cuda {

template <typename T>
__device__ inline std::int64_t row_number(const GreedyRows<T> &rows, std::int64_t position)
{
    return rows.order == nullptr ? position : rows.order[position];
}

template <typename T>
__device__ inline const T *row_at(const GreedyRows<T> &rows, std::int64_t position)
{
    return rows.values + row_number(rows, position) * rows.d;
}

// The position of own row i.
template <typename T>
__device__ inline std::int64_t own_position(const GreedyRows<T> &rows, std::int64_t i)
{
    return rows.mine == nullptr ? i : rows.mine[i];
}

template <typename T>
__device__ inline const T *picked_row(const GreedyRows<T> &rows, int trial)
{
    return rows.picked == nullptr ? row_at(rows, rows.state->seed.picks[trial]) : rows.picked + trial * rows.d;
}

// Values 8 piece .. 8 piece + 7 of a row, shifted and scaled; zeros beyond d, and where there is no row.
template <typename T>
__device__ inline void scaled_eight(const GreedyRows<T> &rows, const T *row, int piece, float (&x)[8])
{
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int f = piece * 8 + j;
        const bool there = row != nullptr && f < rows.d;
        x[j] = there
                   ? static_cast<float>((static_cast<double>(row[f]) - static_cast<double>(rows.shift[f])) * rows.scale)
                   : 0.0f;
    }
}

// Eight values as halves.
__device__ inline uint4 pack_eight(const float (&x)[8])
{
    return {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]), pack_halves(x[4], x[5]), pack_halves(x[6], x[7])};
}

__device__ inline void unpack_eight(const uint4 &halves, float (&x)[8])
{
    const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&pairs[i]));
        x[2 * i] = pair.x;
        x[2 * i + 1] = pair.y;
    }
}

// Sums over the values of a row that became halves: of x~, of what rounding took from x' - y, and of x'.
struct Rounded {
    double square; // |x~|^2
    float rest;    // |x' - y - x~|^2
    float whole;   // |x'|^2

    // What the lane so far away has; by all lanes.
    __device__ void add_lane(int offset)
    {
        square += __shfl_xor_sync(~0u, square, offset);
        rest += __shfl_xor_sync(~0u, rest, offset);
        whole += __shfl_xor_sync(~0u, whole, offset);
    }
    // At most |x~|^2 / 2, by 2^-19 of it.
    __device__ float half_square() const { return __double2float_rd(0.5 * (1.0 - 0x1p-19) * square); }
    // At least |x~|, by 2^-23 of it.
    __device__ float length() const { return __double2float_ru(sqrt(square) * (1.0 + 0x1p-40)); }
    // At least |x' - y - x~|. float32 had rounded values of the lengths of x~ and x' before.
    __device__ float rounding(int d) const
    {
        const float sums = 1.0f + 0x1p-20f * static_cast<float>(d + 8);
        return (sqrtf(rest) + 0x1p-23f * (length() + sqrtf(whole))) * sums + 0x1p-40f;
    }
};

// Eight scaled values relative to a pivot's, as halves.
__device__ inline uint4 round_eight(float (&x)[8], const uint4 &pivot, Rounded &sums)
{
    float y[8];
    unpack_eight(pivot, y);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const float value = x[j] - y[j], rounded = upper_half(value);
        sums.rest = ::fmaf(value - rounded, value - rounded, sums.rest);
        sums.whole = ::fmaf(x[j], x[j], sums.whole);
        sums.square = ::fma(static_cast<double>(rounded), static_cast<double>(rounded), sums.square);
        x[j] = rounded;
    }
    return pack_eight(x);
}

// A row's reach for this v_i: t of the bound, raised; `rounding`: a. A row at 0 comes no nearer; where distances
// underflow, any trial may count.
template <typename T>
__device__ inline float reach_of(const GreedyRows<T> &rows, std::int64_t position, double nearest, float rounding)
{
    if (nearest == 0.0)
        return never_open;
    const double distance = rows.weights == nullptr ? nearest : nearest / rows.weights[position];
    if (nearest <= 0x1p-900 || distance <= 0x1p-900)
        return always_open;
    return __double2float_ru((sqrt(distance) * rows.scale * (1.0 + 0x1p-20) + rounding) * (1.0 + 0x1p-19));
}

} // namespace pgkm::cuda
