// generic_constant.cu - assignment for any d: features are walked, partial distances kept per
// thread, and the centroids come in batches through constant memory (Aggarwal 2013, section 4.2).
//
// A thread keeps eight partial distances in registers, so that it reads each value of its row
// once for eight centroids. A later batch starts from the label of those before it, whose
// distance is computed again. To use: d > 16 on devices or data that no filter kernel takes.
#include "../exact.cuh"
#include "constant.hpp"

namespace pgkm::cuda {

std::atomic<bool> &ConstantLease::taken()
{
    static std::atomic<bool> flag{false};
    return flag;
}

namespace {

__constant__ double constant_room[constant_bytes / sizeof(double)];

template <typename T>
__global__ void __launch_bounds__(128) generic_constant_kernel(View<T> view, const Control *control, std::int32_t *labels,
                                                               int first, int count)
{
    if (stopped(control))
        return;
    const T *centroids = reinterpret_cast<const T *>(constant_room);
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const T *x = view.values + row * view.d;
        Nearest best = nearest_by_thread(x, centroids, count, view.d);
        best.label += first;
        if (first > 0) {
            const std::int32_t label = labels[row];
            const Nearest earlier = {exact_distance(x, view.centroids + std::int64_t{label} * view.d, view.d), label};
            if (!(best.distance < earlier.distance)) // a tie stays with the lower index
                best = earlier;
        }
        labels[row] = best.label;
    }
}

} // namespace

template <typename T>
void assign_generic_constant(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (!stage.constant || constant_batch<T>(view.d) < 1)
        return assign_generic(stage, view, labels);
    in_constant_batches(stage, view, constant_room, [&](int first, int count) {
        View<T> batch = view;
        batch.k = count;
        in_launches(batch, 1e12, [&](std::int64_t from, std::int64_t rows) {
            const int blocks = blocks_for(rows, 128, stage.context.facts.multiprocessors * 16);
            generic_constant_kernel<<<blocks, 128, 0, stage.stream>>>(slice(view, from, rows), stage.control, labels + from,
                                                                     first, count);
            launched("generic_constant_kernel");
        });
    });
}

template void assign_generic_constant<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_generic_constant<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
