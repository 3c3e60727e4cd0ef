// farthest.cu - finds the first rows in FarOrder (src/backend/update.hpp): the least squared distance that is taken by
// a radix select, digit by digit, by counting; the order of rows at that distance on the host, which has their values.
//
// A squared distance is not negative, so that its bits are in its order. Where more rows lie at the bound than the host
// takes at a time, they come in parts, and of each part only rows that go before the last of those which the host
// keeps: of equal rows none after the first part. Data: a slice's rows, squared distances and labels; 2,048 counts in
// each block's shared memory. Threads: a row a thread; atomics count, in integers. The host reads the counts after each
// of the six digits.
#include "relocation/farthest.hpp"

#include <algorithm>

#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int digit_bits = 11, digits = 1 << digit_bits;
constexpr int top_shift = 55; // of the first digit: 9 bits and five times 11

// Rows that come to the host at a time.
std::size_t rows_at_once(std::size_t most, std::size_t most_rows)
{
    return std::min(std::max(most, std::size_t{1} << 16), most_rows);
}

// Keys of rows: the larger is taken first. 0 stands for a row at no distance, which is never taken.
__device__ inline unsigned long long key_of(double square)
{
    return square > 0.0 ? static_cast<unsigned long long>(__double_as_longlong(square)) : 0;
}

// Adds, per digit at `shift`, how many keys have it whose digits before are `prefix`.
__global__ void __launch_bounds__(threads)
    count_kernel(const double *squares, std::int64_t n, unsigned long long prefix, int shift, std::uint32_t *counts)
{
    __shared__ std::uint32_t own[digits];
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        own[i] = 0;
    __syncthreads();
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride) {
        const unsigned long long key = key_of(squares[row]);
        if (key != 0 && key >> shift >> digit_bits == prefix)
            atomicAdd(own + (key >> shift & (digits - 1)), 1u);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        if (own[i] != 0)
            atomicAdd(counts + i, own[i]);
}

// The row that the others have to go before, in FarOrder; values: nullptr where any will do.
template <typename T>
struct Last {
    double square;
    const T *values;
    double weight;
};

template <typename T>
__device__ bool goes_before(const View<T> &rows, std::int64_t row, double square, const Last<T> &last)
{
    if (last.values == nullptr || square != last.square)
        return last.values == nullptr || square > last.square;
    const int order = compare_content(rows.values + row * rows.d, last.values, rows.d);
    return order < 0 || (order == 0 && rows.weights != nullptr && rows.weights[row] < last.weight);
}

// Of rows [first, first + n) those with at least this key that go before the last one, in no order, and how many they
// are.
template <typename T>
__global__ void __launch_bounds__(threads)
    take_kernel(View<T> rows, const double *squares, const std::int32_t *labels, std::int64_t first, std::int64_t n,
                unsigned long long least, Last<T> last, FoundRow *found, std::uint32_t *count)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = first + std::int64_t{blockIdx.x} * threads + threadIdx.x; row < first + n; row += stride)
        if (key_of(squares[row]) >= least && goes_before(rows, row, squares[row], last))
            found[atomicAdd(count, 1u)] = {squares[row], static_cast<std::int32_t>(row), labels[row]};
}

} // namespace

template <typename T>
FarthestRows<T>::FarthestRows(Context &context, const FarOrder<T> &before, std::size_t most, std::size_t most_rows)
    : context_(context), most_(most), points_(before.points), first_row_(before.first_row),
      counts_(context.budget, digits), rows_(context.budget, rows_at_once(most, most_rows)),
      last_(context.budget, static_cast<std::size_t>(before.points.d)), found_(before, most)
{
}

template <typename T>
std::uint64_t FarthestRows<T>::bytes(std::size_t most, std::size_t most_rows, std::int32_t d)
{
    return rows_at_once(most, most_rows) * sizeof(FoundRow) + digits * sizeof(std::uint32_t) +
           static_cast<std::uint64_t>(d) * sizeof(T);
}

template <typename T>
std::uint64_t FarthestRows<T>::host_bytes(std::size_t most, std::size_t most_rows)
{
    return 2 * most * sizeof(FarRow) + rows_at_once(most, most_rows) * sizeof(FoundRow);
}

template <typename T>
int FarthestRows<T>::blocks(std::int64_t n) const
{
    return blocks_for(n, threads, context_.facts.multiprocessors * 4);
}

template <typename T>
std::vector<std::uint32_t> FarthestRows<T>::count(const double *squares, std::int64_t n, unsigned long long prefix,
                                                  int shift)
{
    const cudaStream_t stream = context_.compute.get();
    counts_.fill_zero(stream);
    count_kernel<<<blocks(n), threads, 0, stream>>>(squares, n, prefix, shift, counts_.get());
    launched("count_kernel");
    return context_.fetch(counts_);
}

// Of the `most` largest keys that are not 0, or of all of those.
template <typename T>
FarthestBound FarthestRows<T>::find_bound(const double *squares, std::int64_t n)
{
    unsigned long long prefix = 0;
    const auto most = static_cast<std::int64_t>(most_);
    std::int64_t wanted = most; // of the keys whose digits before are the prefix
    for (int shift = top_shift;; shift -= digit_bits) {
        const std::vector<std::uint32_t> counts = count(squares, n, prefix, shift);
        int digit = digits - 1;
        for (; digit >= 0 && counts[static_cast<std::size_t>(digit)] < wanted; --digit)
            wanted -= counts[static_cast<std::size_t>(digit)];
        if (digit < 0)
            return {1, most - wanted};
        prefix = prefix << digit_bits | static_cast<unsigned long long>(digit);
        const std::int64_t at_bound = counts[static_cast<std::size_t>(digit)];
        if (at_bound == wanted || shift == 0)
            return {std::max(prefix << shift, 1ULL), most - wanted + at_bound};
    }
}

template <typename T>
void FarthestRows<T>::add(const View<T> &rows, const double *squares, const std::int32_t *labels, std::int64_t first)
{
    const cudaStream_t stream = context_.compute.get();
    const FarthestBound bound = find_bound(squares, rows.n);
    const auto room = static_cast<std::int64_t>(rows_.count());
    const std::int64_t most = bound.rows <= room ? rows.n : room;
    for (std::int64_t done = 0; done < rows.n; done += most) {
        const std::int64_t some = std::min(most, rows.n - done);
        Last<T> last = {};
        if (const FarRow *row = found_.last(); row != nullptr) {
            const std::int64_t at = first_row_ + row->row;
            last_.upload(static_cast<const T *>(points_.values) + at * points_.d, last_.count(), stream);
            last = {row->square, last_.get(), points_.weights == nullptr ? 0.0 : points_.weights[at]};
        }
        counts_.fill_zero(stream);
        take_kernel<<<blocks(some), threads, 0, stream>>>(rows, squares, labels, done, some, bound.key, last,
                                                          rows_.get(), counts_.get());
        launched("take_kernel");
        const std::uint32_t count = context_.fetch(counts_.get(), 1)[0];
        for (const FoundRow &row : context_.fetch(rows_.get(), count))
            found_.add({row.square, first + row.row, row.label});
    }
}

template class FarthestRows<float>;
template class FarthestRows<double>;

} // namespace pgkm::cuda
