// cases.cpp (reduce) - a histogram, means by cell, a step of k-means, sums of products, responsibilities.
#include "cases.hpp"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "measure.hpp"
#include "numeric/contract.hpp"

namespace bench {
namespace {

// least(99, floor(x * 100))
std::int32_t cell_of(Program &program)
{
    const std::int32_t hundredfold = program.add(PGKM_MULTIPLY, {program.column(0), program.constant(100.0)});
    return program.add(PGKM_LEAST, {program.constant(99.0), program.add(PGKM_FLOOR, {hundredfold})});
}

// One assignment with its sums: the count of each cluster, then the sums of its values.
Run assignment(const std::vector<float> &values, std::int32_t d, std::int32_t k, const std::vector<float> &centroids)
{
    const auto rows = std::make_shared<Loaded>(values, d, on_cpu() ? "direct" : nullptr);
    return {"assign", [=] {
                std::vector<float> start = centroids;
                const std::vector<PgkmFeatureScale> scales(static_cast<std::size_t>(d), pgkm::sum_scale(0.0, 1.0, 1.0));
                PgkmProblem problem = rows->all;
                problem.k = k;
                problem.centroids = start.data();
                problem.feature_scales = scales.data();
                std::vector<PgkmInt128> totals(static_cast<std::size_t>(k * d)), masses(static_cast<std::size_t>(k));
                PgkmAssignment out = {nullptr, nullptr, totals.data(), masses.data(), nullptr, nullptr};
                check(options.backend->assign(rows->data, &problem, 1, &out, &rows->error), rows->error);
                std::vector<double> sums;
                for (std::size_t i = 0; i < totals.size(); ++i) {
                    if (i % static_cast<std::size_t>(d) == 0)
                        sums.push_back(static_cast<double>(masses[i / static_cast<std::size_t>(d)].lo));
                    const auto total = static_cast<double>(totals[i].lo); // values are not negative, sums below 2^64
                    sums.push_back(
                        pgkm::scale_by(total + 0x1p64 * static_cast<double>(totals[i].hi), -scales[0].exponent));
                }
                return sums;
            }};
}

// Of each cluster: the count of its rows, then the sums of their values.
std::vector<double> plain_step(const std::vector<float> &values, const std::vector<float> &centroids, std::size_t d)
{
    std::vector<double> sums(centroids.size() / d * (d + 1));
    for (const float *row = values.data(); row != values.data() + values.size(); row += d) {
        std::size_t label = 0;
        float least = INFINITY;
        for (std::size_t j = 0; j < centroids.size() / d; ++j) {
            float square = 0.0F;
            for (std::size_t i = 0; i < d; ++i)
                square += (row[i] - centroids[j * d + i]) * (row[i] - centroids[j * d + i]);
            if (square < least) {
                least = square;
                label = j;
            }
        }
        double *const of = sums.data() + label * (d + 1);
        of[0] += 1.0;
        for (std::size_t i = 0; i < d; ++i)
            of[i + 1] += static_cast<double>(row[i]);
    }
    return sums;
}

void kmeans_step(const char *name, std::int64_t n, std::int32_t d, std::int32_t k)
{
    const std::vector<float> values = uniform(n * d);
    Program program;
    const std::vector<float> centroids(values.begin(), values.begin() + k * d);
    program.parameters.assign(centroids.begin(), centroids.end());
    const std::int32_t cell = program.nearest(k, d, 0), i = program.loop(d);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.item(program.column(0, program.index(i), d), PGKM_COMBINE_SUM, i);
    program.object(k, cell);
    std::vector<Run> runs = runs_of(values, d, program);
    runs.insert(runs.begin(), assignment(values, d, k, centroids));
    add_plain(runs, [&] { return plain_step(values, centroids, static_cast<std::size_t>(d)); });
    measure(name, runs);
}

} // namespace

void histogram()
{
    const std::vector<float> values = uniform(1 << 24);
    Program program;
    program.item(-1, PGKM_COMBINE_COUNT);
    program.object(100, cell_of(program));
    std::vector<Run> runs = runs_of(values, 1, program);
    add_plain(runs, [&] {
        std::vector<double> counts(100);
        for (const float value : values) {
            const double x = static_cast<double>(value);
            counts[static_cast<std::size_t>(std::fmin(99.0, std::floor(x * 100.0)))] += 1.0;
        }
        return counts;
    });
    measure("histogram", runs);
}

void mean()
{
    const std::vector<float> values = uniform(1 << 24);
    Program program;
    const std::int32_t y = program.column(1);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.item(y);
    program.item(program.add(PGKM_MULTIPLY, {y, y}));
    program.object(100, cell_of(program));
    std::vector<Run> runs = runs_of(values, 2, program);
    add_plain(runs, [&] {
        std::vector<double> sums(300);
        for (std::size_t i = 0; i < values.size(); i += 2) {
            const double x = static_cast<double>(values[i]), v = static_cast<double>(values[i + 1]);
            const auto cell = static_cast<std::size_t>(std::fmin(99.0, std::floor(x * 100.0))) * 3;
            sums[cell] += 1.0;
            sums[cell + 1] += v;
            sums[cell + 2] += v * v;
        }
        return sums;
    });
    measure("mean", runs);
}

void kmeans()
{
    kmeans_step("k-means", 4000000, 8, 100);
}

void figure7()
{
    kmeans_step("figure-7", 1 << 25, 3, 10);
}

void moments()
{
    constexpr std::int32_t d = 80;
    const std::vector<float> values = uniform(262144 * d);
    Program program;
    const std::int32_t e = program.loop(d * d), at = program.index(e), width = program.constant(d);
    const std::int32_t a = program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {at, width})});
    const std::int32_t b = program.add(PGKM_MODULO, {at, width});
    program.item(program.add(PGKM_MULTIPLY, {program.column(0, a, d), program.column(0, b, d)}), PGKM_COMBINE_SUM, e);
    program.object(1, -1);
    std::vector<Run> runs = runs_of(values, d, program);
    const auto rows = std::make_shared<Loaded>(values, d);
    runs.insert(runs.begin(),
                {"moments", [rows] {
                     std::vector<double> shift(d), sums(d), cross(d * (d + 1) / 2), all;
                     PgkmMoments out = {shift.data(), sums.data(), cross.data(), 0.0};
                     check(options.backend->moments(rows->data, &rows->all, 1, &out, &rows->error), rows->error);
                     for (std::size_t i = 0; i < d; ++i)
                         for (std::size_t j = 0; j < d; ++j)
                             all.push_back(i >= j ? cross[i * (i + 1) / 2 + j] : cross[j * (j + 1) / 2 + i]);
                     return all;
                 }});
    add_plain(runs, [&] {
        std::vector<double> cross(d * d);
        for (const float *row = values.data(); row != values.data() + values.size(); row += d)
            for (std::size_t a = 0; a < d; ++a)
                for (std::size_t b = 0; b < d; ++b)
                    cross[a * d + b] += static_cast<double>(row[a]) * static_cast<double>(row[b]);
        return cross;
    });
    measure("moments", runs);
}

// value: exp(-s[j]) / sum(l, k, exp(-s[l])), s[j] = sum(i, d, power(f[i] - c[j][i], 2)), for each j
void softmax()
{
    constexpr std::int32_t d = 8, k = 16;
    const std::vector<float> values = uniform(1000000 * d);
    Program program;
    program.parameters.assign(values.begin(), values.begin() + k * d);
    const std::int32_t j = program.loop(k), l = program.loop(k);
    const auto density = [&](std::int32_t loop) {
        const std::int32_t i = program.loop(d), at = program.index(i);
        const std::int32_t difference =
            program.add(PGKM_SUBTRACT, {program.column(0, at, d), program.parameter(0, program.index(loop), k, at, d)});
        const std::int32_t square = program.add(PGKM_POWER, {difference, program.constant(2.0)});
        return program.add(PGKM_EXP, {program.add(PGKM_NEGATE, {program.add(PGKM_SUM, {square}, i)})});
    };
    const std::int32_t own = density(j), all = program.add(PGKM_SUM, {density(l)}, l);
    program.item(program.add(PGKM_DIVIDE, {own, all}), PGKM_COMBINE_SUM, j);
    program.object(1, -1);
    measure("softmax", runs_of(values, d, program));
}

} // namespace bench
