// fused_full.cu - full covariances in one kernel: blocks that hold tiles of rows in shared memory.
#include "mixture/full_tile.cuh"
#include "mixture/fused.hpp"

namespace pgkm::cuda::mixture {
namespace {

template <typename T, int Components, int Features>
__global__ void __launch_bounds__(FullBlock<Components, Features>::threads, 16 / FullBlock<Components, Features>::warps)
    fused_full_kernel(Launch<T> launch)
{
    extern __shared__ double2 memory[];
    if (stopped(launch))
        return;
    const Item item = launch.items[blockIdx.x];
    FullTile<T, Components, Features> tile(launch, item, launch.mixtures[item.problem],
                                           reinterpret_cast<double *>(memory));
    tile.run();
    tile.store(item.slot);
}

template <typename T, int Components, int Features>
void launch_full(const Launch<T> &launch, unsigned n_items, int k, cudaStream_t stream)
{
    using Shape = FullBlock<Components, Features>;
    const auto kernel = fused_full_kernel<T, Components, Features>;
    const int bytes = 8 * (Shape::coefficient_offset + (k + 3) / 4 * 4 * (Shape::fragments * 64 + Shape::features + 1));
    checked("cudaFuncSetAttribute",
            [&] { return allow_shared_memory(kernel, bytes); });
    kernel<<<n_items, Shape::threads, static_cast<unsigned>(bytes), stream>>>(launch);
    launched("fused_full_kernel");
}

} // namespace

std::int64_t FullShape::shared_bytes(std::int64_t k) const
{
    const std::int64_t rows = 64 * features, width = 8 * features;
    return 8 * (rows * conflict_free(static_cast<int>(width)) +
                16 * components * conflict_free(static_cast<int>(rows)) + coefficient_count(k));
}

template <typename T>
void fused_full(const Launch<T> &launch, unsigned n_items, int k, cudaStream_t stream)
{
    const FullShape shape(k, launch.d);
    if (shape.components == 2)
        return shape.features == 1 ? launch_full<T, 2, 1>(launch, n_items, k, stream)
                                   : launch_full<T, 2, 2>(launch, n_items, k, stream);
    switch (shape.features) {
    case 1:
        return launch_full<T, 1, 1>(launch, n_items, k, stream);
    case 2:
        return launch_full<T, 1, 2>(launch, n_items, k, stream);
    case 3:
        return launch_full<T, 1, 3>(launch, n_items, k, stream);
    default:
        return launch_full<T, 1, 4>(launch, n_items, k, stream);
    }
}

template void fused_full<float>(const Launch<float> &, unsigned, int, cudaStream_t);
template void fused_full<double>(const Launch<double> &, unsigned, int, cudaStream_t);

} // namespace pgkm::cuda::mixture
