// load_row.cuh - a row of few features into a thread's registers.
#pragma once

#include <cstdint>

namespace pgkm::cuda {

// One row, aligned for wide reads where d is D; zeros from feature d on.
template <int D>
__device__ inline void load_row(const float *values, std::int64_t row, int d, float (&x)[D])
{
    const float *from = values + row * d;
    if (D % 4 == 0 && d == D) {
#pragma unroll
        for (int f = 0; f < D; f += 4)
            *reinterpret_cast<float4 *>(&x[f]) = *reinterpret_cast<const float4 *>(from + f);
    } else if (D % 2 == 0 && d == D) {
#pragma unroll
        for (int f = 0; f < D; f += 2)
            *reinterpret_cast<float2 *>(&x[f]) = *reinterpret_cast<const float2 *>(from + f);
    } else {
#pragma unroll
        for (int f = 0; f < D; ++f)
            x[f] = f < d ? from[f] : 0.0f;
    }
}

// The same of any row: by pairs where d is even.
template <int D>
__device__ inline void load_any_row(const float *values, std::int64_t row, int d, float (&x)[D])
{
    if (d == D || D % 2 != 0 || d % 2 != 0)
        return load_row<D>(values, row, d, x);
    const float *from = values + row * d;
#pragma unroll
    for (int f = 0; f < D; f += 2)
        *reinterpret_cast<float2 *>(&x[f]) =
            f < d ? *reinterpret_cast<const float2 *>(from + f) : make_float2(0.0f, 0.0f);
}

} // namespace pgkm::cuda
