// Option max_radius where the last iteration may leave a cluster without rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "draws.hpp"
#include "fit_run.hpp"

namespace {

// Values of float32 that are few steps of their precision apart, and single ones far away: a row of its own is exact.
std::vector<float> close_rows(std::int64_t values, int steps, Draws &draws)
{
    constexpr double step = 0.25, offset = 1 << 22;
    std::vector<float> rows;
    for (std::int64_t i = 0; i < values; ++i)
        rows.push_back(static_cast<float>(draws.uniform() < 0.02
                                              ? offset / 10.0 * std::floor(7.0 * draws.uniform())
                                              : offset + step * std::floor(steps * draws.uniform())));
    return rows;
}

TEST(Radius, RowsNearThePrecisionOfTheirType)
{
    Draws draws(1);
    for (int trial = 0; trial < 1000; ++trial) {
        const auto n = static_cast<std::int64_t>(5 + 200 * draws.uniform());
        const std::vector<float> rows = close_rows(3 * n, 2 + static_cast<int>(18 * draws.uniform()), draws);
        PgkmRequest request = request_for({0.0}, 1, 1 + static_cast<std::int64_t>(4 * draws.uniform()));
        request.points = {rows.data(), PGKM_FLOAT32, n, 3, nullptr};
        request.kmeans.max_iter = 1 + trial % 2;
        request.kmeans.tol = 0.0;
        request.kmeans.max_radius = 0.25 * (0.3 + 0.4 * std::floor(8.0 * draws.uniform()));
        request.settings.cpu_threads = 1;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << trial << ": " << run.error.text;
        const double farthest = *std::max_element(run.result.distances, run.result.distances + n);
        EXPECT_LE(std::sqrt(farthest), request.kmeans.max_radius) << trial;
    }
}

} // namespace
