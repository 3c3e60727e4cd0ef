// Models through the engine's C interface: what the numbers of api_test.cpp's features must
// satisfy on data with overlapping clusters, and the smaller functions beside the fit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/api.h"
#include "numeric/contract.hpp"

namespace {

std::vector<double> clouds(std::int64_t n, std::int32_t d, int centers, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> middle, rows;
    for (int i = 0; i < centers * d; ++i)
        middle.push_back(5.0 * normal(random));
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int32_t f = 0; f < d; ++f)
            rows.push_back(middle[static_cast<std::size_t>(i % centers * d + f)] + normal(random));
    return rows;
}

// A model with its own copies, so that it can outlive the job.
struct Model {
    PgkmError error = {};
    std::vector<double> centroids, within, distances;
    std::vector<std::int64_t> sizes;
    std::vector<std::int32_t> labels;
    double inertia = 0.0;
    std::int32_t k = 0, n_iter = 0, converged = 0;
    std::int64_t n = 0;
};

struct Request : PgkmRequest {
    Request(const std::vector<double> &rows, std::int32_t columns, std::int64_t clusters) : PgkmRequest{}
    {
        points = {rows.data(), PGKM_FLOAT64, static_cast<std::int64_t>(rows.size()) / columns, columns, nullptr};
        k = clusters;
        pgkm_options_default(&kmeans);
        settings.backend = PGKM_BACKEND_CPU;
        want_labels = want_distances = 1;
    }
    void start_from(const std::vector<double> &centroids)
    {
        const std::int32_t rows = static_cast<std::int32_t>(centroids.size()) / points.d;
        kmeans.init_centroids = {centroids.data(), 2, {rows, points.d, 0}};
    }
};

Model fit(const Request &request)
{
    Model model;
    PgkmJob *job = nullptr;
    if (pgkm_job_start(&request, &job, &model.error) != PGKM_OK)
        return model;
    while (pgkm_job_wait(job, 1000) == 0) {}
    PgkmResult result;
    if (pgkm_job_result(job, 0, &result, &model.error) == PGKM_OK) {
        const std::int64_t k = result.k;
        model.centroids.assign(result.centroids, result.centroids + k * result.d);
        model.sizes.assign(result.sizes, result.sizes + k);
        model.within.assign(result.within_ss, result.within_ss + k);
        model.labels.assign(result.labels, result.labels + result.n);
        model.distances.assign(result.distances, result.distances + result.n);
        model.inertia = result.inertia;
        model.k = result.k;
        model.n = result.n;
        model.n_iter = result.n_iter;
        model.converged = result.converged;
    }
    pgkm_job_free(job);
    return model;
}

void expect_consistent(const Model &model)
{
    ASSERT_EQ(model.error.status, PGKM_OK) << model.error.text;
    std::int64_t rows = 0;
    double within = 0.0, squares = 0.0;
    std::vector<std::int64_t> counts(model.sizes.size());
    for (const std::int32_t label : model.labels)
        ++counts[static_cast<std::size_t>(label)];
    EXPECT_EQ(counts, model.sizes);
    for (std::size_t j = 0; j < model.sizes.size(); ++j) {
        EXPECT_GT(model.sizes[j], 0) << "cluster " << j;
        rows += model.sizes[j];
        within += model.within[j];
    }
    for (const double distance : model.distances)
        squares += distance;
    EXPECT_EQ(rows, model.n);
    EXPECT_NEAR(within, model.inertia, 1e-12 * model.inertia);
    EXPECT_NEAR(squares, model.inertia, 1e-11 * model.inertia);
}

TEST(Model, IsConsistentForEveryWayToStart)
{
    const std::vector<double> rows = clouds(2003, 3, 7, 1);
    for (const PgkmInit init :
         {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST}) {
        Request request(rows, 3, 9);
        request.kmeans.init = init;
        const Model model = fit(request);
        expect_consistent(model);
        EXPECT_EQ(model.k, 9);
    }
}

TEST(Model, DoesNotDependOnThreads)
{
    const std::vector<double> rows = clouds(30'011, 5, 20, 2);
    Request request(rows, 5, 20);
    request.kmeans.max_iter = 7;
    request.settings.cpu_threads = 1;
    const Model alone = fit(request);
    request.settings.cpu_threads = 4;
    const Model together = fit(request);
    expect_consistent(alone);
    EXPECT_EQ(alone.centroids, together.centroids);
    EXPECT_EQ(alone.labels, together.labels);
    EXPECT_EQ(alone.distances, together.distances);
    EXPECT_EQ(alone.within, together.within);
}

// With given centroids the order of the rows must not matter either: sums are exact.
TEST(Model, DoesNotDependOnTheOrderOfRows)
{
    std::vector<double> rows = clouds(1501, 1, 5, 3);
    const std::vector<double> start(rows.begin(), rows.begin() + 6);
    Request request(rows, 1, 6);
    request.start_from(start);
    const Model before = fit(request);
    std::shuffle(rows.begin(), rows.end(), std::mt19937_64(4));
    const Model after = fit(request);
    EXPECT_EQ(before.centroids, after.centroids);
    EXPECT_EQ(before.sizes, after.sizes);
    EXPECT_EQ(before.within, after.within);
    EXPECT_EQ(before.inertia, after.inertia);
    EXPECT_EQ(before.n_iter, after.n_iter);
}

TEST(Model, RestartsAreIndependentAndTheBestIsKept)
{
    const std::vector<double> rows = clouds(900, 2, 9, 5);
    Request request(rows, 2, 9);
    request.kmeans.init = PGKM_INIT_RANDOM;
    std::vector<double> inertia;
    for (std::int32_t restarts = 1; restarts <= 8; ++restarts) {
        request.kmeans.n_init = restarts;
        inertia.push_back(fit(request).inertia);
    }
    EXPECT_TRUE(std::is_sorted(inertia.rbegin(), inertia.rend())) << "a restart made it worse";
    EXPECT_LT(inertia.back(), inertia.front()) << "no restart found anything better";
}

// scikit-learn: tol times the mean of the features' variances, against the summed squared shift.
TEST(Model, TolIsRelativeToTheMeanVariance)
{
    const std::vector<double> rows = clouds(1009, 2, 6, 6);
    double mean_variance = 0.0;
    for (int f = 0; f < 2; ++f) {
        double sum = 0.0, squares = 0.0;
        for (int i = 0; i < 1009; ++i)
            sum += rows[static_cast<std::size_t>(2 * i + f)];
        for (int i = 0; i < 1009; ++i)
            squares += std::pow(rows[static_cast<std::size_t>(2 * i + f)] - sum / 1009, 2);
        mean_variance += squares / 1009 / 2;
    }
    const std::vector<double> start(rows.begin(), rows.begin() + 16);
    Request request(rows, 2, 8);
    request.start_from(start);
    request.kmeans.tol = 0.0;
    std::vector<std::vector<double>> path = {start}; // centroids after each iteration
    for (std::int32_t iterations = 1; iterations <= 12; ++iterations) {
        request.kmeans.max_iter = iterations;
        path.push_back(fit(request).centroids);
    }
    for (const double tol : {1e-2, 1e-3, 1e-4}) {
        std::int32_t expected = 0;
        for (std::size_t i = 1; i < path.size() && expected == 0; ++i) {
            double shift = 0.0;
            for (std::size_t c = 0; c < start.size(); ++c)
                shift += std::pow(path[i][c] - path[i - 1][c], 2);
            if (shift <= tol * mean_variance)
                expected = static_cast<std::int32_t>(i);
        }
        ASSERT_GT(expected, 1) << "the data settle too soon or too late for this test";
        request.kmeans.max_iter = 300;
        request.kmeans.tol = tol;
        const Model model = fit(request);
        EXPECT_EQ(model.n_iter, expected) << "tol " << tol;
        EXPECT_EQ(model.converged, 1);
    }
}

TEST(Model, Float32RowsGiveCentroidsOfFloat32)
{
    const std::vector<double> rows = clouds(501, 3, 4, 7);
    const std::vector<float> narrow(rows.begin(), rows.end());
    Request request(rows, 3, 4);
    request.points.values = narrow.data();
    request.points.element = PGKM_FLOAT32;
    const Model model = fit(request);
    expect_consistent(model);
    for (const double value : model.centroids)
        EXPECT_EQ(value, static_cast<double>(static_cast<float>(value)));
}

TEST(Model, ExtremeValuesStayFinite)
{
    std::mt19937_64 random(8);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    for (const double magnitude : {0x1p500, 1e100, 1e-100, 1e-150, 1e-290}) {
        std::vector<double> rows;
        for (int i = 0; i < 300; ++i)
            rows.push_back(magnitude * uniform(random));
        const Model model = fit(Request(rows, 3, 5));
        if (magnitude < 0x1p-500) { // whose squares would be 0
            EXPECT_EQ(model.error.status, PGKM_INVALID);
            continue;
        }
        ASSERT_EQ(model.error.status, PGKM_OK) << magnitude << ": " << model.error.text;
        EXPECT_TRUE(std::isfinite(model.inertia)) << magnitude;
        for (const double value : model.centroids)
            EXPECT_LE(std::fabs(value), magnitude);
    }
}

TEST(Options, ErrorsNameTheOption)
{
    const std::vector<double> rows = clouds(20, 2, 2, 9), start = {0, 0, 1};
    const auto text = [&](auto change) {
        Request request(rows, 2, 2);
        change(request);
        return std::string(fit(request).error.text);
    };
    EXPECT_NE(text([](Request &r) { r.k = 0; }).find("k must be"), std::string::npos);
    EXPECT_NE(text([](Request &r) { r.kmeans.n_init = -1; }).find("n_init"), std::string::npos);
    EXPECT_NE(text([](Request &r) { r.kmeans.max_iter = 0; }).find("max_iter"), std::string::npos);
    EXPECT_NE(text([](Request &r) { r.kmeans.tol = -1; }).find("tol"), std::string::npos);
    EXPECT_NE(text([&](Request &r) { r.start_from(start); }).find("init_centroids"), std::string::npos);
    EXPECT_NE(text([](Request &r) { r.settings.memory_limit = 10; }).find("memory_limit"), std::string::npos);
}

TEST(Estimate, GrowsAndDoesNotOverflow)
{
    const auto bytes = [&](std::int64_t n, std::int32_t d, std::int64_t k) {
        PgkmRequest request = {};
        request.points = {nullptr, PGKM_FLOAT32, n, d, nullptr};
        request.k = k;
        pgkm_options_default(&request.kmeans);
        return pgkm_request_estimate(&request);
    };
    EXPECT_LT(bytes(1000, 2, 3), bytes(100'000, 2, 3));
    EXPECT_LT(bytes(100'000, 2, 3), bytes(100'000, 2, 30'000));
    EXPECT_EQ(bytes(INT64_MAX, INT32_MAX, INT32_MAX), UINT64_MAX);
}

TEST(Rows, NearestIsTheContracts)
{
    const std::vector<double> rows = clouds(200, 5, 3, 10), centroids = clouds(131, 5, 3, 11);
    for (int i = 0; i < 200; ++i) {
        const double *row = rows.data() + 5 * i;
        std::vector<double> distances(131);
        pgkm_distances(row, centroids.data(), 131, 5, distances.data());
        for (int j = 0; j < 131; ++j)
            ASSERT_EQ(distances[static_cast<std::size_t>(j)], pgkm::exact_distance(row, centroids.data() + 5 * j, 5));
        std::int32_t label;
        double distance;
        pgkm_nearest(row, centroids.data(), 131, 5, &label, &distance);
        const auto best = std::min_element(distances.begin(), distances.end());
        EXPECT_EQ(label, best - distances.begin());
        EXPECT_EQ(distance, *best);
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
}

TEST(Rows, TransformRoundsAsTheFit)
{
    const std::vector<double> center = {1.0, 2.0}, scale = {3.0, 7.0};
    double row[] = {2.0, 2.5};
    ASSERT_EQ(pgkm_transform_row(row, 2, center.data(), scale.data(), PGKM_L2, PGKM_FLOAT32), 1);
    EXPECT_EQ(row[0], static_cast<double>(static_cast<float>(1.0 / 3.0)));
    EXPECT_EQ(row[1], static_cast<double>(static_cast<float>(0.5 / 7.0)));
    double zero[] = {0.0, 0.0};
    EXPECT_EQ(pgkm_transform_row(zero, 2, nullptr, nullptr, PGKM_COSINE, PGKM_FLOAT64), 0);
    EXPECT_EQ(pgkm_transform_row(zero, 2, nullptr, nullptr, PGKM_L2, PGKM_FLOAT64), 1);
}

} // namespace
