// last_block.cuh - which block of a launch is done last, and so sees all that the others wrote.
#pragma once

#include <cstdint>

namespace pgkm::cuda {

// Whether this block is the last of the launch to get here, for all its threads. *arrived, zero at first, counts those
// that did, and is zero again when the last one has. By all threads of each block.
__device__ inline bool arrives_last(std::uint32_t *arrived)
{
    __shared__ bool last;
    const unsigned blocks = gridDim.x * gridDim.y;
    __threadfence();
    __syncthreads(); // all threads' writes are before the count
    if (threadIdx.x == 0)
        last = atomicInc(arrived, blocks - 1) == blocks - 1;
    __syncthreads();
    __threadfence();
    return last;
}

} // namespace pgkm::cuda
