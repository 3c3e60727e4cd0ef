// register_global.cu - assignment with the point in registers and the centroids in global memory
// (Li, Zhao, Chu, Liu 2010, Algorithm 3). To use: d <= 16, and so many centroids that they leave
// shared and constant memory; the caches broadcast what all threads of a warp read.
#include "plan/stages.hpp"
#include "papers/point.cuh"

namespace pgkm::cuda {
namespace {

template <int D, typename T>
__global__ void __launch_bounds__(256) register_global_kernel(View<T> view, const Control *control, std::int32_t *labels)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride)
        labels[row] = nearer(load_point<D>(view, row), view.centroids, view.k, view.d, 0, none_yet()).label;
}

} // namespace

template <typename T>
void assign_register_global(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    const bool fits = with_register_size(view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        in_exact_launches(stage, view, 1e12, [&](std::int64_t first, std::int64_t rows) {
            const int blocks = blocks_for(rows, 256, stage.context.facts.multiprocessors * 8);
            register_global_kernel<D><<<blocks, 256, 0, stage.stream>>>(slice(view, first, rows), stage.control,
                                                                           labels + first);
            launched("register_global_kernel");
        });
    });
    if (!fits)
        assign_generic(stage, view, labels);
}

template void assign_register_global<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_register_global<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
