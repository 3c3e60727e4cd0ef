// generic_constant.cu - assignment for any d: features are walked, partial distances kept per
// thread, and the centroids come in batches through constant memory (Aggarwal 2013, section 4.2).
//
// A thread keeps eight partial distances in registers, so that it reads each value of its row
// once for eight centroids. A later batch starts from the label of those before it, whose
// distance is computed again. To use: d > 16 on devices or data that no filter kernel takes.
#include "device/exact.cuh"
#include "papers/constant.hpp"

namespace pgkm::cuda {

namespace {

__constant__ double constant_room[constant_bytes / sizeof(double)];

template <typename T>
__global__ void __launch_bounds__(128) generic_constant_kernel(View<T> view, const Control *control, std::int32_t *labels,
                                                               int first, int count)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const T *x = view.values + row * view.d;
        Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
        if (first > 0) {
            best.label = labels[row];
            best.distance = exact_distance(x, view.centroids + std::int64_t{best.label} * view.d, view.d);
        }
        for (int j = 0; j < count; j += constant_group) {
            double partial[constant_group] = {};
            for (int f = 0; f < view.d; ++f) {
                const double value = static_cast<double>(x[f]);
#pragma unroll
                for (int b = 0; b < constant_group; ++b) {
                    const double difference = value - constant_room[j * view.d + f * constant_group + b];
                    partial[b] = ::fma(difference, difference, partial[b]);
                }
            }
#pragma unroll
            for (int b = 0; b < constant_group; ++b)
                if (partial[b] < best.distance)
                    best = {partial[b], first + j + b};
        }
        labels[row] = best.label;
    }
}

} // namespace

template <typename T>
void assign_generic_constant(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (!stage.constant || constant_batch(view.d) < 1)
        return assign_generic(stage, view, labels);
    in_constant_batches(stage, view, constant_room, [&](int first, int count) {
        View<T> batch = view;
        batch.k = count;
        in_exact_launches(stage, batch, 1e12, [&](std::int64_t from, std::int64_t rows) {
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
