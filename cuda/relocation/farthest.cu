// farthest.cu - finds the first rows in FarOrder (src/backend/update.hpp) by radix selects: the least key that is taken
// is found digit by digit, by counting.
//
// The first key is the squared distance: it is not negative, so that its bits are in its order. Where more rows lie at
// the bound than are wanted, the next key is the first feature in which these tied rows differ, lesser values first,
// then the next such feature, and at last the weight. Tied rows that differ in nothing are interchangeable: the lowest
// are taken. Each select narrows the tied rows down, and it ends when all that are left are wanted.
// Data: a slice's rows and squared distances; a byte a row says whether it is out, tied or taken; 2,048 counts in each
// block's shared memory.
// Threads: a row a thread, or a warp to compare features; atomics count, in integers. The host reads the counts after
// each of the six digits.
#include "relocation/farthest.hpp"

#include <algorithm>

#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int digit_bits = 11, digits = 1 << digit_bits;
constexpr int top_shift = 55; // of the first digit: 9 bits and five times 11
constexpr std::uint32_t none = 0xffffffff;

enum State : std::uint8_t { out, tied, taken };

// Keys of rows: the larger is taken first; 0 stands for a row that does not take part.

struct SquareKey {
    const double *squares;

    // A row at no distance is never taken.
    __device__ unsigned long long operator()(std::int64_t row) const
    {
        const double square = squares[row];
        return square > 0.0 ? static_cast<unsigned long long>(__double_as_longlong(square)) : 0;
    }
};

// By a column of values, the lesser first, as numbers: -0 counts as +0.
template <typename V>
struct ValueKey {
    const V *values;
    std::int64_t stride;
    const std::uint8_t *states;

    __device__ unsigned long long operator()(std::int64_t row) const
    {
        if (states[row] != tied)
            return 0;
        constexpr unsigned long long sign = 1ULL << 63;
        const double value = static_cast<double>(without_minus_zero(values[row * stride]));
        const auto bits = static_cast<unsigned long long>(__double_as_longlong(value));
        return (bits & sign) != 0 ? bits : ~(bits | sign); // not 0: that would be a NaN
    }
};

struct RowKey {
    const std::uint8_t *states;

    __device__ unsigned long long operator()(std::int64_t row) const
    {
        return states[row] == tied ? none - static_cast<unsigned long long>(row) : 0;
    }
};

// Adds, per digit at `shift`, how many keys have it whose digits before are `prefix`.
template <typename Key>
__global__ void __launch_bounds__(threads)
    count_kernel(Key key_of, std::int64_t n, unsigned long long prefix, int shift, std::uint32_t *counts)
{
    __shared__ std::uint32_t own[digits];
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        own[i] = 0;
    __syncthreads();
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride) {
        const unsigned long long key = key_of(row);
        if (key != 0 && key >> shift >> digit_bits == prefix)
            atomicAdd(own + (key >> shift & (digits - 1)), 1u);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        if (own[i] != 0)
            atomicAdd(counts + i, own[i]);
}

// Takes the rows beyond the bound. Those at it are taken where none are left to choose from, else they are tied; the
// lowest of these becomes the model. Rows that do not take part keep their state.
template <typename Key>
__global__ void __launch_bounds__(threads)
    narrow_kernel(Key key_of, std::int64_t n, FarthestBound bound, std::uint8_t *states, FarthestAnswers *answers)
{
    std::uint32_t model = none;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride) {
        const unsigned long long key = key_of(row);
        if (key == 0)
            continue;
        const bool at_bound = key == bound.key;
        states[row] = key > bound.key || (at_bound && bound.left == 0) ? taken : at_bound ? tied : out;
        if (at_bound)
            model = min(model, static_cast<std::uint32_t>(row));
    }
    if (model != none)
        atomicMin(&answers->model, model);
}

// The first feature from `first` on, the weight as feature d, in which any tied row differs from the model. A warp a
// row, a feature a lane.
template <typename T>
__global__ void __launch_bounds__(threads)
    difference_kernel(View<T> rows, const std::uint8_t *states, std::int32_t first, FarthestAnswers *answers)
{
    const auto lane = static_cast<std::int32_t>(threadIdx.x & 31);
    const auto least = static_cast<volatile std::uint32_t *>(&answers->difference);
    const std::int64_t model = answers->model, warps = std::int64_t{gridDim.x} * (threads / 32);
    const T *y = rows.values + model * rows.d;
    for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32; row < rows.n; row += warps) {
        if (states[row] != tied)
            continue;
        const T *x = rows.values + row * rows.d;
        for (std::int32_t base = first; base <= rows.d; base += 32) {
            const std::int32_t f = base + lane;
            bool differs = false;
            if (f < rows.d)
                differs = x[f] != y[f];
            else if (f == rows.d && rows.weights != nullptr)
                differs = rows.weights[row] != rows.weights[model];
            const unsigned found = __ballot_sync(~0u, differs);
            if (found != 0) {
                if (lane == 0)
                    atomicMin(&answers->difference,
                              static_cast<std::uint32_t>(base + __ffs(static_cast<int>(found)) - 1));
                break;
            }
            if (__any_sync(~0u, *least <= static_cast<std::uint32_t>(base)))
                break; // others differ before
        }
    }
}

// The rows that are taken, in no order.
__global__ void __launch_bounds__(threads)
    take_kernel(const double *squares, const std::int32_t *labels, std::int64_t n, const std::uint8_t *states,
                FoundRow *rows, FarthestAnswers *answers)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride)
        if (states[row] == taken)
            rows[atomicAdd(&answers->n_rows, 1u)] = {squares[row], static_cast<std::int32_t>(row), labels[row]};
}

} // namespace

template <typename T>
FarthestRows<T>::FarthestRows(Context &context, const FarOrder<T> &before, std::size_t most, std::size_t most_rows)
    : context_(context), before_(before), most_(most), counts_(context.budget, digits),
      rows_(context.budget, std::min(most, most_rows)), states_(context.budget, most_rows), answers_(context.budget, 1)
{
}

template <typename T>
std::uint64_t FarthestRows<T>::bytes(std::size_t most, std::size_t most_rows)
{
    return std::min(most, most_rows) * sizeof(FoundRow) + most_rows + digits * sizeof(std::uint32_t) +
           sizeof(FarthestAnswers);
}

template <typename T>
int FarthestRows<T>::blocks(std::int64_t items, int per_block) const
{
    return blocks_for(items, per_block, context_.facts.multiprocessors * 4);
}

template <typename T>
template <typename Key>
std::vector<std::uint32_t> FarthestRows<T>::count(const Key &key, std::int64_t n, unsigned long long prefix, int shift)
{
    const cudaStream_t stream = context_.compute.get();
    counts_.fill_zero(stream);
    count_kernel<<<blocks(n, threads), threads, 0, stream>>>(key, n, prefix, shift, counts_.get());
    launched("count_kernel");
    std::vector<std::uint32_t> counts(digits);
    counts_.download(counts.data(), counts.size(), stream);
    context_.wait(stream);
    return counts;
}

// Of the `wanted` largest keys that are not 0; all of those where there are fewer.
template <typename T>
template <typename Key>
FarthestBound FarthestRows<T>::find_bound(const Key &key, std::int64_t n, std::int64_t wanted)
{
    unsigned long long prefix = 0;
    for (int shift = top_shift;; shift -= digit_bits) {
        const std::vector<std::uint32_t> counts = count(key, n, prefix, shift);
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

// Takes rows by one key; returns how many of the rows that are tied now are still wanted.
template <typename T>
template <typename Key>
std::int64_t FarthestRows<T>::narrow(const Key &key, std::int64_t n, std::int64_t wanted)
{
    const cudaStream_t stream = context_.compute.get();
    const FarthestBound bound = find_bound(key, n, wanted);
    checked("cudaMemsetAsync",
            [&] { return cudaMemsetAsync(&answers_.get()->model, 0xff, sizeof(std::uint32_t), stream); });
    narrow_kernel<<<blocks(n, threads), threads, 0, stream>>>(key, n, bound, states_.get(), answers_.get());
    launched("narrow_kernel");
    return bound.left;
}

// At least `first`; beyond d, the weight, where tied rows do not differ.
template <typename T>
std::int32_t FarthestRows<T>::next_difference(const View<T> &rows, std::int32_t first)
{
    const cudaStream_t stream = context_.compute.get();
    checked("cudaMemsetAsync",
            [&] { return cudaMemsetAsync(&answers_.get()->difference, 0xff, sizeof(std::uint32_t), stream); });
    difference_kernel<<<blocks(rows.n, threads / 32), threads, 0, stream>>>(rows, states_.get(), first, answers_.get());
    launched("difference_kernel");
    const std::uint32_t difference = answers().difference;
    return difference == none ? rows.d + 1 : static_cast<std::int32_t>(difference);
}

// Takes `wanted` of the tied rows, of which there are more.
template <typename T>
void FarthestRows<T>::settle_ties(const View<T> &rows, std::int64_t wanted)
{
    const std::uint8_t *states = states_.get();
    std::int32_t first = 0;
    while (wanted != 0) {
        const std::int32_t feature = next_difference(rows, first);
        if (feature < rows.d)
            wanted = narrow(ValueKey<T>{rows.values + feature, rows.d, states}, rows.n, wanted);
        else if (feature == rows.d)
            wanted = narrow(ValueKey<double>{rows.weights, 1, states}, rows.n, wanted);
        else
            wanted = narrow(RowKey{states}, rows.n, wanted);
        first = feature + 1;
    }
}

template <typename T>
FarthestAnswers FarthestRows<T>::answers()
{
    FarthestAnswers answers;
    answers_.download(&answers, 1, context_.compute.get());
    context_.wait(context_.compute.get());
    return answers;
}

template <typename T>
void FarthestRows<T>::add(const View<T> &rows, const double *squares, const std::int32_t *labels, std::int64_t first)
{
    const cudaStream_t stream = context_.compute.get();
    states_.fill_zero(stream); // out
    answers_.fill_zero(stream);
    settle_ties(rows, narrow(SquareKey{squares}, rows.n, static_cast<std::int64_t>(most_)));
    take_kernel<<<blocks(rows.n, threads), threads, 0, stream>>>(squares, labels, rows.n, states_.get(), rows_.get(),
                                                                 answers_.get());
    launched("take_kernel");
    std::vector<FoundRow> found(answers().n_rows);
    rows_.download(found.data(), found.size(), stream);
    context_.wait(stream);
    for (const FoundRow &row : found)
        found_.push_back({row.square, first + row.row, row.label});
    if (found_.size() > most_) {
        std::nth_element(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(most_), found_.end(), before_);
        found_.resize(most_);
    }
}

template class FarthestRows<float>;
template class FarthestRows<double>;

} // namespace pgkm::cuda
