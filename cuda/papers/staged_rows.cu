// staged_rows.cu - a block brings its rows to shared memory, where its first thread sums them; then a thread for each
// cluster adds its sums to those of all blocks (O'Leary 2021, the variant with shared memory).
//
// A block takes up to 1,024 rows, so many at a time as its memory holds beside the sums. To use: to compare.
#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256, rows_per_block = 1024;

// staged: rows that the block's memory holds.
template <typename T>
__global__ void __launch_bounds__(threads)
    staged_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int64_t *totals, int staged)
{
    if (block_stopped(control))
        return;
    extern __shared__ std::int64_t own[]; // k x d, then rows
    const int self = static_cast<int>(threadIdx.x), d = view.d, n_sums = view.k * d;
    T *values = reinterpret_cast<T *>(own + n_sums);
    for (int i = self; i < n_sums; i += threads)
        own[i] = 0;
    const std::int64_t first = std::int64_t{blockIdx.x} * rows_per_block;
    const int count = static_cast<int>(min(std::int64_t{rows_per_block}, view.n - first));
    for (int done = 0; done < count; done += staged) {
        const int rows = min(staged, count - done);
        for (int i = self; i < rows * d; i += threads)
            values[i] = view.values[(first + done) * d + i];
        __syncthreads();
        View<T> here = view;
        here.values = values;
        if (here.weights != nullptr)
            here.weights += first + done;
        for (int row = 0; self == 0 && row < rows; ++row)
            for (int f = 0; f < d; ++f)
                own[labels[first + done + row] * d + f] +=
                    feature_integer(here, row, f, scaling_of(view, f), view.part);
        __syncthreads();
    }
    for (int j = self; j < view.k; j += threads)
        for (int f = 0; f < d; ++f)
            if (own[j * d + f] != 0)
                add_integer(totals + (std::int64_t{j} * d + f) * 2, own[j * d + f]);
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const std::int64_t room = stage.context.facts.shared_bytes_per_block / 2, sums = 8LL * view.k * view.d;
    const std::int64_t row = static_cast<std::int64_t>(sizeof(T)) * view.d;
    if (sums + row > room)
        return sum_features_atomic(stage, view, labels, totals);
    const auto staged = static_cast<int>(std::min<std::int64_t>((room - sums) / row, rows_per_block));
    const auto bytes = static_cast<std::size_t>(sums + staged * row);
    // One thread of a multiprocessor does 40 ns of work a value, and a launch some 20 ms.
    const std::int64_t step =
        std::max<std::int64_t>(stage.context.facts.multiprocessors * std::int64_t{500000} / view.d, rows_per_block);
    for (std::int64_t first = 0; first < view.n; first += step) {
        const View<T> part = slice(view, first, std::min(step, view.n - first));
        const auto blocks = static_cast<unsigned>((part.n + rows_per_block - 1) / rows_per_block);
        enqueue(staged_kernel<T>, blocks, threads, bytes, stage.stream, part, stage.control, labels + first, totals,
                staged);
    }
}

} // namespace

const Both<Sum> sum_features_staged_rows = {sum<float>, sum<double>};

} // namespace pgkm::cuda
