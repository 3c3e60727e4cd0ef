// halves.cuh - values relative to a pivot as fp16, and what bounds need of them: of a row x~ = fp16(x'), where x' is
// (x - p) scale, the lengths of x~ and of the residual a = x' - x~. So it is with centroids.
#pragma once

#include <cuda_fp16.h>

#include "device/load_row.cuh"

namespace pgkm::cuda {

// A centred and scaled value; within 2^-23 of itself (and 2^-149) of the exact one.
template <typename T>
__device__ inline float centred(T value, T pivot, T scale)
{
    return static_cast<float>((value - pivot) * scale);
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
