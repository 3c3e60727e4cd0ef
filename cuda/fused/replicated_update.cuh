// replicated_update.cuh - the end of an iteration in a kernel that runs all iterations of a fit: one barrier of the
// whole grid, after which every block makes the new centroids and takes the decision for itself, from the same sums, so
// that none waits for another one's.
//
// Blocks may enter the next iteration while others still read the sums. So there are two sets of them: iteration i adds
// to set i mod 2 what it moved and what the iteration before it moved, which brings that set from iteration i - 2 to i,
// and no block adds to a set before all have read it: iteration i + 2 begins behind another barrier.
#pragma once

#include "fused/finish.cuh"
#include "fused/moves.cuh"

namespace pgkm::cuda {

// Barriers of all blocks of a launch, by one thread of each, in turn on two counters. Block 0 says whether work ends
// there, for all blocks alike: a flag that each of them read for itself could change in between. All that threads wrote
// before their block's last __syncthreads() is seen behind it.
class GridBarrier {
  public:
    // counters: two, zero when the launch begins.
    __device__ explicit GridBarrier(unsigned long long *counters) : counters_(counters) {}
    __device__ void arrive(bool ends)
    {
        const unsigned long long mine = ends ? halt + 1 : 1;
        asm volatile("red.release.gpu.global.add.u64 [%0], %1;" ::"l"(counters_ + (turn_ & 1)), "l"(mine) : "memory");
    }
    // Returns whether work goes on.
    __device__ bool wait()
    {
        const unsigned long long all = gridDim.x * static_cast<unsigned long long>(turn_ / 2 + 1);
        unsigned long long seen;
        do
            asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(counters_ + (turn_ & 1)) : "memory");
        while ((seen & (halt - 1)) < all);
        ++turn_;
        return seen < halt;
    }

  private:
    static constexpr unsigned long long halt = 1ULL << 63;
    unsigned long long *counters_;
    std::uint32_t turn_ = 0;
};

// Sets of centroids in shared memory: an odd number of words apart, so that threads which read the same feature of
// several do so from different banks.
__host__ __device__ constexpr int centroid_stride(int d)
{
    return d | 1;
}

// Adds what two iterations moved to the global sums, by the whole block, and clears the older one's counters.
__device__ inline void publish_two(const MoveCounters &newer, const MoveCounters &older, const Accumulators &sums)
{
    const std::int32_t *newer_limbs = shared_words(newer.offset);
    std::int32_t *older_limbs = shared_words(older.offset);
    for (int i = static_cast<int>(threadIdx.x); i < newer.k * (newer.d + 1); i += static_cast<int>(blockDim.x)) {
        std::int64_t limbs[3];
#pragma unroll
        for (int limb = 0; limb < 3; ++limb) {
            limbs[limb] = std::int64_t{newer_limbs[3 * i + limb]} + older_limbs[3 * i + limb];
            older_limbs[3 * i + limb] = 0;
        }
        newer.publish_counter(sums, i, limbs);
    }
}

} // namespace pgkm::cuda
