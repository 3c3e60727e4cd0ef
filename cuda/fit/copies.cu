#include "fit/copies.hpp"

#include <algorithm>

namespace pgkm::cuda {
namespace {

__global__ void merge_kernel(Copies copies, const Control *control, std::int64_t *sums)
{
    if (stopped(control))
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= copies.n_cells)
        return;
    std::int64_t sum = 0;
    for (int c = 0; c < copies.count; ++c)
        sum += copies.cells[c * copies.n_cells + i];
    sums[i] += sum;
}

} // namespace

Copies make_copies(Context &context, std::int64_t n_cells, int wanted, std::int64_t most_bytes, cudaStream_t stream)
{
    const auto room = static_cast<std::int64_t>(std::min(context.scratch_room(), static_cast<std::uint64_t>(most_bytes)));
    Copies copies = {nullptr, static_cast<int>(std::min<std::int64_t>(room / (n_cells * 8), wanted)), n_cells};
    if (copies.count == 0)
        return copies;
    const std::size_t bytes = static_cast<std::size_t>(n_cells) * static_cast<std::size_t>(copies.count) * 8;
    copies.cells = context.scratch(bytes);
    checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(copies.cells, 0, bytes, stream); });
    return copies;
}

void merge_copies(const Copies &copies, std::int64_t *sums, const Control *control, cudaStream_t stream)
{
    const auto blocks = static_cast<unsigned>((copies.n_cells + 255) / 256);
    merge_kernel<<<blocks, 256, 0, stream>>>(copies, control, sums);
    launched("merge_kernel");
}

} // namespace pgkm::cuda
