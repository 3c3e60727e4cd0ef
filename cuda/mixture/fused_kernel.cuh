// fused_kernel.cuh (mixture) - the one kernel and launch of all fused shapes; a table says which there are.
#pragma once

#include "mixture/fused.hpp"

namespace pgkm::cuda::mixture {

// Block::Kernel is what a block does with an item: diagonal_warp.cuh, diagonal_tile.cuh, full_tile.cuh.
template <typename Block, typename T>
__global__ void __launch_bounds__(Block::threads, Block::per_multiprocessor) fused_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    if (stopped(launch))
        return;
    const Item item = launch.items[blockIdx.x];
    typename Block::template Kernel<T> kernel(launch, item, launch.mixtures[item.problem],
                                              reinterpret_cast<double *>(memory));
    kernel.run();
    kernel.store(item.slot);
}

template <typename... Each>
struct Blocks {
    // Calls use(block) with the one of this shape.
    template <typename Use>
    static void find(const FusedShape &shape, Use &&use)
    {
        const auto try_one = [&](auto block) {
            if (block.components == shape.components && block.feature_tiles == shape.features)
                use(block);
        };
        (try_one(Each()), ...);
    }

    static BlockNeeds needs(const FusedShape &shape, int k)
    {
        BlockNeeds found = {};
        find(shape, [&](auto block) { found = {block.bytes(k), block.per_multiprocessor}; });
        return found;
    }

    template <typename T>
    static void enqueue(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream)
    {
        find(shape, [&](auto block) {
            using Block = decltype(block);
            checked("cudaFuncSetAttribute",
                    [&] { return allow_shared_memory(fused_kernel<Block, T>, Block::bytes(k)); });
            fused_kernel<Block, T><<<n_items, Block::threads, Block::bytes(k), stream>>>(launch);
        });
        launched("fused_kernel");
    }
};

} // namespace pgkm::cuda::mixture
