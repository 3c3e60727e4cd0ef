// half_split.cuh - float32 deviations as pairs of fp16 values, and how rows of up to 128 features come in.
//
// A deviation is scaled by a power of two of its feature and split into two fp16 values, high + low:
// 22 bits, or 2^-25 of what the scale makes 1, whichever is coarser. Of the four products three are summed (low x
// low is below the rounding of the others), in float32 over the rows of a stage and in float64 beyond, so that
// an element is right to about 1e-6 of sqrt(a_ii a_jj). Where the sample holds a value that is some ten thousand times
// as far out as the others, the coarser bound counts: 2^-29 sqrt(n) / 4 at worst, which is below 1e-5 up to 4e8 rows. A
// scale leaves room for values 2^9 times as far from the shift as those of a sample; where a row is farther out,
// `overflow` is raised and the problem's sums are worth nothing.
#pragma once

#include <cfloat>

#include <cuda_fp16.h>

#include "moments/products.cuh"

namespace pgkm::cuda::moments {

// The power of two that brings the sample's largest deviation to [64, 128): fp16 ends at 65,504. What is more than
// 2^-8 of that deviation has all of its 22 bits; what is less is right to 2^-25, half the low value's last place. A
// feature that is constant in the sample gets a scale at which any deviation is out of range.
__device__ inline float scale_of(float largest, float shift)
{
    if (largest > 0.0f)
        return ldexpf(1.0f, min(6 - ilogbf(fminf(largest, FLT_MAX)), 100));
    return ldexpf(1.0f, shift == 0.0f ? 100 : min(100, 125 - ilogbf(shift)));
}

// The problem's shifts in memory[0 .. tile) and scales behind them, 0 for features that are not there;
// waits for the block.
__device__ inline void prepare_scales(const HalfScales &scales, const Segment &segment, int d, float *memory, int threads)
{
    for (int f = static_cast<int>(threadIdx.x); f < tile; f += threads) {
        memory[f] = f < d ? scales.shift[segment.shift + f] : 0.0f;
        memory[tile + f] = f < d ? scale_of(scales.largest[segment.shift + f], memory[f]) : 0.0f;
    }
    __syncthreads();
}

struct SplitRow {
    uint2 high, low; // four fp16 values each
};

__device__ inline bool out_of_range(const __half2 &largest) { return __hisinf(largest.x) != 0 || __hisinf(largest.y) != 0; }

// Four features of rows on their way in.
class HalfLoader {
  public:
    // `memory` as prepare_scales() left it.
    __device__ HalfLoader(const float *rows, std::int64_t n_rows, int d, int feature, const float *memory)
        : rows_(rows), n_rows_(n_rows), d_(d), feature_(feature), wide_(copies_wide(rows, d))
    {
        for (int i = 0; i < 4; ++i) {
            scale_[i] = memory[tile + feature + i];
            shift_[i] = memory[feature + i];
            less_[i] = -shift_[i] * scale_[i];
        }
    }

    // Whether load_whole() will do for rows [row, row + count).
    __device__ bool whole(std::int64_t row, int count) const { return wide_ && row + count <= n_rows_; }

    // What is not there is what the scale 0 makes nothing of.
    __device__ float4 load_whole(std::int64_t row) const
    {
        return __ldcs(reinterpret_cast<const float4 *>(rows_ + row * d_ + (feature_ < d_ ? feature_ : 0)));
    }

    // What is not there deviates by nothing.
    __device__ float4 load(std::int64_t row) const
    {
        float4 values = {shift_[0], shift_[1], shift_[2], shift_[3]};
        if (row >= n_rows_ || feature_ >= d_)
            return values;
        const float *const from = rows_ + row * d_ + feature_;
        values.x = from[0];
        if (feature_ + 1 < d_)
            values.y = from[1];
        if (feature_ + 2 < d_)
            values.z = from[2];
        if (feature_ + 3 < d_)
            values.w = from[3];
        return values;
    }

    // Adds the scaled deviations to `sums`, and their largest magnitude, infinity beyond fp16's range, to
    // `largest`. The products are exact, so that the difference is rounded as the deviation itself is.
    __device__ SplitRow split(const float4 &values, float (&sums)[4], __half2 &largest) const
    {
        const float x[4] = {__fmaf_rn(values.x, scale_[0], less_[0]), __fmaf_rn(values.y, scale_[1], less_[1]),
                            __fmaf_rn(values.z, scale_[2], less_[2]), __fmaf_rn(values.w, scale_[3], less_[3])};
        __half2 high[2], low[2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            high[j] = __floats2half2_rn(x[2 * j], x[2 * j + 1]);
            const float2 rounded = __half22float2(high[j]);
            low[j] = __floats2half2_rn(x[2 * j] - rounded.x, x[2 * j + 1] - rounded.y);
            largest = __hmax2(largest, __habs2(high[j]));
        }
#pragma unroll
        for (int j = 0; j < 4; ++j)
            sums[j] += x[j];
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
    float        shift_[4], scale_[4], less_[4]; // less: what the scaled shift takes off
};

} // namespace pgkm::cuda::moments
