// fit_test - fits through the engine's API: options, weights, transformations, and what the figures of a model say of
// one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "draws.hpp"
#include "fit_run.hpp"

namespace {

TEST(Fit, TellsHowItWent)
{
    PgkmRequest request = request_for(two_clouds, 2, 2);
    request.kmeans.init = PGKM_INIT_RANDOM;
    request.kmeans.n_init = 3;
    request.kmeans.refine = 1;
    request.settings.tuning.assignment = "tiled";
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    const PgkmJobProgress progress = run.progress();
    EXPECT_EQ(progress.phase, PGKM_LABELLING);
    EXPECT_EQ(progress.restart, 2);
    EXPECT_GE(progress.iteration, 1);
    EXPECT_STREQ(progress.backend, "cpu");
    EXPECT_STREQ(progress.chosen.assignment, "tiled");
    EXPECT_EQ(progress.chosen.feature_sum, nullptr);
    EXPECT_EQ(progress.bytes_moved, 0u);
    for (const double seconds : progress.seconds)
        EXPECT_GT(seconds, 0.0);
}

// Two light rows in a cluster of their own, beside heavy ones of the same size elsewhere.
void expect_light_centroid(double ratio, double first, double second)
{
    const std::vector<double> values = {-10.0, -10.5, -11.0, first, second};
    const std::vector<double> weights = {1.0, 0.7, 1.3, ratio, 3.0 * ratio};
    PgkmRequest request = request_for(values, 1, 2);
    request.points.weights = weights.data();
    const std::vector<double> start = {-10.0, first};
    request.kmeans.init_centroids = {start.data(), 2, {2, 1, 0}};
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    ASSERT_EQ(run.result.k, 2);
    const double exact = (first + 3.0 * second) / 4.0;
    EXPECT_NEAR(run.result.centroids[1], exact, 1e-12 * std::fabs(exact)) << "ratio " << ratio;
    EXPECT_NEAR(run.result.centroids[0], -(10.0 + 7.35 + 14.3) / 3.0, 1e-14 * 10.55) << "ratio " << ratio;
}

TEST(Fit, WeightsOverManyDecadesGiveTheExactMean)
{
    for (int decade = 0; decade <= 15; ++decade) {
        expect_light_centroid(std::pow(10.0, -decade), 10.0, 10.5);
        expect_light_centroid(std::pow(10.0, -decade), -1.0, -3.25);
    }
}

TEST(Fit, FindsTwoClouds)
{
    const PgkmRequest request = request_for(two_clouds, 2, 2);
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    const PgkmResult &result = run.result;
    ASSERT_EQ(result.k, 2);
    EXPECT_EQ(result.n, 6);
    EXPECT_EQ(result.sizes[0], 3);
    EXPECT_EQ(result.sizes[1], 3);
    EXPECT_EQ(result.labels[0], result.labels[2]);
    EXPECT_EQ(result.labels[3], result.labels[5]);
    EXPECT_NE(result.labels[0], result.labels[3]);
    // Each cloud: squares 2/9, 5/9, 5/9 of the three points around their mean.
    EXPECT_NEAR(result.inertia, 8.0 / 3.0, 1e-12);
    EXPECT_DOUBLE_EQ(result.within_ss[0] + result.within_ss[1], result.inertia);
    EXPECT_EQ(result.converged, 1);
    EXPECT_STREQ(result.backend, "cpu");
    for (int i = 0; i < 6; ++i) {
        std::int32_t label;
        double distance;
        pgkm_nearest(two_clouds.data() + 2 * i, result.centroids, result.k, 2, &label, &distance);
        EXPECT_EQ(label, result.labels[i]);
        EXPECT_EQ(distance, result.distances[i]);
    }
}

TEST(Fit, SameSeedSameBitsOtherSeedOtherStart)
{
    std::vector<double> values;
    for (int i = 0; i < 400; ++i)
        values.push_back(std::sin(i * 12.9898) * 43.5);
    PgkmRequest request = request_for(values, 2, 7);
    request.kmeans.max_iter = 1;
    request.kmeans.seed = 5;
    const FitRun first(request), second(request);
    ASSERT_EQ(first.error.status, PGKM_OK);
    EXPECT_EQ(std::memcmp(first.result.centroids, second.result.centroids, 14 * sizeof(double)), 0);
    request.kmeans.seed = 6;
    const FitRun other(request);
    EXPECT_NE(std::memcmp(first.result.centroids, other.result.centroids, 14 * sizeof(double)), 0);
}

TEST(Fit, RestartsAreIndependentAndTheBestIsKept)
{
    const Values rows = Draws(5).clouds(900, 2, 9, 5.0);
    PgkmRequest request = request_for(rows, 2, 9);
    request.kmeans.init = PGKM_INIT_RANDOM;
    Values inertia;
    for (request.kmeans.n_init = 1; request.kmeans.n_init <= 8; ++request.kmeans.n_init)
        inertia.push_back(FitRun(request).result.inertia);
    EXPECT_TRUE(std::is_sorted(inertia.rbegin(), inertia.rend())) << "a restart made it worse";
    EXPECT_LT(inertia.back(), inertia.front()) << "no restart found anything better";
}

TEST(Fit, FewerDistinctRowsThanClusters)
{
    const std::vector<double> values = {0.1, 0.1, 0.1, 5.3, 5.3, 7.7};
    for (const PgkmInit init :
         {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST}) {
        PgkmRequest request = request_for(values, 1, 5);
        request.kmeans.init = init;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        EXPECT_EQ(run.result.k, 3) << "init " << init;
        std::int64_t rows = 0;
        for (int j = 0; j < run.result.k; ++j)
            rows += run.result.sizes[j];
        EXPECT_EQ(rows, 6);
        for (int i = 0; i < 6; ++i)
            EXPECT_LT(run.result.labels[i], run.result.k);
    }
}

TEST(Fit, HugeKIsBoundedByTheRows)
{
    const FitRun run(request_for(two_clouds, 2, INT32_MAX));
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.k, 6);
    EXPECT_EQ(run.result.inertia, 0.0);
}

TEST(Fit, WeightsCountAsRepeatedRows)
{
    const std::vector<double> once = {0, 1, 10, 12}, repeated = {0, 0, 0, 1, 10, 12, 12};
    const std::vector<double> weights = {3, 1, 1, 2}, start = {0, 10};
    PgkmRequest request = request_for(once, 1, 2);
    request.points.weights = weights.data();
    request.kmeans.init_centroids = {start.data(), 2, {2, 1, 0}};
    const FitRun weighted(request);
    request.points = request_for(repeated, 1, 2).points;
    const FitRun plain(request);
    ASSERT_EQ(weighted.error.status, PGKM_OK) << weighted.error.text;
    EXPECT_DOUBLE_EQ(weighted.result.centroids[0], plain.result.centroids[0]);
    EXPECT_DOUBLE_EQ(weighted.result.centroids[1], plain.result.centroids[1]);
    EXPECT_DOUBLE_EQ(weighted.result.inertia, plain.result.inertia);
}

TEST(Fit, RefusesWeightsWhoseSquaresOverflow)
{
    const std::vector<double> values = {1e150, -1e150, 1e149}, weights = {1e150, 1, 1};
    PgkmRequest request = request_for(values, 1, 2);
    request.points.weights = weights.data();
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    request.points.weights = nullptr;
    EXPECT_EQ(FitRun(request).error.status, PGKM_OK);
}

TEST(Fit, TolStopsLikeScikitLearn)
{
    // Variances of the features: 25.25 and 0; with tol = 1 every movement of summed square <= 12.625 ends it.
    const std::vector<double> values = {0, 7, 1, 7, 10, 7, 11, 7}, start = {0, 7, 1, 7};
    PgkmRequest request = request_for(values, 2, 2);
    request.kmeans.init_centroids = {start.data(), 2, {2, 2, 0}};
    request.kmeans.tol = 0.0;
    const FitRun exact(request);
    EXPECT_EQ(exact.result.n_iter, 3); // 0 | 1 10 11, then 0 1 | 10 11, then unchanged labels
    EXPECT_EQ(exact.result.converged, 1);
    request.kmeans.tol = 3.0; // first movement: (22/3 - 1)^2 = 40.1 > 37.9; the second: 10.3
    EXPECT_EQ(FitRun(request).result.n_iter, 2);
    request.kmeans.tol = 4.0; // 40.1 <= 50.5
    const FitRun loose(request);
    EXPECT_EQ(loose.result.n_iter, 1);
    EXPECT_EQ(loose.result.converged, 1);
    request.kmeans.tol = 0.0;
    request.kmeans.max_iter = 1;
    const FitRun cut(request);
    EXPECT_EQ(cut.result.converged, 0);
    // Labels, sizes and inertia are those of the final centroids, not of the last assignment.
    EXPECT_EQ(cut.result.labels[1], 0);
}

TEST(Fit, StandardizeRemovesTheScale)
{
    std::vector<double> values;
    for (int i = 0; i < 40; ++i) {
        values.push_back(1e6 * ((i * 37) % 41)); // a wide feature without structure
        values.push_back(i < 20 ? 0.0 : 1.0);    // a narrow one with two groups
        values.push_back(7.0);                   // a constant one
    }
    PgkmRequest request = request_for(values, 3, 2);
    request.kmeans.standardize = 1;
    request.kmeans.n_init = 8;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    ASSERT_NE(run.result.center, nullptr);
    EXPECT_DOUBLE_EQ(run.result.center[1], 0.5);
    EXPECT_DOUBLE_EQ(run.result.scale[1], 0.5);
    EXPECT_DOUBLE_EQ(run.result.scale[2], 1.0);
    std::vector<double> row(values.begin(), values.begin() + 3);
    ASSERT_EQ(pgkm_transform_row(row.data(), 3, run.result.center, run.result.scale, PGKM_L2, PGKM_FLOAT64), 1);
    std::int32_t label;
    double distance;
    pgkm_nearest(row.data(), run.result.centroids, run.result.k, 3, &label, &distance);
    EXPECT_EQ(label, run.result.labels[0]);
    EXPECT_EQ(distance, run.result.distances[0]);
}

TEST(Fit, CosineIgnoresLength)
{
    const std::vector<double> values = {1, 0, 100, 1, 0, 2, 1, 300};
    PgkmRequest request = request_for(values, 2, 2);
    request.kmeans.metric = PGKM_COSINE;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.labels[0], run.result.labels[1]);
    EXPECT_EQ(run.result.labels[2], run.result.labels[3]);
    EXPECT_NE(run.result.labels[0], run.result.labels[2]);
    EXPECT_NEAR(std::hypot(run.result.centroids[0], run.result.centroids[1]), 1.0, 1e-15);
    const std::vector<double> with_zero = {1, 0, 0, 0};
    PgkmRequest zero = request_for(with_zero, 2, 1);
    zero.kmeans.metric = PGKM_COSINE;
    const FitRun refused(zero);
    EXPECT_EQ(refused.error.status, PGKM_INVALID);
    EXPECT_NE(std::strstr(refused.error.text, "row 2"), nullptr) << refused.error.text;
}

void expect_consistent(const PgkmResult &model)
{
    std::vector<std::int64_t> counts(static_cast<std::size_t>(model.k));
    for (std::int64_t i = 0; i < model.n; ++i)
        ++counts[static_cast<std::size_t>(model.labels[i])];
    EXPECT_TRUE(std::equal(counts.begin(), counts.end(), model.sizes));
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 0);
    EXPECT_NEAR(std::accumulate(model.within_ss, model.within_ss + model.k, 0.0), model.inertia, 1e-12 * model.inertia);
    EXPECT_NEAR(std::accumulate(model.distances, model.distances + model.n, 0.0), model.inertia, 1e-11 * model.inertia);
}

TEST(Fit, IsConsistentForEveryWayToStart)
{
    const Values rows = Draws(1).clouds(2003, 3, 7, 5.0);
    for (const PgkmInit init :
         {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST}) {
        PgkmRequest request = request_for(rows, 3, 9);
        request.kmeans.init = init;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        expect_consistent(run.result);
        EXPECT_EQ(run.result.k, 9);
    }
}

// With given centroids the order of the rows must not matter either: sums are exact.
TEST(Fit, DoesNotDependOnTheOrderOfRows)
{
    const Values rows = Draws(3).clouds(1501, 1, 5, 5.0), start(rows.begin(), rows.begin() + 6);
    Values other = rows;
    std::shuffle(other.begin(), other.end(), std::mt19937_64(4));
    PgkmRequest request = request_for(rows, 1, 6);
    request.kmeans.init_centroids = {start.data(), 2, {6, 1, 0}};
    const FitRun before(request);
    request.points.values = other.data();
    const FitRun after(request);
    ASSERT_EQ(after.error.status, PGKM_OK) << after.error.text;
    EXPECT_TRUE(std::equal(before.result.centroids, before.result.centroids + 6, after.result.centroids));
    EXPECT_TRUE(std::equal(before.result.sizes, before.result.sizes + 6, after.result.sizes));
    EXPECT_TRUE(std::equal(before.result.within_ss, before.result.within_ss + 6, after.result.within_ss));
    EXPECT_EQ(before.result.inertia, after.result.inertia);
    EXPECT_EQ(before.result.n_iter, after.result.n_iter);
}

TEST(Fit, Float32RowsGiveCentroidsOfFloat32)
{
    const Values rows = Draws(7).clouds(501, 3, 4, 5.0);
    const std::vector<float> narrow(rows.begin(), rows.end());
    PgkmRequest request = request_for(rows, 3, 4);
    request.points.values = narrow.data();
    request.points.element = PGKM_FLOAT32;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    expect_consistent(run.result);
    for (int i = 0; i < 12; ++i)
        EXPECT_EQ(run.result.centroids[i], static_cast<double>(static_cast<float>(run.result.centroids[i])));
}

TEST(Fit, ExtremeValuesStayFinite)
{
    for (const double magnitude : {0x1p500, 1e100, 1e-100, 1e-150, 1e-290}) {
        const Values rows = Draws(8).fill(300, [&](Draws &draws) { return magnitude * (2.0 * draws.uniform() - 1.0); });
        const FitRun run(request_for(rows, 3, 5));
        if (magnitude < 0x1p-500) { // whose squares would be 0
            EXPECT_EQ(run.error.status, PGKM_INVALID);
            continue;
        }
        ASSERT_EQ(run.error.status, PGKM_OK) << magnitude << ": " << run.error.text;
        EXPECT_TRUE(std::isfinite(run.result.inertia)) << magnitude;
        for (int i = 0; i < 3 * run.result.k; ++i)
            EXPECT_LE(std::fabs(run.result.centroids[i]), magnitude);
    }
}

} // namespace
