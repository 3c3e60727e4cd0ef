// tensor_settle.cuh - rows that a filter could not decide, settled over all centroids.
//
// Filters append row numbers to a list on the device, whose length is known to the device alone. Where there may be
// many, float32 rows go through sums of squares in tiles (tiled.cu), which decide rows far from many centroids that lie
// together. All other rows are measured by the contract's distance, a warp a row.
#pragma once

#include <type_traits>

#include "assign/tiled.hpp"
#include "device/exact.cuh"

namespace pgkm::cuda::tensor {

namespace {

template <typename T>
__global__ void settle_kernel(View<T> view, const Control *control, RowList list, std::int32_t *labels)
{
    const int warps = static_cast<int>(gridDim.x * (blockDim.x / 32));
    const int count = *list.count;
    // The flag is read again for every row: the list may be long.
    for (int i = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32); i < count; i += warps) {
        if (__any_sync(~0u, stopped(control)))
            return;
        const std::int32_t row = list.rows[i];
        const Nearest best = settle_by_warp(view.values + std::int64_t{row} * view.d, view.centroids, view.k, view.d);
        if ((threadIdx.x & 31) == 0)
            labels[row] = best.label;
    }
}

// Enqueues the settling of all listed rows. in_tiles: there may be many of them; a few take less time a warp each.
template <typename T>
void settle(const Stage<T> &stage, const View<T> &view, const RowList &list, bool in_tiles, std::int32_t *labels)
{
    if constexpr (std::is_same_v<T, float>)
        if (in_tiles)
            return label_listed(stage, view, list, labels);
    const int blocks = blocks_for(view.n, 8, stage.context.facts.multiprocessors * 8);
    enqueue(settle_kernel<T>, blocks, 256, 0, stage.stream, view, stage.control, list, labels);
}

} // namespace
} // namespace pgkm::cuda::tensor
