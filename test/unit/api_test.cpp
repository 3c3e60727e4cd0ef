// api_test - the rest of the engine as the server sees it: rows of a model, options, jobs, status.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "draws.hpp"
#include "fit_run.hpp"
#include "numeric/contract.hpp"

namespace {

TEST(Rows, AreRoundedToFloat32AsTheFitDoes)
{
    const std::vector<float> values = {0.1F, 0.7F, 3.3F, -2.9F, 0.3F, 0.2F};
    for (const int standardize : {0, 1}) {
        PgkmRequest request = request_for({}, 2, 2);
        request.points = {values.data(), PGKM_FLOAT32, 3, 2, nullptr};
        request.kmeans.metric = PGKM_COSINE;
        request.kmeans.standardize = standardize;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        for (int i = 0; i < 3; ++i) {
            std::vector<double> row(values.begin() + 2 * i, values.begin() + 2 * i + 2);
            ASSERT_EQ(pgkm_transform_row(row.data(), 2, run.result.center, run.result.scale, PGKM_COSINE, PGKM_FLOAT32),
                      1);
            std::int32_t label;
            double distance;
            pgkm_nearest(row.data(), run.result.centroids, run.result.k, 2, &label, &distance);
            EXPECT_EQ(label, run.result.labels[i]);
            EXPECT_EQ(distance, run.result.distances[i]);
        }
    }
}

// Each error names the option.
TEST(Options, AreChecked)
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto expect = [](PgkmStatus status, const char *named, auto change) {
        PgkmRequest request = request_for(two_clouds, 2, 2);
        change(request);
        const FitRun run(request);
        EXPECT_EQ(run.error.status, status) << named;
        EXPECT_NE(std::string(run.error.text).find(named), std::string::npos) << run.error.text;
    };
    expect(PGKM_INVALID, "k must be", [](PgkmRequest &r) { r.k = 0; });
    expect(PGKM_INVALID, "k must be", [](PgkmRequest &r) { r.k = std::int64_t{1} << 31; });
    expect(PGKM_INVALID, "max_iter", [](PgkmRequest &r) { r.kmeans.max_iter = 0; });
    expect(PGKM_INVALID, "n_init", [](PgkmRequest &r) { r.kmeans.n_init = 0; });
    expect(PGKM_INVALID, "tol", [](PgkmRequest &r) { r.kmeans.tol = -1e-9; });
    expect(PGKM_INVALID, "tol", [&](PgkmRequest &r) { r.kmeans.tol = nan; });
    const std::vector<double> start = {0, 0, nan, 0};
    for (const std::int32_t rows : {2, 1})
        expect(PGKM_INVALID, "init_centroids", [&](PgkmRequest &r) {
            r.kmeans.init_centroids = {start.data(), 2, {rows, 4 / rows, 0}};
        });
    expect(PGKM_LIMIT, "memory_limit", [](PgkmRequest &r) { r.settings.memory_limit = 1024; });
    expect(PGKM_UNSUPPORTED, "no such strategy",
           [](PgkmRequest &r) { r.settings.tuning.assignment = "no such strategy"; });
    expect(PGKM_UNAVAILABLE, "CUDA", [](PgkmRequest &r) {
        r.settings.backend = PGKM_BACKEND_CUDA;
        r.settings.plugin = "/nonexistent/pg_kmeans_cuda.so";
    });
}

TEST(Rows, NearestIsTheContracts)
{
    const Values rows = Draws(10).clouds(200, 5, 3, 5.0), centroids = Draws(11).clouds(131, 5, 3, 5.0);
    for (int i = 0; i < 200; ++i) {
        const double *row = rows.data() + 5 * i;
        Values distances(131);
        pgkm_distances(row, centroids.data(), 131, 5, distances.data());
        for (int j = 0; j < 131; ++j)
            ASSERT_EQ(distances[static_cast<std::size_t>(j)], pgkm::exact_distance(row, centroids.data() + 5 * j, 5));
        std::int32_t label;
        double distance;
        pgkm_nearest(row, centroids.data(), 131, 5, &label, &distance);
        const auto best = std::min_element(distances.begin(), distances.end());
        EXPECT_EQ(label, best - distances.begin());
        EXPECT_EQ(distance, *best);
        for (const std::int32_t k : {1, 7, 8, 9, 131}) {
            Values octets(static_cast<std::size_t>(pgkm_octets_size(k, 5)));
            pgkm_octets(centroids.data(), k, 5, octets.data());
            std::int32_t other;
            double square;
            pgkm_nearest(row, centroids.data(), k, 5, &label, &distance);
            pgkm_nearest_of_octets(row, octets.data(), k, 5, &other, &square);
            EXPECT_EQ(other, label) << k;
            EXPECT_EQ(square, distance) << k;
        }
    }
}

TEST(Rows, LowestIndexOnATie)
{
    const std::vector<double> centroids(2 * 200, 3.0), row = {0, 0};
    std::int32_t label;
    double distance;
    pgkm_nearest(row.data(), centroids.data(), 200, 2, &label, &distance);
    EXPECT_EQ(label, 0);
    EXPECT_EQ(distance, 18.0);
    std::vector<double> octets(static_cast<std::size_t>(pgkm_octets_size(200, 2)));
    pgkm_octets(centroids.data(), 200, 2, octets.data());
    label = -1;
    pgkm_nearest_of_octets(row.data(), octets.data(), 200, 2, &label, &distance);
    EXPECT_EQ(label, 0);
}

TEST(Rows, OfZerosHaveNoDirection)
{
    double zero[] = {0.0, 0.0};
    EXPECT_EQ(pgkm_transform_row(zero, 2, nullptr, nullptr, PGKM_COSINE, PGKM_FLOAT64), 0);
    EXPECT_EQ(pgkm_transform_row(zero, 2, nullptr, nullptr, PGKM_L2, PGKM_FLOAT64), 1);
}

TEST(Job, CanBeCancelledAndStopped)
{
    std::vector<double> values(2'000'000);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = std::sin(static_cast<double>(i) * 78.233) * 1000.0;
    PgkmRequest request = request_for(values, 2, 2000);
    request.kmeans.tol = 0.0;
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
    EXPECT_EQ(pgkm_job_wait(job, 20), 0);
    PgkmResult result;
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_INTERNAL) << "not ended yet";
    pgkm_stop_all_jobs(); // joins: the job has ended then
    EXPECT_EQ(pgkm_job_wait(job, 0), 1);
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED);
    pgkm_job_free(job);
    ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
    pgkm_job_stop(job);
    EXPECT_EQ(pgkm_job_wait(job, 0), 1);
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED);
    pgkm_job_stop(job); // once more is nothing
    pgkm_job_free(job);
    ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
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
