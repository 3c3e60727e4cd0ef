// heavy_tails.cu - whether the box of some rows says where they lie, from a sample of them.
#include "order/heavy_tails.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int sample_threads = 256;
constexpr int samples = 128;

// Rows first, first + step, ... of n, side by side.
__global__ void __launch_bounds__(sample_threads)
    sample_kernel(const float *values, std::int64_t step, int d, std::int64_t count, float *to)
{
    const std::int64_t total = count * d, stride = std::int64_t{gridDim.x} * sample_threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * sample_threads + threadIdx.x; i < total; i += stride)
        to[i] = values[i / d * step * d + i % d];
}

std::vector<float> sample_rows(Context &context, const float *values, std::int64_t n, int d)
{
    const std::int64_t count = std::min<std::int64_t>(samples, n);
    const DeviceArray<float> sampled(context.budget, static_cast<std::size_t>(count) * static_cast<std::size_t>(d));
    const cudaStream_t stream = context.compute.get();
    const int blocks = blocks_for(count * d, sample_threads, context.facts.multiprocessors * 2);
    sample_kernel<<<blocks, sample_threads, 0, stream>>>(values, n / count, d, count, sampled.get());
    launched("sample_kernel");
    return context.fetch(sampled);
}

} // namespace

bool has_heavy_tails(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    const std::vector<float> rows = sample_rows(context, values, n, d);
    const std::size_t width = box.min.size();
    const double count = static_cast<double>(rows.size() / width);
    double range = 0.0, spread = 0.0;
    for (std::size_t f = 0; f < width; ++f) {
        double mean = 0.0, deviation = 0.0;
        for (std::size_t i = f; i < rows.size(); i += width)
            mean += static_cast<double>(rows[i]) / count;
        for (std::size_t i = f; i < rows.size(); i += width)
            deviation += std::abs(static_cast<double>(rows[i]) - mean) / count;
        range = std::hypot(range, box.max[f] - box.min[f]);
        spread = std::hypot(spread, deviation);
    }
    return !(range <= 64.0 * spread); // uniform rows: 4, normal ones: 13
}

} // namespace pgkm::cuda
