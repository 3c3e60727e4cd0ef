// sorted.cu - row numbers are radix-sorted by label (CUB), then runs of equal labels are
// summed and leave one addition each.
//
// To use: large k x d, where sums on the fly would be one global atomic per value: a run
// costs one. Each warp takes some of the sorted rows; lanes share out the features.
#include <cub/device/device_radix_sort.cuh>

#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

constexpr int warp_rows = 64; // sorted rows per warp

__global__ void number_kernel(std::int32_t *rows, std::int32_t n)
{
    const std::int32_t i = static_cast<std::int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        rows[i] = i;
}

template <typename T>
__global__ void runs_kernel(View<T> view, const Control *control, const std::int32_t *labels, const std::int32_t *rows,
                            std::int64_t *totals)
{
    if (stopped(control))
        return;
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t warp = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
    const std::int64_t first = warp * warp_rows, last = min(first + warp_rows, view.n);
    for (int f = lane; f < view.d; f += 32) {
        const Scaling<T> scale = scaling_of(view, f);
        std::int64_t sum = 0;
        for (std::int64_t i = first; i < last; ++i) {
            sum += feature_integer(view, rows[i], f, scale, view.part);
            if (i + 1 < last && labels[i + 1] == labels[i])
                continue;
            add_integer(totals + (std::int64_t{labels[i]} * view.d + f) * 2, sum);
            sum = 0;
        }
    }
}

// One sort: labels, row numbers and both in order, with CUB's own storage behind them.
struct Sort {
    const std::int32_t *labels;
    std::int32_t n;
    int bits; // of a label
    cudaStream_t stream;

    std::size_t arrays() const { return (static_cast<std::size_t>(n) * 3 * 4 + 255) / 256 * 256; }
    std::size_t temporary() const
    {
        std::size_t bytes = 0;
        checked("cub::DeviceRadixSort", [&] { return run(nullptr, bytes, nullptr); });
        return bytes;
    }
    // array: n sorted labels, n row numbers, n sorted row numbers.
    cudaError_t run(void *storage, std::size_t &bytes, std::int32_t *array) const
    {
        return cub::DeviceRadixSort::SortPairs(storage, bytes, labels, array, array + n, array + 2 * std::int64_t{n}, n,
                                               0, bits, stream);
    }
};

// Rows per sort: 32-bit numbers, and memory within the device's limit; 0 where few would fit.
std::int64_t rows_per_sort(Context &context, Sort sort, std::int64_t n)
{
    std::int64_t rows = std::min(n, std::int64_t{1} << 27);
    for (;; rows = (rows + 1) / 2) {
        sort.n = static_cast<std::int32_t>(rows);
        if (sort.arrays() + sort.temporary() <= context.scratch_room())
            return rows;
        if (rows <= 1024)
            return 0;
    }
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    Sort sort = {labels, 0, 1, stage.stream};
    while (sort.bits < 31 && (std::int64_t{1} << sort.bits) < view.k)
        ++sort.bits;
    const std::int64_t most = rows_per_sort(stage.context, sort, view.n);
    if (most == 0)
        return sum_features_atomic(stage, view, labels, totals);
    for (std::int64_t skip = 0; skip < view.n; skip += most) {
        const View<T> part = slice(view, skip, std::min(most, view.n - skip));
        sort.labels = labels + skip;
        sort.n = static_cast<std::int32_t>(part.n);
        std::size_t temporary = sort.temporary();
        auto *array = reinterpret_cast<std::int32_t *>(stage.context.scratch(sort.arrays() + temporary));
        number_kernel<<<static_cast<unsigned>((part.n + 255) / 256), 256, 0, stage.stream>>>(array + part.n, sort.n);
        launched("number_kernel");
        checked("cub::DeviceRadixSort",
                [&] { return sort.run(reinterpret_cast<char *>(array) + sort.arrays(), temporary, array); });
        const std::int64_t warps = (part.n + warp_rows - 1) / warp_rows;
        runs_kernel<<<static_cast<unsigned>((warps + 7) / 8), 256, 0, stage.stream>>>(part, stage.control, array,
                                                                                      array + 2 * part.n, totals);
        launched("runs_kernel");
    }
}

} // namespace

const Both<Sum> sum_features_sorted = {sum<float>, sum<double>};

} // namespace pgkm::cuda
