// cluster_merge.cu - every block has sums of all clusters of its own, merged at the end
// (Lutz et al. 2018, "cluster merge").
//
// The block's sums are 32-bit limbs in shared memory; before a cell can have taken 512
// additions all cells are added to the global sums. Clusters x features that do not fit are
// done in windows of features, one grid row each. To use: k x d small enough for a few windows.
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int rows_per_round = 504; // fewer than limb_additions

template <typename T>
__global__ void cluster_merge_kernel(View<T> view, const Control *control, const std::int32_t *labels,
                                     std::int64_t *totals, int window)
{
    if (block_stopped(control))
        return;
    extern __shared__ std::int32_t cells[]; // k x width x 2
    const int first = static_cast<int>(blockIdx.y) * window;
    const int width = min(window, view.d - first);
    const int n_cells = view.k * width * 2;
    for (int i = threadIdx.x; i < n_cells; i += threads)
        cells[i] = 0;
    __syncthreads();
    for (std::int64_t start = std::int64_t{blockIdx.x} * rows_per_round; start < view.n;
         start += std::int64_t{gridDim.x} * rows_per_round) {
        const int rows = static_cast<int>(min(std::int64_t{rows_per_round}, view.n - start));
        for (int i = threadIdx.x; i < rows * width; i += threads) {
            const int local = i / width, feature = i - local * width;
            const Split limbs = feature_limbs(view, start + local, first + feature, view.part);
            std::int32_t *cell = cells + (labels[start + local] * width + feature) * 2;
            atomicAdd(cell, limbs.hi);
            atomicAdd(cell + 1, limbs.lo);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n_cells; i += threads) {
            const int cluster = i / (width * 2), rest = i - cluster * width * 2;
            if (cells[i] != 0)
                add64(totals + (std::int64_t{cluster} * view.d + first) * 2 + rest, cells[i]);
            cells[i] = 0;
        }
        __syncthreads();
    }
}

} // namespace

template <typename T>
void sum_features_cluster_merge(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
                                std::int64_t *totals)
{
    constexpr int most_windows = 65535; // rows of a grid
    const std::int64_t room = stage.context.facts.shared_bytes_per_block / 2;
    const auto window = static_cast<int>(std::min<std::int64_t>(view.d, room / (8 * std::int64_t{view.k})));
    // Not one feature of all clusters fits a block, or too few.
    if (window < 1 || (view.d - 1) / window >= most_windows) {
        sum_features_atomic(stage, view, labels, totals);
        return;
    }
    const std::size_t bytes = static_cast<std::size_t>(view.k) * static_cast<std::size_t>(window) * 2 * sizeof(std::int32_t);
    checked("cudaFuncSetAttribute", [&] {
        return allow_shared_memory(cluster_merge_kernel<T>, static_cast<int>(bytes));
    });
    const dim3 grid(static_cast<unsigned>(blocks_for(view.n, rows_per_round, stage.context.facts.multiprocessors * 4)),
                    static_cast<unsigned>((view.d + window - 1) / window));
    cluster_merge_kernel<<<grid, threads, bytes, stage.stream>>>(view, stage.control, labels, totals, window);
    launched("cluster_merge_kernel");
}

template void sum_features_cluster_merge<float>(const Stage<float> &, const View<float> &, const std::int32_t *,
                                                std::int64_t *);
template void sum_features_cluster_merge<double>(const Stage<double> &, const View<double> &, const std::int32_t *,
                                                 std::int64_t *);

} // namespace pgkm::cuda
