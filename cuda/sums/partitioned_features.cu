// partitioned_features.cu - each thread owns a feature of all clusters and walks the rows, so that no two threads ever
// add to the same sum (Lutz et al. 2018).
//
// A block's threads read neighbouring features of a row together, of several rows at once where a row has fewer
// features than the block has threads; of more features, a row's lie in several blocks. A thread's sums, 64-bit limbs
// joined in one integer, lie in shared memory and need no atomics. To use: d large, k small.
#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

// Rows of one block: so few that a 64-bit sum of 46-bit values cannot overflow.
constexpr std::int64_t rows_per_block = partial_sum_length / 2;

template <typename T>
__global__ void partitioned_kernel(View<T> view, const Control *control, const std::int32_t *labels,
                                   std::int64_t *totals)
{
    if (stopped(control))
        return;
    extern __shared__ std::int64_t own[];                                                 // k x blockDim.x
    const int threads = static_cast<int>(blockDim.x), at_once = max(threads / view.d, 1); // rows
    const int mine = at_once == 1 ? 0 : static_cast<int>(threadIdx.x) / view.d;           // of those
    const int feature = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x) - mine * view.d;
    if (feature >= view.d || mine >= at_once)
        return;
    for (int j = 0; j < view.k; ++j)
        own[j * blockDim.x + threadIdx.x] = 0;
    const std::int64_t share = (view.n + gridDim.x - 1) / gridDim.x;
    const std::int64_t first = blockIdx.x * share, last = min(first + share, view.n);
    const Scaling<T> scale = scaling_of(view, feature);
    for (std::int64_t row = first + mine; row < last; row += at_once)
        own[labels[row] * blockDim.x + threadIdx.x] += feature_integer(view, row, feature, scale, view.part);
    for (int j = 0; j < view.k; ++j)
        add_integer(totals + (std::int64_t{j} * view.d + feature) * 2, own[j * blockDim.x + threadIdx.x]);
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const std::int64_t room = stage.context.facts.shared_bytes_per_block / 2;
    int threads = 32;
    if (std::int64_t{view.k} * threads * 8 > room) {
        sum_features_atomic(stage, view, labels, totals); // one warp's sums do not fit a block
        return;
    }
    while (threads < 256 && std::int64_t{view.k} * threads * 2 * 8 <= room)
        threads *= 2;
    const std::size_t bytes = static_cast<std::size_t>(view.k) * static_cast<std::size_t>(threads) * 8;
    const std::int64_t least = (view.n + rows_per_block - 1) / rows_per_block;
    const std::int64_t blocks =
        std::max<std::int64_t>(least, blocks_for(view.n, 256, stage.context.facts.multiprocessors * 8));
    enqueue(partitioned_kernel<T>, {blocks, (view.d + threads - 1) / threads}, threads, bytes, stage.stream, view,
            stage.control, labels, totals);
}

} // namespace

const Both<Sum> sum_features_partitioned = {sum<float>, sum<double>};

} // namespace pgkm::cuda
