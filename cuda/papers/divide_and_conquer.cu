// divide_and_conquer.cu - partial sums of parts of the rows, then one half of the partial sums added to
// the other until one is left (Li, Zhao, Chu, Liu 2010, Algorithm 6).
//
// Each part is one block with its own copy of the sums in global memory, so that even the
// first level needs no atomics across blocks. To use: mid-sized k x d, where copies fit the
// device and contention on one global copy hurts.
#include "papers/copies.cuh"

namespace pgkm::cuda {
namespace {

// copies[i] += copies[i + half], for the first `half` copies.
__global__ void halve_kernel(const Control *control, Copies copies, int half)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x, n_added = copies.n_sums * half;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n_added; i += stride)
        copies.sums[i] += copies.sums[i + n_added];
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const int wanted = blocks_for(view.n, 512, 256);
    Copies copies =
        make_copies(stage.context, std::int64_t{view.k} * view.d * 2, wanted, std::int64_t{256} << 20, stage.stream);
    if (copies.count == 0) // not one copy within the device's limit
        return sum_features_atomic(stage, view, labels, totals);
    while ((copies.count & (copies.count - 1)) != 0) // a power of two
        copies.count &= copies.count - 1;
    copy_kernel<Features><<<copies.count, 512, 0, stage.stream>>>(view, stage.control, labels, copies);
    launched("copy_kernel");
    for (int half = copies.count / 2; half >= 1; half /= 2) {
        const int blocks = blocks_for(copies.n_sums * half, 256, stage.context.facts.multiprocessors * 8);
        halve_kernel<<<blocks, 256, 0, stage.stream>>>(stage.control, copies, half);
        launched("halve_kernel");
    }
    copies.count = 1;
    merge_copies(copies, totals, stage.control, stage.stream);
}

} // namespace

const Both<Sum> sum_features_divide_and_conquer = {sum<float>, sum<double>};

} // namespace pgkm::cuda
