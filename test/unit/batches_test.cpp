// batches_test.cpp - fits by mini-batches, and fits that go on from a model, beside plain loops.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/rows/batch_order.hpp"
#include "fit_run.hpp"
#include "numeric/contract.hpp"
#include "numeric/row_key.hpp"

namespace {

std::vector<double> clouds(std::size_t n)
{
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i)
        for (int f = 0; f < 2; ++f)
            values.push_back(static_cast<double>(i % 3) * (f + 1) * 10.0 + normal(random));
    return values;
}

std::vector<double> reversed(const std::vector<double> &values)
{
    std::vector<double> result;
    for (std::size_t i = values.size(); i > 0; i -= 2)
        result.insert(result.end(), {values[i - 2], values[i - 1]});
    return result;
}

PgkmRequest batches_of(const std::vector<double> &values, std::int32_t size)
{
    PgkmRequest request = request_for(values, 2, 3);
    request.kmeans.batch_size = size;
    return request;
}

// Sculley's algorithm 1, row by row, one pass over the rows in batch order; a centroid moves when its batch has ended.
std::vector<double> plain_pass(const std::vector<double> &values, std::vector<double> centroids, std::int64_t size)
{
    const PgkmPoints points = request_for(values, 2, 3).points;
    const std::vector<std::int64_t> order = pgkm::batch_order(points, 0, points.n, 0, [] {});
    const std::int64_t batches = points.n / size;
    std::vector<double> seen(3, 0.0);
    for (std::int64_t b = 0, row = 0; b < batches; ++b) {
        const std::int64_t end = (b + 1) * (points.n / batches) + std::min(b + 1, points.n % batches);
        const std::vector<double> cached = centroids;
        for (; row < end; ++row) {
            const double *x = values.data() + 2 * order[static_cast<std::size_t>(row)];
            std::size_t nearest = 0;
            for (std::size_t j = 1; j < 3; ++j)
                if (pgkm::exact_distance(x, cached.data() + 2 * j, 2) <
                    pgkm::exact_distance(x, cached.data() + 2 * nearest, 2))
                    nearest = j;
            seen[nearest] += 1.0;
            for (std::size_t f = 0; f < 2; ++f)
                centroids[2 * nearest + f] += (x[f] - centroids[2 * nearest + f]) / seen[nearest];
        }
    }
    return centroids;
}

TEST(Batches, OnePassIsSculleys)
{
    const std::vector<double> values = clouds(1003), start = {1, 1, 8, 22, 25, 30};
    PgkmRequest request = batches_of(values, 100);
    request.kmeans.init_centroids = {start.data(), 2, {3, 2, 0}};
    request.kmeans.max_iter = 1;
    request.kmeans.tol = 0.0;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.n_iter, 1);
    EXPECT_EQ(run.result.converged, 0);
    const std::vector<double> expected = plain_pass(values, start, 100);
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(run.result.centroids[i], expected[i], 1e-11);
}

TEST(Batches, DoNotDependOnTheOrderOfRows)
{
    std::vector<double> values = clouds(2000);
    for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE}) {
        PgkmRequest request = batches_of(values, 64);
        request.kmeans.metric = metric;
        request.kmeans.standardize = 1;
        const FitRun run(request);
        const std::vector<double> other = reversed(values);
        request.points.values = other.data();
        const FitRun again(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        ASSERT_EQ(again.error.status, PGKM_OK) << again.error.text;
        EXPECT_TRUE(std::equal(run.result.centroids, run.result.centroids + 6, again.result.centroids));
        EXPECT_EQ(run.result.inertia, again.result.inertia);
        EXPECT_EQ(run.result.n_iter, again.result.n_iter);
        for (std::size_t i = 0; i < 2000; ++i) {
            ASSERT_EQ(run.result.labels[i], again.result.labels[1999 - i]);
            ASSERT_EQ(run.result.distances[i], again.result.distances[1999 - i]);
        }
    }
}

TEST(Batches, FindTheCloudsOfAWholeFit)
{
    const std::vector<double> values = clouds(3000);
    const FitRun whole(batches_of(values, 0)), parts(batches_of(values, 100));
    ASSERT_EQ(parts.error.status, PGKM_OK) << parts.error.text;
    EXPECT_EQ(parts.result.converged, 1);
    EXPECT_NEAR(parts.result.inertia, whole.result.inertia, 1e-3 * whole.result.inertia);
}

// A row of weight 2 counts like two rows in the mean that a centroid has seen.
TEST(Batches, WeightsAreMasses)
{
    const std::vector<double> values = {0, 0, 1, 0}, weights = {3, 1}, start = {0.2, 0};
    PgkmRequest request = request_for(values, 2, 1);
    request.points.weights = weights.data();
    request.kmeans.batch_size = 1;
    request.kmeans.max_iter = 1;
    request.kmeans.init_centroids = {start.data(), 2, {1, 2, 0}};
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_NEAR(run.result.centroids[0], 0.25, 1e-15);
}

TEST(Batches, SpreadRowsThatRepeat)
{
    std::vector<double> values;
    for (int i = 0; i < 2000; ++i)
        values.insert(values.end(), {i < 1000 ? 1.0 : 2.0, 0.0});
    const PgkmPoints points = request_for(values, 2, 3).points;
    const std::vector<std::int64_t> order = pgkm::batch_order(points, 0, 2000, 5, [] {});
    for (std::size_t first = 0; first < 2000; first += 200) {
        const auto ones = std::count_if(order.begin() + static_cast<std::ptrdiff_t>(first),
                                        order.begin() + static_cast<std::ptrdiff_t>(first + 200),
                                        [](std::int64_t row) { return row < 1000; });
        EXPECT_GT(ones, 60);
        EXPECT_LT(ones, 140);
    }
    std::vector<std::int64_t> sorted = order, all(2000);
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(sorted, all);
}

TEST(Batches, RefuseWhatDoesNotGoWithThem)
{
    const std::vector<double> values = clouds(30);
    PgkmRequest request = batches_of(values, 10);
    request.kmeans.init = PGKM_INIT_FIRST;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    request = batches_of(values, 10);
    request.kmeans.refine = 1;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    EXPECT_EQ(FitRun(batches_of(values, -1)).error.status, PGKM_INVALID);
}

// A fit that is cut in two by a model is the whole fit, to the last bit.
TEST(InitModel, GoesOnInTheUnitsOfTheModel)
{
    const std::vector<double> values = clouds(700);
    for (const std::int32_t standardize : {0, 1})
        for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE}) {
            PgkmRequest request = request_for(values, 2, 7);
            request.kmeans.init = PGKM_INIT_RANDOM;
            request.kmeans.tol = 0.0;
            request.kmeans.standardize = standardize;
            request.kmeans.metric = metric;
            const FitRun whole(request);
            request.kmeans.max_iter = 2;
            const FitRun begun(request);
            ASSERT_EQ(begun.error.status, PGKM_OK) << begun.error.text;
            const auto given = [&](const double *array) {
                return array == nullptr ? PgkmGiven{nullptr, 0, {}} : PgkmGiven{array, 1, {2, 0, 0}};
            };
            request.kmeans.max_iter = 300;
            request.kmeans.init_model = {{begun.result.centroids, 2, {7, 2, 0}},
                                         given(begun.result.center),
                                         given(begun.result.scale),
                                         metric,
                                         {},
                                         {},
                                         PGKM_COVARIANCE_FULL};
            const FitRun continued(request);
            ASSERT_EQ(continued.error.status, PGKM_OK) << continued.error.text;
            EXPECT_TRUE(std::equal(whole.result.centroids, whole.result.centroids + 14, continued.result.centroids));
            EXPECT_EQ(whole.result.inertia, continued.result.inertia);
            EXPECT_EQ(whole.result.n_iter, begun.result.n_iter + continued.result.n_iter);
            request.kmeans.metric = metric == PGKM_L2 ? PGKM_COSINE : PGKM_L2;
            EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
        }
}

} // namespace
