// warp.cuh - what neighbouring lanes of a warp find out together: all lanes call, and all get the answer.
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

} // namespace pgkm::cuda
