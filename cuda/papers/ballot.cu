// ballot.cu - rows of a warp that share a label are found by ballot and summed by the warp
// before one addition per cluster and feature leaves it (Aggarwal 2013, sections 5.1, 5.2).
//
// Lane l sums feature l, l + 32, ... over the rows of the ballot into the block's copy of the sums;
// the inter-block reduction is a kernel of its own. To use: few clusters, or rows sorted by label.
#include "papers/copies.cuh"

namespace pgkm::cuda {
namespace {

template <typename T>
__global__ void ballot_kernel(View<T> view, const Control *control, const std::int32_t *labels, Copies copies)
{
    if (stopped(control))
        return;
    std::int64_t *totals = copies.own();
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t warps = std::int64_t{gridDim.x} * (blockDim.x / 32);
    for (std::int64_t start = (std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32) * 32; start < view.n;
         start += warps * 32) {
        const bool valid = start + lane < view.n;
        const int label = valid ? labels[start + lane] : -1;
        unsigned left = __ballot_sync(~0u, valid);
        while (left != 0) {
            const int cluster = __shfl_sync(~0u, label, __ffs(static_cast<int>(left)) - 1);
            const unsigned members = __ballot_sync(~0u, label == cluster);
            left &= ~members;
            for (int f = lane; f < view.d; f += 32) {
                std::int64_t sum = 0; // at most 32 values of 46 bits
                const Scaling<T> scale = scaling_of(view, f);
                for (unsigned m = members; m != 0; m &= m - 1)
                    sum += feature_integer(view, start + __ffs(static_cast<int>(m)) - 1, f, scale, view.part);
                add_integer(totals + (std::int64_t{cluster} * view.d + f) * 2, sum);
            }
        }
    }
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const int blocks = blocks_for(view.n, 256, stage.context.facts.multiprocessors * 16);
    const std::int64_t n_sums = std::int64_t{view.k} * view.d * 2;
    const Copies copies = make_copies(stage.context, n_sums, blocks, std::int64_t{32} << 20, stage.stream);
    if (copies.count == 0)
        return sum_features_atomic(stage, view, labels, totals);
    ballot_kernel<<<blocks, 256, 0, stage.stream>>>(view, stage.control, labels, copies);
    launched("ballot_kernel");
    merge_copies(copies, totals, stage.control, stage.stream);
}

} // namespace

const Both<Sum> sum_features_ballot = {sum<float>, sum<double>};

} // namespace pgkm::cuda
