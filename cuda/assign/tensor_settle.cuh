// tensor_settle.cuh - rows that a filter could not decide, settled exactly over all centroids.
//
// Filters append row numbers to a list on the device; one warp per listed row measures every
// centroid by the contract's distance. The length of the list is known to the device alone.
#pragma once

#include "device/exact.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda::tensor {

struct SettleList {
    std::int32_t *count;
    std::int32_t *rows;
};

// Appends the rows of the lanes with `wanted` by one atomic per warp. All lanes take part.
__device__ inline void append_by_warp(std::int32_t *count, bool wanted, std::int32_t &position)
{
    const unsigned mask = __ballot_sync(~0u, wanted);
    const int lane = static_cast<int>(threadIdx.x & 31);
    std::int32_t base = 0;
    if (lane == 0 && mask != 0)
        base = atomicAdd(count, __popc(mask));
    position = __shfl_sync(~0u, base, 0) + __popc(mask & ((1u << lane) - 1));
}

namespace {

template <typename T>
__global__ void settle_kernel(View<T> view, const Control *control, SettleList list, std::int32_t *labels)
{
    const int warps = static_cast<int>(gridDim.x * (blockDim.x / 32));
    const int count = *list.count;
    // The flag is read again for every row: the list may be long.
    for (int i = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32); i < count; i += warps) {
        if (stopped(control))
            return;
        const std::int32_t row = list.rows[i];
        const Nearest best = settle_by_warp(view.values + std::int64_t{row} * view.d, view.centroids, view.k, view.d);
        if ((threadIdx.x & 31) == 0)
            labels[row] = best.label;
    }
}

// Enqueues the settling of all listed rows.
template <typename T>
void settle(const Stage<T> &stage, const View<T> &view, const SettleList &list, std::int32_t *labels)
{
    const int blocks = blocks_for(view.n, 8, stage.context.facts.multiprocessors * 8);
    settle_kernel<<<blocks, 256, 0, stage.stream>>>(view, stage.control, list, labels);
    launched("settle_kernel");
}

} // namespace
} // namespace pgkm::cuda::tensor
