// tiled_diagonal.cu - diag and spherical in one kernel: blocks that hold tiles of rows in shared memory.
#include "mixture/diagonal_tile.cuh"
#include "mixture/fused.hpp"

namespace pgkm::cuda::mixture {
namespace {

template <typename T, int Components, int Features>
__global__ void __launch_bounds__(DiagonalBlock<Components, Features>::threads,
                                  DiagonalBlock<Components, Features>::per_multiprocessor)
    tiled_diagonal_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    if (stopped(launch))
        return;
    const Item item = launch.items[blockIdx.x];
    DiagonalTile<T, Components, Features> tile(launch, item, launch.mixtures[item.problem],
                                               reinterpret_cast<double *>(memory));
    tile.run();
    tile.store(item.slot);
}

// Calls use(block) with the DiagonalBlock of a shape that is tiled.
template <int Components, typename Use>
auto with_features(int features, Use &&use)
{
    if constexpr (Components == 4)
        if (features == 2)
            return use(DiagonalBlock<Components, 2>());
    if constexpr (Components >= 2)
        if (features == 4)
            return use(DiagonalBlock<Components, 4>());
    return features == 6 ? use(DiagonalBlock<Components, 6>()) : use(DiagonalBlock<Components, 8>());
}
template <typename Use>
auto with_block(const DiagonalShape &shape, Use &&use)
{
    if (shape.components == 1)
        return with_features<1>(shape.features, use);
    return shape.components == 2 ? with_features<2>(shape.features, use) : with_features<4>(shape.features, use);
}

template <typename T, int Components, int Features>
void launch_tiled(const Launch<T> &launch, unsigned n_items, DiagonalBlock<Components, Features>, cudaStream_t stream)
{
    using Block = DiagonalBlock<Components, Features>;
    const auto kernel = tiled_diagonal_kernel<T, Components, Features>;
    checked("cudaFuncSetAttribute", [&] { return allow_shared_memory(kernel, Block::bytes); });
    kernel<<<n_items, Block::threads, Block::bytes, stream>>>(launch);
    launched("tiled_diagonal_kernel");
}

} // namespace

DiagonalShape::DiagonalShape(std::int64_t k, std::int64_t d)
    : components(k <= 16   ? 1
                 : k <= 32 ? 2
                           : 4),
      features(static_cast<int>((d + 7) / 8)), tiled(components == 4 || components * features > 4)
{
    if (tiled)
        features = (features + 1) / 2 * 2; // two warps share them
}

std::int64_t DiagonalShape::shared_bytes() const
{
    return tiled ? with_block(*this, [](auto block) { return block.bytes; }) : 0;
}

int DiagonalShape::blocks() const
{
    return tiled ? with_block(*this, [](auto block) { return block.per_multiprocessor; }) : warp_blocks();
}

template <typename T>
void tiled_diagonal(const Launch<T> &launch, unsigned n_items, const DiagonalShape &shape, cudaStream_t stream)
{
    with_block(shape, [&](auto block) { launch_tiled(launch, n_items, block, stream); });
}

template void tiled_diagonal<float>(const Launch<float> &, unsigned, const DiagonalShape &, cudaStream_t);
template void tiled_diagonal<double>(const Launch<double> &, unsigned, const DiagonalShape &, cudaStream_t);

} // namespace pgkm::cuda::mixture
