// partitioned_global.cu - every block has masses of its own in global memory, added together
// by a second kernel (Lutz et al. 2018, "partitioned global").
// To use: k too large for shared memory, yet rows meet often enough to contend.
#include "../stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void own_copy_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *copies)
{
    if (stopped(control))
        return;
    std::int64_t *own = copies + std::int64_t{blockIdx.x} * view.k * 2;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const Split limbs = mass_limbs(view, row);
        add64(own + 2 * labels[row], limbs.hi);
        add64(own + 2 * labels[row] + 1, limbs.lo);
    }
}

__global__ void merge_kernel(const Control *control, const std::int64_t *copies, int n_copies, std::int64_t cells,
                             std::int64_t *masses)
{
    if (stopped(control))
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i >= cells)
        return;
    std::int64_t sum = 0;
    for (int c = 0; c < n_copies; ++c)
        sum += copies[c * cells + i];
    masses[i] += sum;
}

} // namespace

template <typename T>
void sum_masses_partitioned_global(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                                   std::int64_t *masses)
{
    const std::int64_t cells = std::int64_t{view.k} * 2;
    const auto room = static_cast<std::int64_t>(std::min(stage.context.scratch_room(), std::uint64_t{64} << 20));
    if (cells * 8 > room)
        return sum_masses_global_atomic(stage, view, labels, masses); // not one copy within the device's limit
    const int most = static_cast<int>(std::min<std::int64_t>(room / (cells * 8), 512));
    const int copies = blocks_for(view.n, 256, most);
    const std::size_t bytes = static_cast<std::size_t>(cells) * static_cast<std::size_t>(copies) * 8;
    std::int64_t *scratch = stage.context.scratch(bytes);
    checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(scratch, 0, bytes, stage.stream); });
    own_copy_kernel<<<copies, 256, 0, stage.stream>>>(view, stage.control, labels, scratch);
    launched("own_copy_kernel");
    merge_kernel<<<static_cast<unsigned>((cells + 255) / 256), 256, 0, stage.stream>>>(stage.control, scratch, copies,
                                                                                      cells, masses);
    launched("merge_kernel");
}

template void sum_masses_partitioned_global<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                                   std::int64_t *);
template void sum_masses_partitioned_global<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                                    std::int64_t *);

} // namespace pgkm::cuda
