// generic.cu (fused) - labels and sums in one pass for any shape and element type.
//
// Each thread settles its row exactly and adds it to the global sums by 64-bit atomics. To
// use: where no tuned fused kernel takes the shape but one read of the rows is wanted.
#include "device/exact.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void fused_generic_kernel(View<T> view, const Control *control, Accumulators sums)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < view.n; row += stride) {
        const int label = nearest_by_thread(view.values + row * view.d, view.centroids, view.k, view.d).label;
        std::int64_t *totals = sums.totals + std::int64_t{label} * view.d * 2;
        for (int f = 0; f < view.d; ++f) {
            const Split limbs = plain_limbs(view, row, f);
            add64(totals + 2 * f, limbs.hi);
            add64(totals + 2 * f + 1, limbs.lo);
        }
        add64(sums.masses + 2 * label + 1, 1);
    }
}

template <typename T>
void fuse(const Stage<T> &stage, const View<T> &view, const Accumulators &sums)
{
    in_exact_launches(stage, view, 2e11, [&](std::int64_t first, std::int64_t rows) {
        const int blocks = blocks_for(rows, 128, stage.context.facts.multiprocessors * 16);
        fused_generic_kernel<<<blocks, 128, 0, stage.stream>>>(slice(view, first, rows), stage.control, sums);
        launched("fused_generic_kernel");
    });
}

} // namespace

const Both<Fuse> fused_generic = {fuse<float>, fuse<double>};

} // namespace pgkm::cuda
