// generic.cu - assignment for any d, k and element type, without a filter.
//
// d is walked and eight partial distances are kept per thread, so that each value of the row
// is read once for eight centroids (Aggarwal 2013, section 4.2). Everything is float64 and in
// the contract's order: the label needs no settling. To use: float64 data, and shapes that no
// filter kernel takes.
#include "device/exact.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void generic_kernel(View<T> view, const Control *control, std::int32_t *labels)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride)
        labels[row] = nearest_by_thread(view.values + row * view.d, view.centroids, view.k, view.d).label;
}

} // namespace

template <typename T>
void assign_generic(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    in_exact_launches(stage, view, 1e12, [&](std::int64_t first, std::int64_t rows) {
        const View<T> part = slice(view, first, rows);
        const int blocks = blocks_for(rows, 128, stage.context.facts.multiprocessors * 16);
        generic_kernel<<<blocks, 128, 0, stage.stream>>>(part, stage.control, labels + first);
        launched("generic_kernel");
    });
}

template void assign_generic<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_generic<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
