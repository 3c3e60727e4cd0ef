// register_constant.cu - assignment with the point in registers and the centroids in constant memory,
// where one read serves all threads of a warp (Aggarwal 2013, section 4.1).
//
// Centroids that do not fit at once come in batches; a later batch starts from the label of those
// before it, whose distance is computed again. To use: d <= 16, k x d small.
#include "papers/constant.hpp"
#include "papers/point.cuh"

namespace pgkm::cuda {
namespace {

__constant__ double constant_room[constant_bytes / sizeof(double)];

template <int D, typename T>
__global__ void __launch_bounds__(256) register_constant_kernel(View<T> view, const Control *control, std::int32_t *labels,
                                                                int first, int count)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const Point<D> point = load_point<D>(view, row);
        Nearest best = none_yet();
        if (first > 0) {
            best.label = labels[row];
            best.distance = distance_to(point, view.centroids + std::int64_t{best.label} * view.d, view.d);
        }
        for (int j = 0; j < count; j += constant_group) {
            double partial[constant_group] = {};
#pragma unroll
            for (int f = 0; f < D; ++f)
                if (f < view.d)
#pragma unroll
                    for (int b = 0; b < constant_group; ++b) {
                        const double difference = point.x[f] - constant_room[(j * view.d) + f * constant_group + b];
                        partial[b] = ::fma(difference, difference, partial[b]);
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
void assign_register_constant(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    if (!stage.constant)
        return assign_register_global(stage, view, labels);
    const bool fits = with_register_size(view.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        in_constant_batches(stage, view, constant_room, [&](int first, int count) {
            View<T> batch = view;
            batch.k = count;
            in_exact_launches(stage, batch, 1e12, [&](std::int64_t from, std::int64_t rows) {
                const int blocks = blocks_for(rows, 256, stage.context.facts.multiprocessors * 8);
                register_constant_kernel<D><<<blocks, 256, 0, stage.stream>>>(slice(view, from, rows), stage.control,
                                                                                 labels + from, first, count);
                launched("register_constant_kernel");
            });
        });
    });
    if (!fits)
        assign_generic(stage, view, labels);
}

template void assign_register_constant<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_register_constant<double>(const Stage<double> &, const View<double> &, std::int32_t *);

} // namespace pgkm::cuda
