// half_split.cuh - float32 deviations as pairs of fp16 values, and how rows of up to 128 features come in.
//
// A deviation is scaled by a power of two of its feature and split into two fp16 values, high + low:
// 22 bits. Of the four products three are summed (low x low is below the rounding of the others), in
// float32 over the rows of a stage and in float64 beyond, so that an element is right to about 1e-6 of
// sqrt(a_ii a_jj). A scale leaves room for values 2^13 times as far from the shift as those of a
// sample; where a row is farther out, `overflow` is raised and the problem's sums are worth nothing.
#pragma once

#include <cuda_fp16.h>

#include "products.cuh"

namespace pgkm::cuda::moments {

inline constexpr float half_range = 65504.0f;

// The power of two that brings the sample's largest deviation to [4, 8): fp16 ends at 65,504, and
// what is 2^-20 of that deviation still has all of its digits in the low half.
__device__ inline float scale_of(float largest)
{
    return largest > 0.0f ? ldexpf(1.0f, min(2 - ilogbf(largest), 100)) : 1.0f;
}

// The problem's shifts in memory[0 .. tile) and scales behind them; waits for the block.
__device__ inline void prepare_scales(const HalfScales &scales, const Segment &segment, int d, float *memory, int threads)
{
    for (int f = static_cast<int>(threadIdx.x); f < tile; f += threads) {
        memory[f] = f < d ? scales.shift[segment.shift + f] : 0.0f;
        memory[tile + f] = f < d ? scale_of(scales.largest[segment.shift + f]) : 1.0f;
    }
    __syncthreads();
}

struct SplitRow {
    uint2 high, low; // four fp16 values each
};

// Four features of rows on their way in.
class HalfLoader {
  public:
    // `memory` as prepare_scales() left it.
    __device__ HalfLoader(const float *rows, std::int64_t n_rows, int d, int feature, const float *memory)
        : rows_(rows), n_rows_(n_rows), d_(d), feature_(feature), wide_(copies_wide(rows, d)),
          shift_(reinterpret_cast<const float4 *>(memory + feature)),
          scale_(reinterpret_cast<const float4 *>(memory + tile + feature))
    {
    }

    // What is not there deviates by nothing.
    __device__ float4 load(std::int64_t row) const
    {
        float4 values = *shift_;
        if (row >= n_rows_ || feature_ >= d_)
            return values;
        const float *const from = rows_ + row * d_ + feature_;
        if (wide_)
            return __ldcs(reinterpret_cast<const float4 *>(from));
        values.x = from[0];
        if (feature_ + 1 < d_)
            values.y = from[1];
        if (feature_ + 2 < d_)
            values.z = from[2];
        if (feature_ + 3 < d_)
            values.w = from[3];
        return values;
    }

    // Adds the deviations to `sums`, and their largest scaled magnitude to `largest`.
    __device__ SplitRow split(const float4 &values, float (&sums)[4], float &largest) const
    {
        const float4 shift = *shift_, scale = *scale_;
        const float deviation[4] = {values.x - shift.x, values.y - shift.y, values.z - shift.z, values.w - shift.w};
        const float x[4] = {deviation[0] * scale.x, deviation[1] * scale.y, deviation[2] * scale.z, deviation[3] * scale.w};
        __half2 high[2], low[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            high[j] = __floats2half2_rn(x[2 * j], x[2 * j + 1]);
            const float2 rounded = __half22float2(high[j]);
            low[j] = __floats2half2_rn(x[2 * j] - rounded.x, x[2 * j + 1] - rounded.y);
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            sums[j] += deviation[j];
            largest = fmaxf(largest, fabsf(x[j]));
        }
        return {*reinterpret_cast<const uint2 *>(high), *reinterpret_cast<const uint2 *>(low)};
    }

    // One thread asks for `count` rows ahead of their loads.
    __device__ void prefetch(std::int64_t row, int count) const
    {
        if (!wide_ || threadIdx.x % 128 != 0 || row + count > n_rows_)
            return;
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(rows_ + row * d_), "r"(count * d_ * 4));
    }

  private:
    const float *rows_;
    std::int64_t n_rows_;
    int          d_, feature_;
    bool         wide_;
    const float4 *shift_, *scale_; // in shared memory
};

} // namespace pgkm::cuda::moments
