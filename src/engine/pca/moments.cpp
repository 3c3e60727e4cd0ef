// moments.cpp - adds rows to moments, and merges moments.
#include "engine/pca/moments.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cpu/kernels/product_kernels.hpp"
#include "cpu/kernels/vector_kernels.hpp"
#include "numeric/error.hpp"

namespace pgkm {
namespace {

using cpu::block_rows;

// Asked once: the processor is slow to tell.
cpu::InstructionSet instruction_set()
{
    static const cpu::InstructionSet best = cpu::best_instruction_set();
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

// cross += weight * (difference of the means) (that difference)'; the mean moves by its share.
void merge_means(PgkmRowMoments &moments, const double *mean, std::int64_t n, double mass)
{
    const cpu::VectorKernels &kernels = cpu::vector_kernels(instruction_set());
    const double total = moments.mass + mass;
    const double weight = moments.mass * (mass / total);
    std::vector<double> difference(mean, mean + moments.d);
    for (std::int32_t f = 0; f < moments.d; ++f)
        difference[static_cast<std::size_t>(f)] -= moments.mean[f];
    for (std::int32_t a = 0; a < moments.d; ++a) {
        const double part = difference[static_cast<std::size_t>(a)];
        if (moments.n > 0 && part != 0.0)
            kernels.add(moments.cross + triangle_size(a), weight * part, difference.data(), a + 1);
        moments.mean[a] = moments.n == 0 ? mean[a] : moments.mean[a] + part * (mass / total);
    }
    moments.n += n;
    moments.mass = total;
}

// Between two looks at the poll: some 10 ms.
constexpr std::int64_t most_products = 1 << 25;

// The products of a block, some features at a time: what is summed for one does not depend on the others.
void add_products(const cpu::ProductKernels &kernels, const double *weighted, const double *block, int stride,
                  std::int32_t d, double *cross, const Poll &poll)
{
    const std::int64_t features = most_products / (std::int64_t{stride} * d);
    const auto per_part = static_cast<std::int32_t>(cpu::padded_features(std::clamp<std::int64_t>(features, 1, d)));
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

void check_count(std::int64_t n, std::int64_t more)
{
    if (more > PGKM_MAX_ROWS - n)
        throw Error(PGKM_LIMIT, "sums of more than 2^53 rows are not supported");
}

} // namespace

void add_rows(PgkmRowMoments &moments, const double *rows, const double *weights, std::int64_t count, const Poll &poll)
{
    check_count(moments.n, count);
    const cpu::ProductKernels &kernels = cpu::product_kernels(instruction_set());
    const auto d = static_cast<std::size_t>(moments.d);
    const std::size_t size = static_cast<std::size_t>(cpu::padded_features(moments.d)) *
                             static_cast<std::size_t>(cpu::padded_rows(std::min<std::int64_t>(count, block_rows)));
    double *const block = scratch(weights == nullptr ? size : 2 * size);
    double *const weighted = weights == nullptr ? block : block + size;
    std::vector<double> mean(d);
    for (std::int64_t first = 0; first < count; first += block_rows) {
        const std::int64_t n = std::min<std::int64_t>(block_rows, count - first);
        const int stride = cpu::padded_rows(n);
        const double *const x = rows + first * moments.d;
        // About the first row, for the mean: constant features have it exactly.
        kernels.turn(x, n, moments.d, x, block, stride);
        const double mass =
            weigh(weights == nullptr ? nullptr : weights + first, n, block, stride, moments.d, weighted);
        std::fill(mean.begin(), mean.end(), 0.0);
        kernels.add_rows(weighted, stride, moments.d, mean.data());
        for (std::size_t f = 0; f < d; ++f)
            mean[f] = x[f] + mean[f] / mass;
        kernels.turn(x, n, moments.d, mean.data(), block, stride);
        weigh(weights == nullptr ? nullptr : weights + first, n, block, stride, moments.d, weighted);
        add_products(kernels, weighted, block, stride, moments.d, moments.cross, poll);
        merge_means(moments, mean.data(), n, mass);
    }
}

void merge_moments(PgkmRowMoments &moments, const PgkmRowMoments &other)
{
    const std::int64_t size = triangle_size(moments.d);
    if (other.n == 0)
        return;
    check_count(moments.n, other.n);
    for (std::int64_t i = 0; i < size; ++i)
        moments.cross[i] += other.cross[i];
    merge_means(moments, other.mean, other.n, other.mass);
}

} // namespace pgkm

PgkmStatus pgkm_moments_add(PgkmRowMoments *moments, const double *rows, const double *weights, int64_t count,
                            PgkmInterrupted interrupted, PgkmError *error)
{
    return pgkm::guarded(error, [&] { pgkm::add_rows(*moments, rows, weights, count, pgkm::poll_for(interrupted)); });
}

PgkmStatus pgkm_moments_merge(PgkmRowMoments *moments, const PgkmRowMoments *other, PgkmError *error)
{
    return pgkm::guarded(error, [&] { pgkm::merge_moments(*moments, *other); });
}

void pgkm_dot_products(const double *matrix, int32_t rows, int32_t columns, const double *x, double *products)
{
    const pgkm::cpu::VectorKernels &kernels = pgkm::cpu::vector_kernels(pgkm::instruction_set());
    for (std::int32_t i = 0; i < rows; ++i)
        products[i] = kernels.dot(matrix + std::int64_t{i} * columns, x, columns);
}

void pgkm_weighted_sum(const double *matrix, int32_t rows, int32_t columns, const double *factors, double *sum)
{
    const pgkm::cpu::VectorKernels &kernels = pgkm::cpu::vector_kernels(pgkm::instruction_set());
    for (std::int32_t i = 0; i < rows; ++i)
        kernels.add(sum, factors[i], matrix + std::int64_t{i} * columns, columns);
}
