// farthest.cu - finds the rows with the largest squared distances by a radix select: the least key that is taken is
// found digit by digit, by counting.
//
// Squared distances are not negative, so that their bits are in their order. Where more rows lie at the
// bound than are wanted, a second select among those finds the lowest rows.
// Data: a slice's squared distances, one 64-bit key a row; 2,048 counts in each block's shared memory.
// Threads: a row a thread; atomics count, in integers. The host reads the counts after each of the six digits.
#include "relocation/farthest.hpp"

#include <algorithm>

#include "plan/stages.hpp"

namespace pgkm::cuda {

struct FarthestKeys {
    const double *squares;
    std::int32_t n;
    bool by_row; // among those whose square has the bits `tied`, the lower row has the larger key
    unsigned long long tied;
};

// The least key that is taken; `left` of the keys that equal it, or all where left is 0.
struct FarthestBound {
    unsigned long long key;
    std::int64_t left;
};

namespace {

constexpr int threads = 256;
constexpr int digit_bits = 11, digits = 1 << digit_bits;
constexpr int top_shift = 55; // of the first digit: 9 bits and five times 11
constexpr unsigned long long row_keys = 0xffffffff;

// 0: a row at no distance, which is never taken.
__device__ unsigned long long square_key(double square)
{
    return square > 0.0 ? static_cast<unsigned long long>(__double_as_longlong(square)) : 0;
}

// Adds, per digit at `shift`, how many keys have it whose digits before are `prefix`.
__global__ void __launch_bounds__(threads)
    count_kernel(FarthestKeys keys, unsigned long long prefix, int shift, std::uint32_t *counts)
{
    __shared__ std::uint32_t own[digits];
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        own[i] = 0;
    __syncthreads();
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < keys.n; row += stride) {
        unsigned long long key = square_key(keys.squares[row]);
        if (keys.by_row)
            key = key == keys.tied ? row_keys - static_cast<unsigned long long>(row) : 0;
        if (key != 0 && key >> shift >> digit_bits == prefix)
            atomicAdd(own + (key >> shift & (digits - 1)), 1u);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        if (own[i] != 0)
            atomicAdd(counts + i, own[i]);
}

// Takes the rows beyond the bound, and of those at it the rows up to `last_tied`, in no order.
__global__ void __launch_bounds__(threads)
    take_kernel(const double *squares, const std::int32_t *labels, std::int32_t n, unsigned long long bound,
                std::int64_t last_tied, FoundRow *rows, std::uint32_t *n_rows)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride) {
        const unsigned long long key = square_key(squares[row]);
        if (key > bound || (key == bound && row <= last_tied))
            rows[atomicAdd(n_rows, 1u)] = {squares[row], static_cast<std::int32_t>(row), labels[row]};
    }
}

} // namespace

FarthestRows::FarthestRows(Context &context, std::size_t most, std::size_t most_rows)
    : context_(context), most_(most), counts_(context.budget, digits), rows_(context.budget, std::min(most, most_rows)),
      n_rows_(context.budget, 1)
{
}

std::uint64_t FarthestRows::bytes(std::size_t most, std::size_t most_rows)
{
    return std::min(most, most_rows) * sizeof(FoundRow) + (digits + 1) * sizeof(std::uint32_t);
}

std::vector<std::uint32_t> FarthestRows::count(const FarthestKeys &keys, unsigned long long prefix, int shift)
{
    const cudaStream_t stream = context_.compute.get();
    counts_.fill_zero(stream);
    count_kernel<<<blocks_for(keys.n, threads, context_.facts.multiprocessors * 4), threads, 0, stream>>>(
        keys, prefix, shift, counts_.get());
    launched("count_kernel");
    std::vector<std::uint32_t> counts(digits);
    counts_.download(counts.data(), counts.size(), stream);
    context_.wait(stream);
    return counts;
}

// Of the `wanted` largest keys that are not 0; all of those where there are fewer.
FarthestBound FarthestRows::find_bound(const FarthestKeys &keys, std::int64_t wanted)
{
    unsigned long long prefix = 0;
    for (int shift = top_shift;; shift -= digit_bits) {
        const std::vector<std::uint32_t> counts = count(keys, prefix, shift);
        int digit = digits - 1;
        for (; digit >= 0 && counts[static_cast<std::size_t>(digit)] < wanted; --digit)
            wanted -= counts[static_cast<std::size_t>(digit)];
        if (digit < 0)
            return {1, 0};
        prefix = prefix << digit_bits | static_cast<unsigned long long>(digit);
        if (counts[static_cast<std::size_t>(digit)] == wanted)
            return {std::max(prefix << shift, 1ULL), 0};
        if (shift == 0)
            return {prefix, wanted};
    }
}

void FarthestRows::add(const double *squares, const std::int32_t *labels, std::int32_t n, std::int64_t first)
{
    const cudaStream_t stream = context_.compute.get();
    const FarthestBound bound = find_bound({squares, n, false, 0}, static_cast<std::int64_t>(most_));
    std::int64_t last_tied = n;
    if (bound.left != 0)
        last_tied = static_cast<std::int64_t>(row_keys - find_bound({squares, n, true, bound.key}, bound.left).key);
    n_rows_.fill_zero(stream);
    take_kernel<<<blocks_for(n, threads, context_.facts.multiprocessors * 4), threads, 0, stream>>>(
        squares, labels, n, bound.key, last_tied, rows_.get(), n_rows_.get());
    launched("take_kernel");
    std::uint32_t count = 0;
    n_rows_.download(&count, 1, stream);
    std::vector<FoundRow> rows(count);
    rows_.download(rows.data(), rows.size(), stream);
    context_.wait(stream);
    for (const FoundRow &row : rows)
        found_.push_back({row.square, first + row.row, row.label});
    if (found_.size() > most_) {
        std::nth_element(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(most_), found_.end());
        found_.resize(most_);
    }
}

} // namespace pgkm::cuda
