// sum_up.cuh - from counts to first places: the counting sorts' step in the middle.
#pragma once

#include <cstdint>

#include <cub/block/block_scan.cuh>

namespace pgkm::cuda {

// Each of n counts becomes the sum of those before it; by the only block of a launch, or the last. Counts are read past
// the first-level cache: other blocks may have made them.
template <int Threads, typename V>
__device__ void sum_up(V *counts, int n)
{
    constexpr int each = 4; // counts of a thread at a time
    using Scan = cub::BlockScan<V, Threads>;
    __shared__ typename Scan::TempStorage storage;
    V before = 0;
    for (std::int64_t first = 0; first < n; first += Threads * each) {
        V count[each];
        const std::int64_t mine = first + static_cast<int>(threadIdx.x) * each;
#pragma unroll
        for (int i = 0; i < each; ++i)
            count[i] = mine + i < n ? __ldcg(counts + mine + i) : 0;
        V sum;
        Scan(storage).ExclusiveSum(count, count, sum);
#pragma unroll
        for (int i = 0; i < each; ++i)
            if (mine + i < n)
                counts[mine + i] = before + count[i];
        before += sum;
        __syncthreads();
    }
}

} // namespace pgkm::cuda
