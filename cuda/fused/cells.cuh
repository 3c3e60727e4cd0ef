// cells.cuh - device pieces of the grid of cells.hpp.
#pragma once

#include "../limbs.cuh"
#include "cells.hpp"

namespace pgkm::cuda {

// float32 values as integers of the same order.
__host__ __device__ inline std::int32_t ordered_bits(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7fffffff); }

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

} // namespace pgkm::cuda
