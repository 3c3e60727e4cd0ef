// tensor_leading.cuh - the least and second least of a row's scores or distances, and the column that has the least.
#pragma once

#include <cstdint>

namespace pgkm::cuda::tensor {
namespace {

struct Leading {
    float best;
    float second;
    std::int32_t column; // -1: no score was a number

    __device__ void add(int at, float score)
    {
        const bool better = score < best;
        second = fminf(second, better ? best : score);
        best = better ? score : best;
        column = better ? at : column;
    }
    __device__ void merge(const Leading &other)
    {
        const bool wins = other.best < best;
        second = fminf(fminf(second, other.second), wins ? best : other.best);
        best = wins ? other.best : best;
        column = wins ? other.column : column;
    }
};

__device__ inline Leading from_lane(const Leading &mine, int offset)
{
    return {__shfl_xor_sync(~0u, mine.best, offset), __shfl_xor_sync(~0u, mine.second, offset),
            __shfl_xor_sync(~0u, mine.column, offset)};
}

} // namespace
} // namespace pgkm::cuda::tensor
