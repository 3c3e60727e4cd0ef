// fused_diagonal.cu (mixture) - diag and spherical covariances: the shapes that have a kernel of their own, tiles of
// 16 components by tiles of 8 features.
#include "mixture/diagonal_tile.cuh"
#include "mixture/diagonal_warp.cuh"
#include "mixture/fused_kernel.cuh"

namespace pgkm::cuda::mixture {
namespace {

using All =
    Blocks<WarpBlock<1, 1>, WarpBlock<1, 2>, WarpBlock<1, 3>, WarpBlock<1, 4>, WarpBlock<2, 1>, WarpBlock<2, 2>,
           DiagonalBlock<1, 6>, DiagonalBlock<1, 8>, DiagonalBlock<2, 4>, DiagonalBlock<2, 6>, DiagonalBlock<2, 8>,
           DiagonalBlock<4, 2>, DiagonalBlock<4, 4>, DiagonalBlock<4, 6>, DiagonalBlock<4, 8>>;

} // namespace

BlockNeeds diagonal_needs(const FusedShape &shape, int k)
{
    return All::needs(shape, k);
}

template <typename T>
void fused_diagonal(const Launch<T> &launch, unsigned n_items, const FusedShape &shape, int k, cudaStream_t stream)
{
    All::enqueue(launch, n_items, shape, k, stream);
}

template void fused_diagonal<float>(const Launch<float> &, unsigned, const FusedShape &, int, cudaStream_t);
template void fused_diagonal<double>(const Launch<double> &, unsigned, const FusedShape &, int, cudaStream_t);

} // namespace pgkm::cuda::mixture
