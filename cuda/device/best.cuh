// best.cuh - the least of scores and the second least: what a filter keeps of a row.
#pragma once

#include <cmath>

namespace pgkm::cuda {

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
    __device__ void join(const Best &other)
    {
        second = fminf(fminf(second, other.second), fmaxf(least, other.least));
        index = other.least < least ? other.index : index;
        least = fminf(least, other.least);
    }
    // The best of `Lanes` neighbouring lanes of a warp, a power of two, for all of them; by all lanes.
    template <int Lanes>
    __device__ void join_lanes()
    {
        for (int offset = Lanes / 2; offset > 0; offset >>= 1)
            join({__shfl_xor_sync(~0u, least, offset), __shfl_xor_sync(~0u, second, offset),
                  __shfl_xor_sync(~0u, index, offset)});
    }
};

} // namespace pgkm::cuda
