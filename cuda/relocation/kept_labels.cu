// kept_labels.cu - copies labels from where iterations keep them, one or two bytes each, by row or by place in the
// pivots' order. A label a thread.
#include "relocation/kept_labels.hpp"

#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

__global__ void __launch_bounds__(threads) spread_kernel(KeptLabels kept, const std::int32_t *order, std::int64_t n,
                                                         std::int64_t first, std::int64_t rows, std::int32_t *labels)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t place = std::int64_t{blockIdx.x} * threads + threadIdx.x; place < n; place += stride) {
        const std::int64_t row = (order != nullptr ? order[place] : place) - first;
        if (row >= 0 && row < rows)
            labels[row] = kept.get(place);
    }
}

} // namespace

void spread_labels(const Context &context, KeptLabels kept, const std::int32_t *order, std::int64_t n,
                   std::int64_t first, std::int64_t rows, std::int32_t *labels)
{
    spread_kernel<<<blocks_for(n, threads, context.facts.multiprocessors * 8), threads, 0, context.compute.get()>>>(
        kept, order, n, first, rows, labels);
    launched("spread_kernel");
}

} // namespace pgkm::cuda
