// atomic.cu - feature sums by global atomics: one thread per value (O'Leary 2021, basic CUDA).
//
// To use: many clusters and many features, where no copy of the sums fits shared memory and
// additions rarely meet.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void atomic_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *totals)
{
    if (stopped(control))
        return;
    const std::int64_t values = view.n * view.d;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < values; i += stride) {
        const std::int64_t row = i / view.d;
        const int feature = static_cast<int>(i - row * view.d);
        const Split limbs = feature_limbs(view, row, feature, view.part);
        std::int64_t *cell = totals + (std::int64_t{labels[row]} * view.d + feature) * 2;
        add64(cell, limbs.hi);
        add64(cell + 1, limbs.lo);
    }
}

} // namespace

template <typename T>
void sum_features_atomic(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const int blocks = blocks_for(view.n * view.d, 256, stage.context.facts.multiprocessors * 32);
    atomic_kernel<<<blocks, 256, 0, stage.stream>>>(view, stage.control, labels, totals);
    launched("feature_sum atomic_kernel");
}

template void sum_features_atomic<float>(const Stage<float> &, const View<float> &, const std::int32_t *, std::int64_t *);
template void sum_features_atomic<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                          std::int64_t *);

} // namespace pgkm::cuda
