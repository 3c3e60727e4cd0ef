// partitioned_register.cu - every thread has masses of its own, as in Lutz et al. 2018, "partitioned private"
// (thread_tables.cu), but in registers.
//
// Registers must be indexed by constants: a thread compares each label with sixteen clusters,
// and larger k takes one grid row per sixteen. To use: k of a few.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int window = 16;

template <typename T>
__global__ void private_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *masses)
{
    if (stopped(control))
        return;
    const int first = static_cast<int>(blockIdx.y) * window;
    std::int64_t hi[window] = {}, lo[window] = {};
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const int label = labels[row] - first;
        const Split limbs = mass_limbs(view, row, view.part);
#pragma unroll
        for (int j = 0; j < window; ++j) {
            hi[j] += label == j ? limbs.hi : 0;
            lo[j] += label == j ? limbs.lo : 0;
        }
    }
#pragma unroll
    for (int j = 0; j < window; ++j) {
        for (int offset = 16; offset > 0; offset >>= 1) {
            hi[j] += __shfl_xor_sync(~0u, hi[j], offset);
            lo[j] += __shfl_xor_sync(~0u, lo[j], offset);
        }
        if ((threadIdx.x & 31) == 0 && first + j < view.k) {
            add64(masses + 2 * (first + j), hi[j]);
            add64(masses + 2 * (first + j) + 1, lo[j]);
        }
    }
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *masses)
{
    const int windows = (view.k + window - 1) / window;
    if (windows > 65535) {
        sum_masses_global_atomic(stage, view, labels, masses);
        return;
    }
    const dim3 grid(static_cast<unsigned>(blocks_for(view.n, 1024, stage.context.facts.multiprocessors * 8)),
                    static_cast<unsigned>(windows));
    private_kernel<<<grid, 256, 0, stage.stream>>>(view, stage.control, labels, masses);
    launched("private_kernel");
}

} // namespace

const Both<Sum> sum_masses_partitioned_register = {sum<float>, sum<double>};

} // namespace pgkm::cuda
