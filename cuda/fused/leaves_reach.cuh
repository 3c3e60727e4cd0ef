// leaves_reach.cuh - whether the box of some rows lets a centroid be nearer than another one, the pivot.
//
// The squared distance of x from the pivot less that from c is linear in each feature, so that its maximum over a box
// lies at the box's ends: with l, h the ends of feature f, the gain of c is at most
//     G = sum over f of max((l - p)^2 - (l - c)^2, (h - p)^2 - (h - c)^2).
// Where G < 0, c is farther than the pivot from every point of the box.
//
// Error. With u = 2^-24 and S the sum of all four squares over the features, a square in float32 errs by at most
// 3 u (1 + o(u)) of itself, and the d additions by d u S in all: less than (d + 5) u S < 2^-19 S for d <= 16. Both
// squared distances as the contract computes them err by at most (d + 2) 2^-53 of themselves. So G < -2^-18 S - 2^-100
// leaves c out (2^-100 covers underflow). NaN and infinities keep it.
#pragma once

#include "fused/leaves.hpp"

namespace pgkm::cuda {

// One feature of a box, as the tests of a block or warp read it.
struct alignas(16) BoxEnds {
    float low, high;
    float from_low, from_high; // squared distances of the pivot from the ends
};

template <int D>
struct BoxTest {
    BoxEnds ends[D];

    // By the thread that sees to feature f.
    __device__ void measure(int f, float pivot)
    {
        const float low = ends[f].low - pivot, high = ends[f].high - pivot;
        ends[f].from_low = low * low;
        ends[f].from_high = high * high;
    }
    // Whether some point of the box may be as near to c as to the pivot.
    __device__ bool reaches(const float (&c)[D]) const
    {
        float gain = 0.0f, size = 0.0f;
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const BoxEnds end = ends[f];
            const float low = end.low - c[f], high = end.high - c[f];
            gain += fmaxf(__fmaf_rn(-low, low, end.from_low), __fmaf_rn(-high, high, end.from_high));
            size = __fmaf_rn(low, low, __fmaf_rn(high, high, size)) + (end.from_low + end.from_high);
        }
        return !(gain < -0x1p-18f * size - 0x1p-100f);
    }
    // The squared distance of c from the middle of the box, roughly.
    __device__ float from_middle(const float (&c)[D]) const
    {
        float sum = 0.0f;
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const float difference = c[f] - middle(f);
            sum = __fmaf_rn(difference, difference, sum);
        }
        return sum;
    }
    __device__ float middle(int f) const
    {
        return 0.5f * ends[f].low + 0.5f * ends[f].high;
    }
};

} // namespace pgkm::cuda
