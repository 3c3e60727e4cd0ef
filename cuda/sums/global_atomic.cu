// global_atomic.cu - masses by one global atomic per row (Lutz et al. 2018).
// To use: many clusters, where rows rarely meet in one.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void global_atomic_kernel(View<T> view, const Control *control, const std::int32_t *labels,
                                     std::int64_t *masses)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const Split limbs = mass_limbs(view, row, view.part);
        std::int64_t *cell = masses + 2 * std::int64_t{labels[row]};
        if (limbs.hi != 0)
            add64(cell, limbs.hi);
        add64(cell + 1, limbs.lo);
    }
}

} // namespace

template <typename T>
void sum_masses_global_atomic(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                              std::int64_t *masses)
{
    const int blocks = blocks_for(view.n, 256, stage.context.facts.multiprocessors * 16);
    global_atomic_kernel<<<blocks, 256, 0, stage.stream>>>(view, stage.control, labels, masses);
    launched("global_atomic_kernel");
}

template void sum_masses_global_atomic<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                              std::int64_t *);
template void sum_masses_global_atomic<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                               std::int64_t *);

} // namespace pgkm::cuda
