// warp.cuh - what neighbouring lanes of a warp, or all threads of a block, find out together: all of them call, and all
// get the answer.
#pragma once

namespace pgkm::cuda {

// Over `Lanes` neighbours, a power of two; join(own, other) of values in either order.
template <int Lanes = 32, typename V, typename Join>
__device__ inline V join_lanes(V value, Join &&join)
{
#pragma unroll
    for (int offset = Lanes / 2; offset > 0; offset >>= 1)
        value = join(value, __shfl_xor_sync(~0u, value, offset));
    return value;
}

template <int Lanes = 32, typename V>
__device__ inline V sum_lanes(V value)
{
    return join_lanes<Lanes>(value, [](V a, V b) { return a + b; });
}

template <int Lanes = 32, typename V>
__device__ inline V max_lanes(V value)
{
    return join_lanes<Lanes>(value, [](V a, V b) { return max(a, b); });
}

// How many of the lanes in `mask` stand below this one.
__device__ inline int lanes_below(unsigned mask)
{
    return __popc(mask & ((1u << (threadIdx.x & 31)) - 1));
}

// Makes room behind *count for the lanes with `wanted`, by one atomic of the warp; the place of such a lane.
__device__ inline int append_by_warp(int *count, bool wanted)
{
    const unsigned mask = __ballot_sync(~0u, wanted);
    int base = 0;
    if ((threadIdx.x & 31) == 0 && mask != 0)
        base = atomicAdd(count, __popc(mask));
    return __shfl_sync(~0u, base, 0) + lanes_below(mask);
}

// Over a block of so many threads, warp by warp.
template <int Threads, typename V>
__device__ inline V sum_in_block(V mine)
{
    __shared__ V parts[Threads / 32];
    mine = sum_lanes(mine);
    __syncthreads(); // all have read what another sum left there
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    V sum = 0;
    for (const V part : parts)
        sum += part;
    return sum;
}

} // namespace pgkm::cuda
