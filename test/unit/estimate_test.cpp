// What PCA and mixtures are estimated to need is enough for them: with that as their limit they run.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../support/watched_job.hpp"
#include "fit_run.hpp"

namespace {

using pgkm::test::JobShape, pgkm::test::noise, pgkm::test::request_for;

TEST(Estimate, IsEnoughForPca)
{
    for (const JobShape &shape :
         {JobShape{1, 3, 0}, {2000, 2, 0}, {30000, 160, 0}, {20000, 191, 0}, {20000, 192, 0}, {4000, 520, 0}})
        for (const std::int32_t threads : {1, 5}) {
            const std::vector<float> rows = noise(shape);
            PgkmRequest request = request_for(PGKM_PCA, rows, shape);
            request.settings.cpu_threads = threads;
            request.settings.memory_limit = pgkm_request_estimate(&request);
            EXPECT_STREQ(FitRun(request).error.text, "")
                << shape.n << " x " << shape.d << ", " << threads << " threads";
            --request.settings.memory_limit;
            EXPECT_NE(std::string(FitRun(request).error.text).find("pg_kmeans.memory_limit"), std::string::npos);
        }
}

TEST(Estimate, IsEnoughForMixtures)
{
    for (const JobShape &shape : {JobShape{20, 3, 2}, {6000, 160, 2}, {1000, 200, 3}, {3000, 2, 900}})
        for (const PgkmCovariance type :
             {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG, PGKM_COVARIANCE_SPHERICAL})
            for (const std::int32_t threads : {1, 7}) {
                const std::vector<float> rows = noise(shape);
                PgkmRequest request = request_for(PGKM_MIXTURE, rows, shape);
                pgkm_mixture_options_default(&request.mixture);
                request.mixture.covariance_type = type;
                request.mixture.max_iter = 2;
                request.settings.cpu_threads = threads;
                request.settings.memory_limit = pgkm_request_estimate(&request);
                EXPECT_STREQ(FitRun(request).error.text, "")
                    << shape.n << " x " << shape.d << ", " << shape.k << " components, type " << type << ", " << threads
                    << " threads";
            }
}

TEST(Estimate, GrowsAndDoesNotOverflow)
{
    const auto bytes = [](const JobShape &shape) {
        PgkmRequest request = request_for(PGKM_KMEANS, {}, shape);
        pgkm_options_default(&request.kmeans);
        return pgkm_request_estimate(&request);
    };
    EXPECT_LT(bytes({1000, 2, 3}), bytes({100'000, 2, 3}));
    EXPECT_LT(bytes({100'000, 2, 3}), bytes({100'000, 2, 30'000}));
    EXPECT_EQ(bytes({INT64_MAX, INT32_MAX, INT32_MAX}), UINT64_MAX);
}

} // namespace
