// partitioned_global.cu - every block has masses of its own in global memory, added together
// by a second kernel (Lutz et al. 2018, "partitioned global").
// To use: k too large for shared memory, yet rows meet often enough to contend.
#include "papers/copies.cuh"

namespace pgkm::cuda {
namespace {

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *masses)
{
    const int blocks = blocks_for(view.n, 256, 512);
    const Copies copies =
        make_copies(stage.context, std::int64_t{view.k} * 2, blocks, std::int64_t{64} << 20, stage.stream);
    if (copies.count == 0)
        return sum_masses_global_atomic(stage, view, labels, masses);
    enqueue(copy_kernel<Masses, T>, blocks, 256, 0, stage.stream, view, stage.control, labels, copies);
    merge_copies(copies, masses, stage.control, stage.stream);
}

} // namespace

const Both<Sum> sum_masses_partitioned_global = {sum<float>, sum<double>};

} // namespace pgkm::cuda
