// halves.cuh - values relative to a pivot as fp16, and what bounds need of them: of a row x~ = fp16(x'), where x' is
// (x - p) scale, the lengths of x~ and of the residual a = x' - x~. So it is with centroids.
#pragma once

#include <cuda_fp16.h>

#include "device/load_row.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {

// A centred and scaled value; within 2^-23 of itself (and 2^-149) of the exact one.
template <typename T>
__device__ inline float centred(T value, T pivot, T scale)
{
    return static_cast<float>((value - pivot) * scale);
}

// Sums over values that became halves: of x~ and of what rounding took.
struct Rounded {
    double square; // |x~|^2
    float rest;

    // Of one value.
    __device__ void add(float value, float rounded)
    {
        rest = ::fmaf(value - rounded, value - rounded, rest);
        square = ::fma(static_cast<double>(rounded), static_cast<double>(rounded), square);
    }
    // At most |x~|^2 / 2, by 2^-19 of it.
    __device__ float half_square() const { return __double2float_rd(0.5 * (1.0 - 0x1p-19) * square); }
    // At least |x~|, by 2^-23 of it.
    __device__ float length() const { return __double2float_ru(sqrt(square) * (1.0 + 0x1p-40)); }
    // At least |a|. centred() may be off by 2^-23.
    __device__ float lost(int d) const
    {
        const float own = sqrtf(rest) * (1.0f + 0x1p-20f * static_cast<float>(d + 8));
        return own + 0x1p-22f * (length() + own) + 0x1p-40f;
    }
};

// Rounds a row of d features to fp16, by a warp, and calls store(feature, half) for all up to `padded`, which are zero
// from feature d on, or if row is nullptr. The sums are for all lanes.
template <typename T, typename Store>
__device__ inline Rounded round_by_warp(const T *row, const T *pivot, T scale, int d, int padded, Store &&store)
{
    Rounded all = {};
    for (int f = static_cast<int>(threadIdx.x & 31); f < padded; f += 32) {
        const float value = row != nullptr && f < d ? centred(row[f], pivot[f], scale) : 0.0f;
        const __half half = __float2half_rn(value);
        all.add(value, __half2float(half));
        store(f, half);
    }
    return {sum_lanes(all.square), sum_lanes(all.rest)};
}

// Rounds four values to fp16, adds to the row's sums, and calls store(feature, half).
template <int Lanes = 32, typename T, typename Store>
__device__ inline void round_values(const T (&v)[4], const T (&pivot)[4], T scale, int first, bool aligned,
                                    float &square, float &lost, Store &&store)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float value = centred(v[i], pivot[i], scale);
        const __half half = __float2half_rn(value);
        const float rounded = __half2float(half);
        square = fmaf(rounded, rounded, square);
        lost = fmaf(value - rounded, value - rounded, lost);
        store(feature_of<Lanes>(first, i, aligned), half);
    }
}

// From a row's sums of squares: at least |x~|^2 and at least |a|.
__device__ inline void widen_lengths(float &square, float &lost)
{
    square *= 1.0f + 0x1p-12f;
    lost = sqrtf(lost) * (1.0f + 0x1p-10f);
    lost += (sqrtf(square) + lost) * 0x1p-22f; // centred() may be off by 2^-23
}

} // namespace pgkm::cuda
