// What PCA and mixtures are estimated to need is enough for them: with that as their limit they run.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/api.h"

namespace {

std::vector<float> noise(std::int64_t n, std::int32_t d)
{
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> rows(static_cast<std::size_t>(n * d));
    for (float &value : rows)
        value = normal(random);
    return rows;
}

// The text of the error that the job ends with; empty: none.
std::string run(const PgkmRequest &request)
{
    PgkmError error = {};
    PgkmJob *job = nullptr;
    if (pgkm_job_start(&request, &job, &error) != PGKM_OK)
        return error.text;
    while (pgkm_job_wait(job, 1000) == 0) {}
    PgkmResult ignored;
    const std::string text = pgkm_job_result(job, 0, &ignored, &error) == PGKM_OK ? "" : error.text;
    pgkm_job_free(job);
    return text;
}

PgkmRequest request_for(PgkmAlgorithm algorithm, const std::vector<float> &rows, std::int32_t d, std::int32_t threads)
{
    PgkmRequest request = {};
    request.algorithm = algorithm;
    request.points = {rows.data(), PGKM_FLOAT32, static_cast<std::int64_t>(rows.size()) / d, d, nullptr};
    request.settings.backend = PGKM_BACKEND_CPU;
    request.settings.cpu_threads = threads;
    return request;
}

TEST(Estimate, IsEnoughForPca)
{
    struct Shape {
        std::int64_t n;
        std::int32_t d;
    };
    for (const Shape shape : {Shape{1, 3}, {2000, 2}, {30000, 160}, {20000, 191}, {20000, 192}, {4000, 520}})
        for (const std::int32_t threads : {1, 5}) {
            const std::vector<float> rows = noise(shape.n, shape.d);
            PgkmRequest request = request_for(PGKM_PCA, rows, shape.d, threads);
            request.settings.memory_limit = pgkm_request_estimate(&request);
            EXPECT_EQ(run(request), "") << shape.n << " x " << shape.d << ", " << threads << " threads";
            --request.settings.memory_limit;
            EXPECT_NE(run(request).find("pg_kmeans.memory_limit"), std::string::npos);
        }
}

TEST(Estimate, IsEnoughForMixtures)
{
    struct Shape {
        std::int64_t n;
        std::int32_t d;
        std::int64_t k;
    };
    for (const Shape shape : {Shape{20, 3, 2}, {6000, 160, 2}, {1000, 200, 3}, {3000, 2, 900}})
        for (const PgkmCovariance type :
             {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG, PGKM_COVARIANCE_SPHERICAL})
            for (const std::int32_t threads : {1, 7}) {
                const std::vector<float> rows = noise(shape.n, shape.d);
                PgkmRequest request = request_for(PGKM_MIXTURE, rows, shape.d, threads);
                request.k = shape.k;
                pgkm_mixture_options_default(&request.mixture);
                request.mixture.covariance_type = type;
                request.mixture.max_iter = 2;
                request.settings.memory_limit = pgkm_request_estimate(&request);
                EXPECT_EQ(run(request), "") << shape.n << " x " << shape.d << ", " << shape.k << " components, type "
                                            << type << ", " << threads << " threads";
            }
}

} // namespace
