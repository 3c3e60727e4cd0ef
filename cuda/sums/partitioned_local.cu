// partitioned_local.cu - every block has masses of its own in shared memory
// (Lutz et al. 2018, "partitioned local"). To use: k up to some thousands.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int rows_per_round = 504; // fewer than limb_additions, so that 32-bit cells cannot overflow

template <typename T>
__global__ void shared_copy_kernel(View<T> view, const Control *control, const std::int32_t *labels,
                                   std::int64_t *masses)
{
    if (block_stopped(control))
        return;
    extern __shared__ std::int32_t cells[]; // k x 2
    for (int i = threadIdx.x; i < 2 * view.k; i += blockDim.x)
        cells[i] = 0;
    __syncthreads();
    // Row counts cannot overflow: only weights need the rounds, else one per block will do.
    const std::int64_t round = view.weights == nullptr ? (view.n + gridDim.x - 1) / gridDim.x : rows_per_round;
    for (std::int64_t start = blockIdx.x * round; start < view.n; start += gridDim.x * round) {
        const std::int64_t last = min(start + round, view.n);
        for (std::int64_t row = start + threadIdx.x; row < last; row += blockDim.x) {
            const Split limbs = mass_limbs(view, row, view.part);
            if (limbs.hi != 0)
                atomicAdd(cells + 2 * labels[row], limbs.hi);
            atomicAdd(cells + 2 * labels[row] + 1, limbs.lo);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 2 * view.k; i += blockDim.x) {
            if (cells[i] != 0)
                add64(masses + i, cells[i]);
            cells[i] = 0;
        }
        __syncthreads();
    }
}

} // namespace

template <typename T>
void sum_masses_partitioned_local(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                                  std::int64_t *masses)
{
    const std::int64_t bytes = std::int64_t{view.k} * 8;
    if (bytes > stage.context.facts.shared_bytes_per_block) {
        sum_masses_global_atomic(stage, view, labels, masses);
        return;
    }
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(shared_copy_kernel<T>, static_cast<int>(bytes));
    });
    const int blocks = blocks_for(view.n, 504, stage.context.facts.multiprocessors * 8);
    shared_copy_kernel<<<blocks, 256, static_cast<std::size_t>(bytes), stage.stream>>>(view, stage.control, labels, masses);
    launched("shared_copy_kernel");
}

template void sum_masses_partitioned_local<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                                  std::int64_t *);
template void sum_masses_partitioned_local<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                                   std::int64_t *);

} // namespace pgkm::cuda
