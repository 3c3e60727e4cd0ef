// register.cu - assignment of float64 rows with the point in registers (Aggarwal 2013,
// section 4.1; Li et al. 2010, Algorithm 3). float32 rows: fused/register.cu, labels alone.
//
// Without a filter: the contract's own float64 distance at half the rate of float32 costs less
// than settling would. To use: d <= 16; other d are walked by the generic kernel.
#include "../choose.hpp"
#include "../exact.cuh"
#include "../stages.hpp"

namespace pgkm::cuda {
namespace {

template <int D>
__global__ void __launch_bounds__(256) point_kernel(View<double> view, const Control *control, std::int32_t *labels)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        double x[D];
#pragma unroll
        for (int f = 0; f < D; ++f)
            x[f] = f < view.d ? view.values[row * view.d + f] : 0.0;
        Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
        for (int j = 0; j < view.k; ++j) {
            const double *c = view.centroids + std::int64_t{j} * view.d;
            double sum = 0.0;
#pragma unroll
            for (int f = 0; f < D; ++f)
                if (f < view.d) {
                    const double difference = x[f] - c[f];
                    sum = ::fma(difference, difference, sum);
                }
            if (sum < best.distance)
                best = {sum, j};
        }
        labels[row] = best.label;
    }
}

template <int D>
void launch(const Stage<double> &stage, const View<double> &view, std::int32_t *labels)
{
    in_launches(view, 1e12, [&](std::int64_t first, std::int64_t rows) {
        const int blocks = blocks_for(rows, 256, stage.context.facts.multiprocessors * 8);
        point_kernel<D><<<blocks, 256, 0, stage.stream>>>(slice(view, first, rows), stage.control, labels + first);
        launched("point_kernel");
    });
}

} // namespace

template <>
void assign_register<double>(const Stage<double> &stage, const View<double> &view, std::int32_t *labels)
{
    switch (register_size(view.d)) {
    case 1: return launch<1>(stage, view, labels);
    case 2: return launch<2>(stage, view, labels);
    case 3:
    case 4: return launch<4>(stage, view, labels);
    case 6:
    case 8: return launch<8>(stage, view, labels);
    case 12:
    case 16: return launch<16>(stage, view, labels);
    default: return assign_generic(stage, view, labels);
    }
}

} // namespace pgkm::cuda
