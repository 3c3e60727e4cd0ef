// cluster_sums.cpp - sums over labelled rows, in blocks.
#include "engine/rows/cluster_sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/api.h"
#include "numeric/index.hpp"
#include "numeric/reduction.hpp"

namespace pgkm {
namespace {

void copy_row(const PgkmPoints &points, std::int64_t i, double *row)
{
    if (points.element == PGKM_FLOAT32)
        std::copy_n(static_cast<const float *>(points.values) + i * points.d, points.d, row);
    else
        std::copy_n(static_cast<const double *>(points.values) + i * points.d, points.d, row);
}

// Of a row, from its squared distances to all centroids, which are spoiled.
double silhouette(std::vector<double> &squares, std::size_t own)
{
    const double a = std::sqrt(squares[own]);
    squares[own] = INFINITY;
    const double b = std::sqrt(*std::min_element(squares.begin(), squares.end()));
    return std::max(a, b) > 0.0 ? (b - a) / std::max(a, b) : 0.0;
}

} // namespace

double mass_of_all(const std::vector<double> &masses)
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

std::vector<double> LabelledRows::spreads(const double *means, const double *centroids) const
{
    const std::int64_t values = std::int64_t{k} + 2;
    if (points.n == 0)
        return std::vector<double>(at(values), 0.0);
    const SumPlan plan = plan_sums(points.n, block_rows, values, 1);
    std::vector<double> memory(at(plan.memory()), 0.0);
    OrderedSums sums(plan, memory.data());
    const auto run = [&](std::int64_t tasks, const auto &body) { pool.run(tasks, body); };
    const std::int64_t rows_per_poll = (1 << 22) / (std::int64_t{k} * points.d) + 1;
    const auto add = [&](const ReductionTask &task, double *into, int) {
        std::vector<double> row(at(points.d)), squares(at(k));
        for (std::int64_t i = task.first; i < task.last; ++i) {
            if ((i - task.first) % rows_per_poll == 0)
                poll();
            copy_row(points, i, row.data());
            const std::int32_t own = labels[i];
            const double weight = points.weights == nullptr ? 1.0 : points.weights[i];
            const double square = square_distance(row.data(), means + std::int64_t{own} * points.d, points.d);
            into[own] += weight * std::sqrt(square);
            into[k] += weight * square;
            if (centroids == nullptr)
                continue;
            pgkm_distances(row.data(), centroids, k, points.d, squares.data());
            into[k + 1] += weight * silhouette(squares, at(own));
        }
    };
    sums.add(0, points.n, run, add);
    return {sums.total(), sums.total() + values};
}

} // namespace pgkm
