// block_copies.cu - every block has sums of all clusters of its own in shared memory, merged at the end: of features
// "block merge", of masses "partitioned local" (Lutz et al. 2018). A table a thread, as Lutz's "cluster merge" has it,
// leaves room for few sums: papers/thread_tables.cu.
//
// The block's sums are 32-bit limbs; before a counter can have taken 512
// additions all counters are added to the global sums. Clusters x features that do not fit are
// done in windows of features, one grid row each. To use: k x d small enough for a few windows.
#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int rows_per_round = 504; // fewer than limb_additions

template <typename What, typename T>
__global__ void block_copies_kernel(View<T> view, const Control *control, const std::int32_t *labels,
                                    std::int64_t *sums, int window)
{
    if (block_stopped(control))
        return;
    extern __shared__ std::int32_t counters[]; // k x width x 2
    const int first = static_cast<int>(blockIdx.y) * window, all = What::width(view);
    const int width = min(window, all - first), n_counters = view.k * width * 2;
    for (int i = threadIdx.x; i < n_counters; i += threads)
        counters[i] = 0;
    __syncthreads();
    const std::int64_t round = What::is_count(view) ? (view.n + gridDim.x - 1) / gridDim.x : rows_per_round;
    for (std::int64_t start = blockIdx.x * round; start < view.n; start += gridDim.x * round) {
        const int values = static_cast<int>(min(round, view.n - start)) * width;
        for (int i = threadIdx.x; i < values; i += threads) {
            const int local = i / width, f = i - local * width;
            const std::int64_t row = start + local;
            add_limbs(counters + (labels[row] * width + f) * 2, split_limbs(What::integer(view, row, first + f)));
        }
        flush_counters<threads>(counters, n_counters, [&](int i) {
            const int cluster = i / (width * 2), rest = i - cluster * width * 2;
            return sums + (std::int64_t{cluster} * all + first) * 2 + rest;
        });
    }
}

// Without room for one window, or with too many of them, by `otherwise`.
template <typename What, typename T>
void sum(const Both<Sum> &otherwise, const Stage<T> &stage, const View<T> &view, const std::int32_t *labels,
         std::int64_t *sums)
{
    constexpr int most_windows = 65535; // rows of a grid
    const int all = What::width(view), multiprocessors = stage.context.facts.multiprocessors;
    const std::int64_t room = stage.context.facts.shared_bytes_per_block / 2;
    const auto window = static_cast<int>(std::min<std::int64_t>(all, room / (8 * std::int64_t{view.k})));
    if (window < 1 || (all - 1) / window >= most_windows)
        return otherwise(stage, view, labels, sums);
    const std::size_t bytes = static_cast<std::size_t>(view.k) * static_cast<std::size_t>(window) * 8;
    enqueue(block_copies_kernel<What, T>,
            {blocks_for(view.n, rows_per_round, multiprocessors * 4), (all + window - 1) / window}, threads, bytes,
            stage.stream, view, stage.control, labels, sums, window);
}

template <typename T>
void sum_features(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *sums)
{
    sum<Features>(sum_features_atomic, stage, view, labels, sums);
}

template <typename T>
void sum_masses(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *sums)
{
    sum<Masses>(sum_masses_global_atomic, stage, view, labels, sums);
}

} // namespace

const Both<Sum> sum_features_block_merge = {sum_features<float>, sum_features<double>};
const Both<Sum> sum_masses_partitioned_local = {sum_masses<float>, sum_masses<double>};

} // namespace pgkm::cuda
