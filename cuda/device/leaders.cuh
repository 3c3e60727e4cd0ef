// leaders.cuh - the least and second least of octets' scores, of rows whose scores lie in the lanes of a quad.
//
// An octet: the eight centroids that a lane has of four tiles of a product. (The least of floats takes half the time
// of the least of integers on a Hopper.)
#pragma once

#include <cmath>

namespace pgkm::cuda {

struct Leaders {
    float least, second;
    int octet; // 4 x number of the four tiles + lane of the quad

    __device__ static Leaders none() { return {INFINITY, INFINITY, 0}; }
    __device__ void add(float score, int at)
    {
        second = fminf(second, fmaxf(least, score));
        octet = score < least ? at : octet;
        least = fminf(least, score);
    }
    // The same of a score that is no NaN, with fewer of the instructions that run at half rate on a Hopper (least,
    // greatest, compare, select): what takes another's place gets there by multiplying with 0 and by adding 0.
    // `zero` is one that the compiler does not know of, and negative.
    __device__ void add(float score, int at, float zero)
    {
        float place = __int_as_float(octet); // a small integer: as a float it is denormal, and kept
        asm("{ .reg .pred p; setp.lt.f32 p, %3, %0; @!p min.f32 %1, %1, %3; @p add.rn.f32 %1, %0, %5; "
            "@p fma.rn.f32 %2, %2, %5, %4; @p add.rn.f32 %0, %3, %5; }"
            : "+f"(least), "+f"(second), "+f"(place)
            : "f"(score), "f"(__int_as_float(at)), "f"(zero));
        octet = __float_as_int(place);
    }
    __device__ void merge(const Leaders &other)
    {
        second = fminf(second, other.second);
        second = fminf(second, fmaxf(least, other.least));
        octet = other.least < least ? other.octet : octet;
        least = fminf(least, other.least);
    }
    __device__ Leaders of_lane(int mask) const
    {
        return {__shfl_xor_sync(~0u, least, mask), __shfl_xor_sync(~0u, second, mask),
                __shfl_xor_sync(~0u, octet, mask)};
    }
};

// The column of an octet's score i.
__device__ inline int octet_column(int octet, int i)
{
    return octet / 4 * 32 + i / 2 * 8 + 2 * (octet & 3) + i % 2;
}

// Field by field: the structures stay in registers.
__device__ inline Leaders pick(bool first, const Leaders &a, const Leaders &b)
{
    return {first ? a.least : b.least, first ? a.second : b.second, first ? a.octet : b.octet};
}

// Of M strips of 16 rows, whose row l / 4 + 8 h value[m][h] is of in lane l: the leaders of the lane's own row, in
// strip l / 2 % 2 (0 where M is 1) and half l % 2.
template <int M>
__device__ inline Leaders scatter_leaders(const Leaders (&value)[M][2])
{
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
    Leaders pair[M];
#pragma unroll
    for (int m = 0; m < M; ++m) {
        pair[m] = pick(odd, value[m][1], value[m][0]);
        pair[m].merge(pick(odd, value[m][0], value[m][1]).of_lane(1));
    }
    Leaders own = pick(upper, pair[M - 1], pair[0]);
    own.merge(pick(upper, pair[0], pair[M - 1]).of_lane(2));
    return own;
}

} // namespace pgkm::cuda
