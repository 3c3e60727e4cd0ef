// load_row.cuh - a row of few features into a thread's registers, or four values of a longer one.
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

// Whether rows can be read four values at a time.
template <typename T>
__device__ inline bool loads_aligned(const T *values, int d)
{
    return sizeof(T) == 4 && d % 4 == 0 && (reinterpret_cast<std::uintptr_t>(values) & 15) == 0;
}

// Four values of a row from feature f on; zeros beyond d. aligned: loads_aligned(), and f is a multiple of four.
template <typename T>
__device__ inline void load_four(const T *row, int f, int d, bool aligned, T (&v)[4])
{
    if constexpr (sizeof(T) == 4) {
        if (aligned) {
            const float4 x = f < d ? *reinterpret_cast<const float4 *>(row + f) : float4{0, 0, 0, 0};
            v[0] = x.x;
            v[1] = x.y;
            v[2] = x.z;
            v[3] = x.w;
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = f + i < d ? row[f + i] : T(0);
}

// Four features of a lane, of 4 x Lanes: neighbours where rows are aligned, else Lanes apart.
template <int Lanes = 32>
__device__ inline int feature_of(int first, int i, bool aligned)
{
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    return aligned ? first + lane * 4 + i : first + i * Lanes + lane;
}

// Their values; zeros beyond d.
template <int Lanes = 32, typename T>
__device__ inline void load_values(const T *row, int first, int d, bool aligned, T (&v)[4])
{
    if (sizeof(T) == 4 && aligned)
        return load_four(row, feature_of<Lanes>(first, 0, true), d, true, v);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int f = feature_of<Lanes>(first, i, false);
        v[i] = f < d ? row[f] : T(0);
    }
}

} // namespace pgkm::cuda
