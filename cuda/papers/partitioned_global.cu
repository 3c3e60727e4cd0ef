// partitioned_global.cu - every block has masses of its own in global memory, added together
// by a second kernel (Lutz et al. 2018, "partitioned global").
// To use: k too large for shared memory, yet rows meet often enough to contend.
#include "fit/copies.hpp"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void own_copy_kernel(View<T> view, const Control *control, const std::int32_t *labels, Copies copies)
{
    if (stopped(control))
        return;
    std::int64_t *own = own_copy(copies);
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const Split limbs = mass_limbs(view, row, view.part);
        std::int64_t *cell = own + 2 * std::int64_t{labels[row]};
        add64(cell, limbs.hi);
        add64(cell + 1, limbs.lo);
    }
}

} // namespace

template <typename T>
void sum_masses_partitioned_global(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                                   std::int64_t *masses)
{
    const int blocks = blocks_for(view.n, 256, 512);
    const Copies copies = make_copies(stage.context, std::int64_t{view.k} * 2, blocks, std::int64_t{64} << 20, stage.stream);
    if (copies.count == 0)
        return sum_masses_global_atomic(stage, view, labels, masses);
    own_copy_kernel<<<blocks, 256, 0, stage.stream>>>(view, stage.control, labels, copies);
    launched("own_copy_kernel");
    merge_copies(copies, masses, stage.control, stage.stream);
}

template void sum_masses_partitioned_global<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                                   std::int64_t *);
template void sum_masses_partitioned_global<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                                    std::int64_t *);

} // namespace pgkm::cuda
