// divide_and_conquer.cu - partial sums of row groups, then halves of the groups added to
// each other until one is left (Li, Zhao, Chu, Liu 2010, Algorithm 6).
//
// Each group is one block with its own copy of the sums in global memory, so that even the
// first level needs no atomics across blocks. To use: mid-sized k x d, where copies fit the
// device and contention on one global copy hurts.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void group_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *copies)
{
    if (stopped(control))
        return;
    std::int64_t *own = copies + std::int64_t{blockIdx.x} * view.k * view.d * 2;
    const std::int64_t share = (view.n + gridDim.x - 1) / gridDim.x;
    const std::int64_t first = blockIdx.x * share, last = min(first + share, view.n);
    for (std::int64_t i = first * view.d + threadIdx.x; i < last * view.d; i += blockDim.x) {
        const std::int64_t row = i / view.d;
        const int feature = static_cast<int>(i - row * view.d);
        const Split limbs = feature_limbs(view, row, feature, view.part);
        std::int64_t *cell = own + (std::int64_t{labels[row]} * view.d + feature) * 2;
        add64(cell, limbs.hi);
        add64(cell + 1, limbs.lo);
    }
}

// copies[i] += copies[i + half], for the first `half` copies of `cells` each.
__global__ void halve_kernel(const Control *control, std::int64_t *copies, std::int64_t cells, int half)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < cells * half; i += stride)
        copies[i] += copies[i + cells * half];
}

__global__ void add_kernel(const Control *control, const std::int64_t *copy, std::int64_t cells, std::int64_t *totals)
{
    if (stopped(control))
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < cells)
        totals[i] += copy[i];
}

} // namespace

template <typename T>
void sum_features_divide_and_conquer(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                                     std::int64_t *totals)
{
    const std::int64_t cells = std::int64_t{view.k} * view.d * 2;
    const auto room = static_cast<std::int64_t>(std::min(stage.context.scratch_room(), std::uint64_t{256} << 20));
    if (cells * 8 > room)
        return sum_features_atomic(stage, view, labels, totals); // not one copy within the device's limit
    int groups = 1; // a power of two
    while (groups < 256 && std::int64_t{groups} * 512 < view.n && cells * groups * 2 * 8 <= room)
        groups *= 2;
    std::int64_t *copies = stage.context.scratch(static_cast<std::size_t>(cells) * static_cast<std::size_t>(groups) * 8);
    checked("cudaMemsetAsync", [&] {
        return cudaMemsetAsync(copies, 0, static_cast<std::size_t>(cells) * static_cast<std::size_t>(groups) * 8, stage.stream);
    });
    group_kernel<<<groups, 512, 0, stage.stream>>>(view, stage.control, labels, copies);
    launched("group_kernel");
    for (int half = groups / 2; half >= 1; half /= 2) {
        const int blocks = blocks_for(cells * half, 256, stage.context.facts.multiprocessors * 8);
        halve_kernel<<<blocks, 256, 0, stage.stream>>>(stage.control, copies, cells, half);
        launched("halve_kernel");
    }
    add_kernel<<<static_cast<unsigned>((cells + 255) / 256), 256, 0, stage.stream>>>(stage.control, copies, cells, totals);
    launched("add_kernel");
}

template void sum_features_divide_and_conquer<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                                     std::int64_t *);
template void sum_features_divide_and_conquer<double>(const Stage<double> &, const View<double> &,
                                                      const std::int32_t *, std::int64_t *);

} // namespace pgkm::cuda
