// api_test - the engine as the server sees it: jobs, options, models.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/api.h"

namespace {

PgkmFitRequest request_for(const std::vector<double> &values, std::int32_t d, std::int64_t k)
{
    PgkmFitRequest request = {};
    request.points = {values.data(), PGKM_FLOAT64, static_cast<std::int64_t>(values.size()) / d, d, nullptr};
    request.k = k;
    pgkm_options_default(&request.options);
    request.settings.backend = PGKM_BACKEND_CPU;
    request.want_labels = 1;
    request.want_distances = 1;
    return request;
}

// Runs a job to its end; the result lives as long as this.
class FitRun {
  public:
    explicit FitRun(const PgkmFitRequest &request)
    {
        if (pgkm_fit_start(&request, &job_, &error) != PGKM_OK)
            return;
        while (pgkm_job_wait(job_, 1000) == 0) {
        }
        pgkm_job_result(job_, &result, &error);
    }
    ~FitRun() { pgkm_job_free(job_); }
    FitRun(const FitRun &) = delete;
    FitRun &operator=(const FitRun &) = delete;

    PgkmError     error = {};
    PgkmFitResult result = {};

  private:
    PgkmJob *job_ = nullptr;
};

const std::vector<double> two_clouds = {0, 0, 0, 1, 1, 0, 10, 10, 10, 11, 11, 10};

// Groups of one request give what each gives alone.
class Groups : public testing::Test {
  protected:
    static constexpr std::int32_t d = 3;

    void SetUp() override
    {
        for (int g = 0; g < 40; ++g) {
            const std::int64_t n = 1 + g * g % 97;
            std::vector<double> rows, row_weights;
            for (std::int64_t i = 0; i < n * d; ++i)
                rows.push_back(std::sin(static_cast<double>(i * i + 31 * g)) * (g + 1) + 0.1);
            for (std::int64_t i = 0; i < n; ++i)
                row_weights.push_back(1.0 + static_cast<double>((i + g) % 4));
            values.push_back(rows);
            weights.push_back(row_weights);
        }
    }

    void expect_same(PgkmOptions options, bool weighted)
    {
        std::vector<PgkmGroup> groups;
        for (std::size_t g = 0; g < values.size(); ++g)
            groups.push_back({values[g].data(), weighted ? weights[g].data() : nullptr,
                              static_cast<std::int64_t>(weights[g].size()), 1 + static_cast<std::int64_t>(g % 6)});
        PgkmFitRequest together = request_for(values[0], d, 1);
        together.options = options;
        together.points.values = nullptr;
        together.points.n = 0;
        together.want_labels = together.want_distances = 0;
        together.groups = groups.data();
        together.n_groups = static_cast<std::int64_t>(groups.size());
        PgkmJob *job = nullptr;
        PgkmError error = {};
        ASSERT_EQ(pgkm_fit_start(&together, &job, &error), PGKM_OK) << error.text;
        while (pgkm_job_wait(job, 1000) == 0) {
        }
        for (std::size_t g = 0; g < groups.size(); ++g) {
            PgkmFitRequest alone = request_for(values[g], d, groups[g].k);
            alone.options = options;
            alone.points.weights = groups[g].weights;
            const FitRun run(alone);
            PgkmFitResult result = {};
            ASSERT_EQ(pgkm_job_group_result(job, static_cast<std::int64_t>(g), &result, &error), PGKM_OK) << error.text;
            ASSERT_EQ(result.k, run.result.k) << g;
            EXPECT_EQ(result.n, run.result.n) << g;
            EXPECT_EQ(result.n_iter, run.result.n_iter) << g;
            EXPECT_EQ(result.converged, run.result.converged) << g;
            EXPECT_EQ(result.inertia, run.result.inertia) << g;
            EXPECT_TRUE(std::equal(result.centroids, result.centroids + result.k * d, run.result.centroids)) << g;
            EXPECT_TRUE(std::equal(result.sizes, result.sizes + result.k, run.result.sizes)) << g;
            ASSERT_EQ(result.center == nullptr, run.result.center == nullptr) << g;
            if (result.center != nullptr) {
                EXPECT_TRUE(std::equal(result.center, result.center + d, run.result.center)) << g;
                EXPECT_TRUE(std::equal(result.scale, result.scale + d, run.result.scale)) << g;
            }
        }
        PgkmFitResult none;
        EXPECT_EQ(pgkm_job_group_result(job, together.n_groups, &none, &error), PGKM_INTERNAL);
        pgkm_job_free(job);
    }

    std::vector<std::vector<double>> values, weights;
};

TEST_F(Groups, AreFittedAsAlone)
{
    PgkmOptions options;
    pgkm_options_default(&options);
    expect_same(options, false);
    expect_same(options, true);
    options.n_init = 4;
    options.init = PGKM_INIT_RANDOM;
    expect_same(options, false);
}

TEST_F(Groups, AreTransformedAsAlone)
{
    PgkmOptions options;
    pgkm_options_default(&options);
    options.standardize = 1;
    expect_same(options, false);
    options.metric = PGKM_COSINE;
    options.standardize = 0;
    expect_same(options, true);
}

TEST_F(Groups, OneOfThemCanBeWrong)
{
    const std::vector<double> zero(d, 0.0);
    const PgkmGroup groups[] = {{values[5].data(), nullptr, 26, 2}, {zero.data(), nullptr, 1, 1}};
    PgkmFitRequest request = request_for(values[0], d, 1);
    request.options.metric = PGKM_COSINE;
    request.groups = groups;
    request.n_groups = 2;
    const FitRun run(request);
    EXPECT_EQ(run.error.status, PGKM_INVALID);
}

// What stays of one fit does not show in the next.
TEST(Resident, GivesTheSame)
{
    std::vector<double> rows;
    for (int i = 0; i < 3000; ++i)
        rows.push_back(std::sin(i * 12.9898) * 100.0 + i % 7);
    PgkmResident *resident = pgkm_resident_create();
    ASSERT_NE(resident, nullptr);
    for (const std::int64_t k : {3, 8, 3, 50}) {
        for (const PgkmMetric metric : {PGKM_L2, PGKM_L2, PGKM_COSINE}) {
            PgkmFitRequest request = request_for(rows, 3, k);
            request.options.metric = metric;
            request.options.tol = k == 8 ? 0.0 : 1e-4;
            const FitRun alone(request);
            request.resident = resident;
            const FitRun run(request);
            ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
            ASSERT_EQ(run.result.k, alone.result.k);
            EXPECT_EQ(run.result.inertia, alone.result.inertia);
            EXPECT_EQ(run.result.n_iter, alone.result.n_iter);
            EXPECT_TRUE(std::equal(run.result.labels, run.result.labels + run.result.n, alone.result.labels));
        }
    }
    PgkmFitRequest wrong = request_for(rows, 3, 3);
    wrong.resident = resident;
    wrong.settings.tuning.assignment = "none such";
    EXPECT_EQ(FitRun(wrong).error.status, PGKM_UNSUPPORTED);
    pgkm_resident_free(resident);
    pgkm_resident_free(nullptr);
}

TEST(Sweep, GivesEachFitAndItsQuality)
{
    PgkmFitRequest request = request_for(two_clouds, 2, 1);
    request.k_last = 6;
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_fit_start(&request, &job, &error), PGKM_OK) << error.text;
    while (pgkm_job_wait(job, 1000) == 0) {
    }
    for (std::int64_t k = 1; k <= 6; ++k) {
        PgkmFitResult result;
        ASSERT_EQ(pgkm_job_group_result(job, k - 1, &result, &error), PGKM_OK) << error.text;
        const FitRun alone(request_for(two_clouds, 2, k));
        EXPECT_EQ(result.inertia, alone.result.inertia) << k;
        EXPECT_EQ(result.labels, nullptr);
        EXPECT_EQ(std::isnan(result.quality.davies_bouldin), k == 1 || k == 6) << k;
    }
    // Two clouds of three rows (0,0), (0,1), (1,0), 10 apart in both features.
    PgkmFitResult two;
    ASSERT_EQ(pgkm_job_group_result(job, 1, &two, &error), PGKM_OK);
    const double spread = (std::sqrt(2.0) / 3.0 + 2.0 * std::sqrt(5.0) / 3.0) / 3.0;
    EXPECT_NEAR(two.quality.davies_bouldin, 2.0 * spread / std::sqrt(200.0), 1e-12);
    EXPECT_NEAR(two.quality.calinski_harabasz, 6.0 * 50.0 * 4.0 / (8.0 / 3.0), 1e-9);
    // The arrays of all models together would pass any limit that holds for one.
    EXPECT_EQ(two.k, 2);
    EXPECT_EQ(two.centroids, nullptr);
    EXPECT_EQ(two.sizes, nullptr);
    EXPECT_EQ(two.within_ss, nullptr);
    pgkm_job_free(job);
    request.k_last = 0;
    request.k = 3;
    request.k_last = 2;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
}

// However little each of them is to do, many fits are no work for the server's thread, which
// would hear of no interrupt meanwhile.
TEST(Fit, ManySmallOnesCanBeCancelled)
{
    const std::vector<double> row = {1.0};
    PgkmFitRequest sweep = request_for(row, 1, 1);
    sweep.k_last = 300000;
    const std::vector<PgkmGroup> groups(300000, {row.data(), nullptr, 1, 1});
    PgkmFitRequest grouped = request_for(row, 1, 1);
    grouped.groups = groups.data();
    grouped.n_groups = static_cast<std::int64_t>(groups.size());
    for (const PgkmFitRequest &request : {sweep, grouped}) {
        PgkmJob *job = nullptr;
        PgkmError error = {};
        ASSERT_EQ(pgkm_fit_start(&request, &job, &error), PGKM_OK) << error.text;
        EXPECT_EQ(pgkm_job_wait(job, 0), 0) << "it had ended when its start returned";
        pgkm_job_free(job);
    }
}

TEST(Fit, TellsHowItWent)
{
    PgkmFitRequest request = request_for(two_clouds, 2, 2);
    request.options.init = PGKM_INIT_RANDOM;
    request.options.n_init = 3;
    request.settings.tuning.assignment = "tiled";
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_fit_start(&request, &job, &error), PGKM_OK) << error.text;
    while (pgkm_job_wait(job, 1000) == 0) {
    }
    PgkmJobProgress progress;
    pgkm_job_progress(job, &progress);
    PgkmFitResult result;
    ASSERT_EQ(pgkm_job_result(job, &result, &error), PGKM_OK) << error.text;
    EXPECT_EQ(progress.phase, PGKM_LABELLING);
    EXPECT_EQ(progress.restart, 2);
    EXPECT_GE(progress.iteration, 1);
    EXPECT_STREQ(progress.backend, "cpu");
    EXPECT_STREQ(progress.chosen.assignment, "tiled");
    EXPECT_EQ(progress.chosen.feature_sum, nullptr);
    EXPECT_EQ(progress.bytes_moved, 0u);
    for (const double seconds : progress.seconds)
        EXPECT_GT(seconds, 0.0);
    pgkm_job_free(job);
}

TEST(Fit, FindsTwoClouds)
{
    const PgkmFitRequest request = request_for(two_clouds, 2, 2);
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    const PgkmFitResult &result = run.result;
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
    PgkmFitRequest request = request_for(values, 2, 7);
    request.options.max_iter = 1;
    request.options.seed = 5;
    const FitRun first(request), second(request);
    ASSERT_EQ(first.error.status, PGKM_OK);
    EXPECT_EQ(std::memcmp(first.result.centroids, second.result.centroids, 14 * sizeof(double)), 0);
    request.options.seed = 6;
    const FitRun other(request);
    EXPECT_NE(std::memcmp(first.result.centroids, other.result.centroids, 14 * sizeof(double)), 0);
}

TEST(Fit, RestartsKeepTheLowestInertia)
{
    std::vector<double> values;
    for (int i = 0; i < 300; ++i)
        values.push_back(std::fmod(i * 7919.0, 101.0) + 1000.0 * (i % 7));
    PgkmFitRequest request = request_for(values, 1, 7);
    request.options.init = PGKM_INIT_RANDOM;
    request.options.n_init = 12;
    const FitRun best(request);
    request.options.n_init = 1;
    const FitRun one(request);
    ASSERT_EQ(best.error.status, PGKM_OK);
    EXPECT_LE(best.result.inertia, one.result.inertia);
}

TEST(Fit, FewerDistinctRowsThanClusters)
{
    const std::vector<double> values = {0.1, 0.1, 0.1, 5.3, 5.3, 7.7};
    for (const PgkmInit init :
         {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST}) {
        PgkmFitRequest request = request_for(values, 1, 5);
        request.options.init = init;
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
    PgkmFitRequest request = request_for(once, 1, 2);
    request.points.weights = weights.data();
    request.options.init = PGKM_INIT_GIVEN;
    request.options.init_centroids = start.data();
    request.options.init_rows = 2;
    request.options.init_columns = 1;
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
    PgkmFitRequest request = request_for(values, 1, 2);
    request.points.weights = weights.data();
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    request.points.weights = nullptr;
    EXPECT_EQ(FitRun(request).error.status, PGKM_OK);
}

TEST(Fit, TolStopsLikeScikitLearn)
{
    // Variance of the feature: 25.25; with tol = 1 every movement of summed square <= 25.25 ends it.
    const std::vector<double> values = {0, 1, 10, 11}, start = {0, 1};
    PgkmFitRequest request = request_for(values, 1, 2);
    request.options.init = PGKM_INIT_GIVEN;
    request.options.init_centroids = start.data();
    request.options.init_rows = 2;
    request.options.init_columns = 1;
    request.options.tol = 0.0;
    const FitRun exact(request);
    EXPECT_EQ(exact.result.n_iter, 3); // 0 | 1 10 11, then 0 1 | 10 11, then unchanged labels
    EXPECT_EQ(exact.result.converged, 1);
    request.options.tol = 2.0; // first movement: (22/3 - 1)^2 = 40.1 <= 50.5
    const FitRun loose(request);
    EXPECT_EQ(loose.result.n_iter, 1);
    EXPECT_EQ(loose.result.converged, 1);
    request.options.tol = 0.0;
    request.options.max_iter = 1;
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
    PgkmFitRequest request = request_for(values, 3, 2);
    request.options.standardize = 1;
    request.options.n_init = 8;
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
    PgkmFitRequest request = request_for(values, 2, 2);
    request.options.metric = PGKM_COSINE;
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.labels[0], run.result.labels[1]);
    EXPECT_EQ(run.result.labels[2], run.result.labels[3]);
    EXPECT_NE(run.result.labels[0], run.result.labels[2]);
    EXPECT_NEAR(std::hypot(run.result.centroids[0], run.result.centroids[1]), 1.0, 1e-15);
    const std::vector<double> with_zero = {1, 0, 0, 0};
    PgkmFitRequest zero = request_for(with_zero, 2, 1);
    zero.options.metric = PGKM_COSINE;
    const FitRun refused(zero);
    EXPECT_EQ(refused.error.status, PGKM_INVALID);
    EXPECT_NE(std::strstr(refused.error.text, "row 2"), nullptr) << refused.error.text;
}

TEST(TransformRow, RoundsFloat32RowsAsTheFitDoes)
{
    const std::vector<float> values = {0.1F, 0.7F, 3.3F, -2.9F, 0.3F, 0.2F};
    for (const int standardize : {0, 1}) {
        PgkmFitRequest request = request_for({}, 2, 2);
        request.points = {values.data(), PGKM_FLOAT32, 3, 2, nullptr};
        request.options.metric = PGKM_COSINE;
        request.options.standardize = standardize;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        for (int i = 0; i < 3; ++i) {
            std::vector<double> row(values.begin() + 2 * i, values.begin() + 2 * i + 2);
            ASSERT_EQ(pgkm_transform_row(row.data(), 2, run.result.center, run.result.scale, PGKM_COSINE, PGKM_FLOAT32), 1);
            std::int32_t label;
            double distance;
            pgkm_nearest(row.data(), run.result.centroids, run.result.k, 2, &label, &distance);
            EXPECT_EQ(label, run.result.labels[i]);
            EXPECT_EQ(distance, run.result.distances[i]);
        }
    }
}

TEST(Options, AreChecked)
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto status = [](auto change) {
        PgkmFitRequest request = request_for(two_clouds, 2, 2);
        change(request);
        return FitRun(request).error.status;
    };
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.k = 0; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.k = std::int64_t{1} << 31; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.options.max_iter = 0; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.options.n_init = 0; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.options.tol = -1e-9; }), PGKM_INVALID);
    EXPECT_EQ(status([&](PgkmFitRequest &r) { r.options.tol = nan; }), PGKM_INVALID);
    const std::vector<double> start = {0, 0, nan, 0};
    EXPECT_EQ(status([&](PgkmFitRequest &r) {
                  r.options.init = PGKM_INIT_GIVEN;
                  r.options.init_centroids = start.data();
                  r.options.init_rows = 2;
                  r.options.init_columns = 2;
              }),
              PGKM_INVALID);
    EXPECT_EQ(status([&](PgkmFitRequest &r) {
                  r.options.init = PGKM_INIT_GIVEN;
                  r.options.init_centroids = start.data();
                  r.options.init_rows = 1;
                  r.options.init_columns = 4;
              }),
              PGKM_INVALID);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.settings.memory_limit = 1024; }), PGKM_LIMIT);
    EXPECT_EQ(status([](PgkmFitRequest &r) { r.settings.tuning.assignment = "no such strategy"; }), PGKM_UNSUPPORTED);
    EXPECT_EQ(status([](PgkmFitRequest &r) {
                  r.settings.backend = PGKM_BACKEND_CUDA;
                  r.settings.plugin = "/nonexistent/pg_kmeans_cuda.so";
              }),
              PGKM_UNAVAILABLE);
}

TEST(Job, CanBeCancelledAndStopped)
{
    std::vector<double> values(2'000'000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<double>(i) * 78.233) * 1000.0;
    PgkmFitRequest request = request_for(values, 2, 2000);
    request.options.tol = 0.0;
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_fit_start(&request, &job, &error), PGKM_OK);
    EXPECT_EQ(pgkm_job_wait(job, 20), 0);
    PgkmFitResult result;
    EXPECT_EQ(pgkm_job_result(job, &result, &error), PGKM_INTERNAL) << "not ended yet";
    pgkm_stop_all_jobs(); // joins: the job has ended then
    EXPECT_EQ(pgkm_job_wait(job, 0), 1);
    EXPECT_EQ(pgkm_job_result(job, &result, &error), PGKM_CANCELLED);
    pgkm_job_free(job);
    ASSERT_EQ(pgkm_fit_start(&request, &job, &error), PGKM_OK);
    pgkm_job_free(job); // cancels, joins, frees
}

TEST(Status, ListsTheCpuAndWhyThereIsNoGpu)
{
    PgkmSettings settings = {};
    settings.plugin = "/nonexistent/pg_kmeans_cuda.so";
    PgkmBackendStatus lines[8];
    const std::int32_t count = pgkm_status(&settings, lines, 8);
    ASSERT_GE(count, 2);
    EXPECT_STREQ(lines[0].backend, "cpu");
    EXPECT_EQ(lines[0].available, 1);
    EXPECT_STREQ(lines[1].backend, "cuda");
}

} // namespace
