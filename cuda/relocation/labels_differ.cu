// labels_differ.cu - finds out whether any row would get another label under other centroids.
//
// A row a thread, by the contract's distance. Threads share one answer in global memory and stop once it is yes.
#include "relocation/labels_differ.hpp"

#include "device/exact.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 128;

// A label that another centroid set would change is most often among the first rows: all threads look at the
// answer before each row, and the first wave of them finds it.
template <typename T>
__global__ void __launch_bounds__(threads)
    differ_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int32_t *differ)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < view.n; row += stride) {
        if (*static_cast<volatile std::int32_t *>(differ) != 0)
            return;
        if (nearest_by_thread(view.values + row * view.d, view.centroids, view.k, view.d).label != labels[row])
            *static_cast<volatile std::int32_t *>(differ) = 1;
    }
}

} // namespace

template <typename T>
void labels_differ(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int32_t *differ)
{
    in_exact_launches(stage, view, 1e12, [&](std::int64_t first, std::int64_t rows) {
        const int blocks = blocks_for(rows, threads, stage.context.facts.multiprocessors * 16);
        differ_kernel<<<blocks, threads, 0, stage.stream>>>(slice(view, first, rows), stage.control, labels + first,
                                                            differ);
        launched("differ_kernel");
    });
}

template void labels_differ<float>(const Stage<float> &, const View<float> &, const std::int32_t *, std::int32_t *);
template void labels_differ<double>(const Stage<double> &, const View<double> &, const std::int32_t *, std::int32_t *);

} // namespace pgkm::cuda
