// cells.cuh - what the kernels of the grid (cells.hpp) share: a row's cell, and whether a cell's box lets a centroid be
// nearer than another one. reaches() has the error bound.
#pragma once

#include "device/limbs.cuh"
#include "fused/cells.hpp"

namespace pgkm::cuda {

// float32 values as integers of the same order.
__host__ __device__ inline std::int32_t ordered_bits(std::int32_t bits)
{
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

// The cell of a row: any function of the row's values will do.
template <int D>
__device__ inline int cell_of(const CellGrid &grid, const float (&x)[D])
{
    const float most = static_cast<float>((1 << grid.bits) - 1);
    int cell = 0;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float place = fminf(__fmaf_rn(x[f] - grid.low[f], grid.scale[f], -0.5f), most); // not below -0.5
        if (f < grid.d)
            cell = cell << grid.bits | (__float_as_int(place + rounding_magic) - rounding_bits);
    }
    return cell;
}

// The box of one cell, and one centroid's squared distances from its ends, feature by feature: the
// pivot's, once measure_from() has been called.
template <int D>
struct Corners {
    float low[D], high[D];
    double from_low[D], from_high[D];
};

// The squared distance of a centroid from the box's middle, roughly.
template <int D>
__device__ inline float from_middle(const Corners<D> &box, const float *c)
{
    float sum = 0.0f;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float difference = c[f] - (0.5f * box.low[f] + 0.5f * box.high[f]);
        sum = __fmaf_rn(difference, difference, sum);
    }
    return sum;
}

template <int D>
__device__ inline void measure_from(Corners<D> &box, const float *pivot)
{
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const double low = static_cast<double>(box.low[f]) - static_cast<double>(pivot[f]);
        const double high = static_cast<double>(box.high[f]) - static_cast<double>(pivot[f]);
        box.from_low[f] = low * low;
        box.from_high[f] = high * high;
    }
}

// Whether a row within the box may be as near to c as to the pivot. Both squared distances, as the
// contract computes them, err by at most (d + 2) 2^-53 of themselves, and the bound here by a few
// 2^-53 of the terms: far less than 2^-44 of their sum. NaN keeps the centroid.
template <int D>
__device__ inline bool reaches(const Corners<D> &box, const float *c)
{
    double gain = 0.0, size = 0.0;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const double value = static_cast<double>(c[f]);
        const double low = static_cast<double>(box.low[f]) - value, high = static_cast<double>(box.high[f]) - value;
        const double low_square = low * low, high_square = high * high;
        gain += fmax(box.from_low[f] - low_square, box.from_high[f] - high_square);
        size += fmax(low_square, high_square) + fmax(box.from_low[f], box.from_high[f]);
    }
    return !(gain < -0x1p-44 * size);
}

// Calls body(std::integral_constant) with the features' padded number.
template <typename Body>
void for_padded(int d, Body &&body)
{
    switch (padded_d(d)) {
    case 1:
        return body(std::integral_constant<int, 1>());
    case 2:
        return body(std::integral_constant<int, 2>());
    case 4:
        return body(std::integral_constant<int, 4>());
    default:
        return body(std::integral_constant<int, 8>());
    }
}

} // namespace pgkm::cuda
