// row_moments.cpp - means and products of a few rows, dot products and sums of vectors, in the caller's thread.
#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "cpu/kernels/product_kernels.hpp"
#include "cpu/kernels/vector_kernels.hpp"

namespace pgkm::cpu {
namespace {

// Asked once: the processor is slow to tell.
InstructionSet instruction_set()
{
    static const InstructionSet best = best_instruction_set();
    return best;
}

// Memory for one block of rows, on a cache line's boundary. Kept from call to call: an aggregate
// adds few rows at a time, many times.
double *scratch(std::size_t values)
{
    constexpr std::size_t line = 64 / sizeof(double);
    static thread_local std::vector<double> memory;
    if (memory.size() < values + line)
        memory.assign(values + line, 0.0);
    const auto misplaced = reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(double) % line;
    return memory.data() + (line - misplaced) % line;
}

// Between two looks at the poll: some 10 ms.
constexpr std::int64_t most_products = 1 << 25;

// The products of a block, some features at a time: what is summed for one does not depend on the others.
void add_products(const ProductKernels &kernels, const double *weighted, const double *block, int stride,
                  std::int32_t d, double *cross, const std::function<void()> &poll)
{
    const std::int64_t features = most_products / (std::int64_t{stride} * d);
    const auto per_part = static_cast<std::int32_t>(padded_features(std::clamp<std::int64_t>(features, 1, d)));
    for (std::int32_t first = 0; first < d; first += per_part) {
        poll();
        kernels.add_products(weighted, block, stride, first, std::min(d, first + per_part), cross);
    }
}

// Each row of a turned block times its weight, unless there are none; returns the sum of the weights.
double weigh(const double *weights, std::int64_t n, const double *block, int stride, std::int32_t d, double *weighted)
{
    if (weights == nullptr)
        return static_cast<double>(n);
    for (std::int32_t f = 0; f < d; ++f) {
        const double *const from = block + std::int64_t{f} * stride;
        double *const to = weighted + std::int64_t{f} * stride;
        std::fill(std::transform(from, from + n, weights, to, std::multiplies<>()), to + stride, 0.0);
    }
    return std::accumulate(weights, weights + n, 0.0);
}

} // namespace

double add_block(const double *rows, const double *weights, std::int64_t n, std::int32_t d, double *mean, double *cross,
                 const std::function<void()> &poll)
{
    const ProductKernels &kernels = product_kernels(instruction_set());
    const int stride = padded_rows(n);
    const auto size = static_cast<std::size_t>(padded_features(d) * stride);
    double *const block = scratch(weights == nullptr ? size : 2 * size);
    double *const weighted = weights == nullptr ? block : block + size;
    // About the first row, for the mean: constant features have it exactly.
    kernels.turn(rows, n, d, rows, block, stride);
    const double mass = weigh(weights, n, block, stride, d, weighted);
    std::fill_n(mean, d, 0.0);
    kernels.add_rows(weighted, stride, d, mean);
    for (std::int32_t f = 0; f < d; ++f)
        mean[f] = rows[f] + mean[f] / mass;
    kernels.turn(rows, n, d, mean, block, stride);
    weigh(weights, n, block, stride, d, weighted);
    add_products(kernels, weighted, block, stride, d, cross, poll);
    return mass;
}

double dot(const double *x, const double *y, std::int64_t n)
{
    return vector_kernels(instruction_set()).dot(x, y, n);
}

void add(double *y, double a, const double *x, std::int64_t n)
{
    vector_kernels(instruction_set()).add(y, a, x, n);
}

} // namespace pgkm::cpu
