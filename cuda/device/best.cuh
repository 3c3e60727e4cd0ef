// best.cuh - the least of scores and the second least: what a filter keeps of a row.
#pragma once

#include <cmath>

namespace pgkm::cuda {

// Scores that are sums of squares of differences in float32. With u = 2^-24, a difference errs by at most u of itself,
// which counts twice in its square, and so does each of the `additions` that a term goes through; no term is negative.
// So a sum errs by at most E = (additions + 3) u of itself, in proportion to the distance, not to the lengths of rows
// and centroids as products do. Beyond this limit lie those sums that do not belong to the nearest centroid: they
// exceed the least, S, by more than 2 E / (1 - E) S. For that 2.05 E suffices up to 400,000 additions; 2^-21 covers the
// limit's own rounding and that of the contract's distances, 2^-100 underflow.
__device__ inline float limit_of_squares(float least, int additions)
{
    const float error = static_cast<float>(additions + 3) * 0x1p-24f;
    return least * (1.0f + (2.05f * error + 0x1p-21f)) + 0x1p-100f;
}

struct Best {
    float least;
    float second;
    int index; // whose the least is; that of an earlier one on a tie

    __device__ static Best none() { return {INFINITY, INFINITY, 0}; }
    // NaN leaves no second above the least: the row stays open.
    __device__ void take(float score, int at)
    {
        second = fminf(second, fmaxf(least, score));
        index = score < least ? at : index;
        least = fminf(least, score);
    }
    // The same of a score that is no NaN, with fewer of the instructions that run at half rate on a Hopper (least,
    // greatest, compare, select): what takes another's place gets there by multiplying with 0 and by adding 0.
    // `zero` is one that the compiler does not know of, and negative; at: 0 to 2^23.
    __device__ void take(float score, int at, float zero)
    {
        float place = __int_as_float(index); // a small integer: as a float it is denormal, and kept
        asm("{ .reg .pred p; setp.lt.f32 p, %3, %0; @!p min.f32 %1, %1, %3; @p add.rn.f32 %1, %0, %5; "
            "@p fma.rn.f32 %2, %2, %5, %4; @p add.rn.f32 %0, %3, %5; }"
            : "+f"(least), "+f"(second), "+f"(place)
            : "f"(score), "f"(__int_as_float(at)), "f"(zero));
        index = __float_as_int(place);
    }
    // Of sums of squares: whether the index is that of the nearest centroid. NaN and infinity leave it open.
    __device__ bool is_sole(int additions) const { return second > limit_of_squares(least, additions); }
    __device__ void join(const Best &other)
    {
        second = fminf(fminf(second, other.second), fmaxf(least, other.least));
        index = other.least < least ? other.index : index;
        least = fminf(least, other.least);
    }
    __device__ Best of_lane(int mask) const
    {
        return {__shfl_xor_sync(~0u, least, mask), __shfl_xor_sync(~0u, second, mask),
                __shfl_xor_sync(~0u, index, mask)};
    }
    // The best of `Lanes` neighbouring lanes of a warp, a power of two, for all of them; by all lanes.
    template <int Lanes>
    __device__ void join_lanes()
    {
        for (int offset = Lanes / 2; offset > 0; offset >>= 1)
            join(of_lane(offset));
    }
};

// A zero for Best::take() that the compiler cannot tell, by a number that is never negative.
__device__ inline float unknown_zero(int number)
{
    return number < 0 ? 1.0f : -0.0f;
}

} // namespace pgkm::cuda
