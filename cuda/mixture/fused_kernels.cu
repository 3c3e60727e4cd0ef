// fused_kernels.cu (mixture) - the fused kernels of all shapes, and their launch. Block::Kernel is what a block does
// with an item: diagonal_warp.cuh, diagonal_tile.cuh, full_tile.cuh.
#include "mixture/diagonal_tile.cuh"
#include "mixture/full_tile.cuh"
#include "mixture/fused.hpp"

namespace pgkm::cuda::mixture {
namespace {

template <typename Block, typename T>
__global__ void __launch_bounds__(Block::threads, Block::per_multiprocessor) fused_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    if (stopped(launch.stop))
        return;
    const Item item = launch.items[blockIdx.x];
    typename Block::template Kernel<T> kernel(launch, item, launch.mixtures[item.problem],
                                              reinterpret_cast<double *>(memory));
    kernel.run();
    kernel.store(item.slot);
}

// Calls use(block) with the one of this shape.
template <typename... Blocks, typename Use>
void find_block(const FusedShape &shape, Use &&use)
{
    const auto try_one = [&](auto block) {
        if (block.components == shape.components && block.feature_tiles == shape.features)
            use(block);
    };
    (try_one(Blocks()), ...);
}

template <typename Use>
void with_block(const FusedShape &shape, Use &&use)
{
    if (shape.full)
        find_block<FullBlock<1, 1>, FullBlock<1, 2>, FullBlock<1, 3>, FullBlock<1, 4>, FullBlock<2, 1>,
                   FullBlock<2, 2>>(shape, use);
    else
        find_block<WarpBlock<1, 1>, WarpBlock<1, 2>, WarpBlock<1, 3>, WarpBlock<1, 4>, WarpBlock<2, 1>, WarpBlock<2, 2>,
                   DiagonalBlock<1, 6>, DiagonalBlock<1, 8>, DiagonalBlock<2, 4>, DiagonalBlock<2, 6>,
                   DiagonalBlock<2, 8>, DiagonalBlock<4, 2>, DiagonalBlock<4, 4>, DiagonalBlock<4, 6>,
                   DiagonalBlock<4, 8>>(shape, use);
}

} // namespace

BlockNeeds needs_of(const FusedShape &shape, int k)
{
    BlockNeeds found = {};
    with_block(shape, [&](auto block) { found = {block.bytes(k), block.per_multiprocessor}; });
    return found;
}

template <typename T>
void fused_step(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream)
{
    with_block(shape, [&](auto block) {
        using Block = decltype(block);
        enqueue(fused_kernel<Block, T>, n_items, Block::threads, Block::bytes(k), stream, launch);
    });
}

template void fused_step<float>(const Launch<float> &, unsigned, const FusedShape &, int, cudaStream_t);
template void fused_step<double>(const Launch<double> &, unsigned, const FusedShape &, int, cudaStream_t);

} // namespace pgkm::cuda::mixture
