// fused_full.cu (mixture) - full covariances: the shapes that have a kernel of their own, tiles of 16 components by
// tiles of 8 features.
#include "mixture/full_tile.cuh"
#include "mixture/fused_kernel.cuh"

namespace pgkm::cuda::mixture {
namespace {

using All =
    Blocks<FullBlock<1, 1>, FullBlock<1, 2>, FullBlock<1, 3>, FullBlock<1, 4>, FullBlock<2, 1>, FullBlock<2, 2>>;

} // namespace

BlockNeeds full_needs(const FusedShape &shape, int k)
{
    return All::needs(shape, k);
}

template <typename T>
void fused_full(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream)
{
    All::enqueue(launch, n_items, shape, k, stream);
}

template void fused_full<float>(const Launch<float> &, unsigned, const FusedShape &, int, cudaStream_t);
template void fused_full<double>(const Launch<double> &, unsigned, const FusedShape &, int, cudaStream_t);

} // namespace pgkm::cuda::mixture
