// cluster_sums.cpp - sums over labelled rows, in blocks.
#include "engine/rows/cluster_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/api.h"
#include "numeric/contract.hpp"
#include "numeric/thread_pool.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t least_block_rows = 4096;
// Of sums of blocks that are not added up yet.
constexpr std::int64_t most_pending_sums = 1 << 23;

using Sums = std::vector<double>;

// A few milliseconds of distances.
std::int64_t rows_between_polls(const LabelledRows &rows)
{
    return std::max(std::int64_t{1}, (std::int64_t{1} << 22) / (std::int64_t{rows.k} * rows.points.d));
}

// Adds body(first, last, sums) over all blocks into sums of the given size. Blocks are long enough for as many sums as
// there are clusters.
Sums add_up(const LabelledRows &rows, std::size_t size,
            const std::function<void(std::int64_t, std::int64_t, Sums &)> &body)
{
    const std::int64_t n = rows.points.n, block_rows = std::max(least_block_rows, std::int64_t{rows.k});
    const std::int64_t blocks = (n + block_rows - 1) / block_rows;
    ThreadPool pool(rows.threads);
    // As many blocks at a time as keep the threads busy, and as their sums leave memory.
    const std::int64_t stride =
        std::clamp(most_pending_sums / static_cast<std::int64_t>(size), std::int64_t{1}, 4 * std::int64_t{pool.size()});
    std::vector<Sums> parts(static_cast<std::size_t>(std::min(blocks, stride)));
    Sums total(size, 0.0);
    for (std::int64_t begin = 0; begin < blocks; begin += stride) {
        const std::int64_t count = std::min(stride, blocks - begin);
        pool.run(count, [&](std::int64_t task, int) {
            rows.poll();
            Sums &part = parts[static_cast<std::size_t>(task)];
            part.assign(size, 0.0);
            const std::int64_t first = (begin + task) * block_rows;
            body(first, std::min(first + block_rows, n), part);
        });
        for (std::int64_t task = 0; task < count; ++task)
            for (std::size_t i = 0; i < size; ++i)
                total[i] += parts[static_cast<std::size_t>(task)][i];
    }
    return total;
}

double silhouette(Sums &squares, std::size_t own)
{
    const double a = std::sqrt(squares[own]);
    squares[own] = INFINITY;
    const double b = std::sqrt(*std::min_element(squares.begin(), squares.end()));
    return std::max(a, b) > 0.0 ? (b - a) / std::max(a, b) : 0.0;
}

std::size_t label(const LabelledRows &rows, std::int64_t i)
{
    return static_cast<std::size_t>(rows.labels[i]);
}

double weight(const LabelledRows &rows, std::int64_t i)
{
    return rows.points.weights == nullptr ? 1.0 : rows.points.weights[i];
}

// Calls body(row number, its features) for rows of a block.
template <typename T, typename Body>
void for_rows_of(const LabelledRows &rows, std::int64_t first, std::int64_t last, Body &&body)
{
    const std::int32_t d = rows.points.d;
    Sums row(static_cast<std::size_t>(d));
    for (std::int64_t i = first; i < last; ++i) {
        if ((i - first) % rows_between_polls(rows) == 0)
            rows.poll();
        const T *values = static_cast<const T *>(rows.points.values) + i * d;
        std::copy_n(values, d, row.begin());
        body(i, row.data());
    }
}

template <typename Body>
void for_rows(const LabelledRows &rows, std::int64_t first, std::int64_t last, Body &&body)
{
    if (rows.points.element == PGKM_FLOAT32)
        for_rows_of<float>(rows, first, last, body);
    else
        for_rows_of<double>(rows, first, last, body);
}

} // namespace

double mass_of_all(const Sums &masses)
{
    return std::accumulate(masses.begin(), masses.end(), 0.0);
}

double square_distance(const double *a, const double *b, std::int32_t d)
{
    double sum = 0.0;
    for (std::int32_t f = 0; f < d; ++f)
        sum += (a[f] - b[f]) * (a[f] - b[f]);
    return sum;
}

Sums LabelledRows::totals() const
{
    const auto d = static_cast<std::size_t>(points.d);
    return add_up(*this, (d + 1) * static_cast<std::size_t>(k), [&](std::int64_t first, std::int64_t last, Sums &sums) {
        for_rows(*this, first, last, [&](std::int64_t i, const double *row) {
            double *const to = sums.data() + (d + 1) * label(*this, i);
            for (std::size_t f = 0; f < d; ++f)
                to[f] += weight(*this, i) * row[f];
            to[d] += weight(*this, i);
        });
    });
}

Sums LabelledRows::masses(double max_weight) const
{
    const double scale = power_of_two(scale_exponent(max_weight));
    std::vector<Int128> sums(static_cast<std::size_t>(k));
    for (std::int64_t i = 0; i < points.n; ++i) {
        if (i % (std::int64_t{1} << 20) == 0)
            poll();
        sums[label(*this, i)] += quantise(weight(*this, i), scale);
    }
    Sums masses;
    for (const Int128 sum : sums)
        masses.push_back(to_double(sum) / scale);
    return masses;
}

Sums LabelledRows::spreads(const double *means, const double *centroids) const
{
    const auto clusters = static_cast<std::size_t>(k), d = static_cast<std::size_t>(points.d);
    return add_up(*this, clusters + 2, [&](std::int64_t first, std::int64_t last, Sums &sums) {
        Sums squares(clusters);
        for_rows(*this, first, last, [&](std::int64_t i, const double *row) {
            const std::size_t own = label(*this, i);
            const double square = square_distance(row, means + (d + 1) * own, points.d);
            sums[own] += weight(*this, i) * std::sqrt(square);
            sums[clusters] += weight(*this, i) * square;
            pgkm_distances(row, centroids, k, points.d, squares.data());
            sums[clusters + 1] += weight(*this, i) * silhouette(squares, own);
        });
    });
}

} // namespace pgkm
