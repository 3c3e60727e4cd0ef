// Option init 'optimal': no partition of one feature is better.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "draws.hpp"
#include "fit_run.hpp"
#include "numeric/platform.hpp"

namespace {

using pgkm::Int128;

PgkmRequest optimal(const Values &rows, std::int64_t k, const Values &weights = {})
{
    PgkmRequest request = request_for(rows, 1, k);
    request.points.weights = weights.empty() ? nullptr : weights.data();
    request.kmeans.init = PGKM_INIT_OPTIMAL;
    return request;
}

// The sum of squares of whole numbers under labels, times the least common multiple of 1 to 24, of which each cluster's
// mass is one.
Int128 exact_cost(const Values &rows, const Values &weights, const std::vector<std::int32_t> &labels, std::int32_t k)
{
    std::vector<std::int64_t> mass(static_cast<std::size_t>(k), 0), sum(mass), square(mass);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto j = static_cast<std::size_t>(labels[i]);
        const auto value = static_cast<std::int64_t>(rows[i]);
        const auto weight = weights.empty() ? 1 : static_cast<std::int64_t>(weights[i]);
        mass[j] += weight;
        sum[j] += weight * value;
        square[j] += weight * value * value;
    }
    Int128 cost = 0;
    for (std::size_t j = 0; j < mass.size(); ++j)
        if (mass[j] != 0)
            cost += (mass[j] * square[j] - sum[j] * sum[j]) * (Int128{5354228880} / mass[j]);
    return cost;
}

// Of all labels that there are.
Int128 least_cost(const Values &rows, const Values &weights, std::int32_t k)
{
    std::vector<std::int32_t> labels(rows.size(), 0);
    Int128 least = exact_cost(rows, weights, labels, k);
    for (;;) {
        auto digit = labels.begin();
        while (digit != labels.end() && *digit == k - 1)
            *digit++ = 0;
        if (digit == labels.end())
            return least;
        ++*digit;
        least = std::min(least, exact_cost(rows, weights, labels, k));
    }
}

// By the plain recursion, in long double.
double least_inertia(Values rows, std::int64_t k)
{
    std::sort(rows.begin(), rows.end());
    const std::size_t n = rows.size();
    std::vector<long double> costs(n + 1, std::numeric_limits<long double>::infinity()), next(costs);
    costs[0] = 0.0L;
    for (; k > 0; --k) {
        std::fill(next.begin(), next.end(), std::numeric_limits<long double>::infinity());
        for (std::size_t i = 1; i <= n; ++i) {
            long double mean = 0.0L, square = 0.0L; // of those from j on (Welford)
            for (std::size_t j = i; j-- > 0;) {
                const auto count = static_cast<long double>(i - j);
                const long double difference = static_cast<long double>(rows[j]) - mean;
                mean += difference / count;
                square += difference * (static_cast<long double>(rows[j]) - mean);
                next[i] = std::min(next[i], costs[j] + square);
            }
        }
        std::swap(costs, next);
    }
    return static_cast<double>(costs[n]);
}

std::vector<std::int32_t> labels_of(const PgkmResult &result)
{
    return {result.labels, result.labels + result.n};
}

TEST(Optimal, NoPartitionIsBetter)
{
    Draws draws(1);
    for (int trial = 0; trial < 300; ++trial) {
        const std::size_t n = 2 + static_cast<std::size_t>(trial % 7);
        const auto k = static_cast<std::int32_t>(1 + trial % 4);
        const double range = trial % 3 == 0 ? 6.0 : 1000.0, shift = trial % 5 == 0 ? -500.0 : 0.0;
        const Values rows = draws.fill(n, [&](Draws &d) { return shift + std::floor(range * d.uniform()); });
        const Values weights =
            trial % 2 == 0 ? Values() : draws.fill(n, [](Draws &d) { return 1.0 + std::floor(3.0 * d.uniform()); });
        const FitRun run(optimal(rows, k, weights));
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        EXPECT_TRUE(exact_cost(rows, weights, labels_of(run.result), k) == least_cost(rows, weights, k)) << trial;
        EXPECT_EQ(run.result.n_iter, 1);
        EXPECT_EQ(run.result.converged, 1);
        EXPECT_EQ(run.result.init, PGKM_INIT_OPTIMAL);
    }
}

// Many rows: normal, over many decades, far from 0, powers of two, in equal steps, where many partitions are as good.
Values rows_of(int kind, std::size_t n, Draws &draws)
{
    Values rows;
    for (std::size_t i = 0; i < n; ++i) {
        const double normal = draws.normal();
        rows.push_back(kind == 0   ? normal
                       : kind == 1 ? std::exp(3.0 * normal)
                       : kind == 2 ? 1e9 + normal
                       : kind == 3 ? std::ldexp(1.0, static_cast<int>(i % 40))
                                   : static_cast<double>(i) / 3.0);
    }
    return rows;
}

// About the means of the clusters, which centroids are to 45 bits of the range.
double inertia_of(const Values &rows, const PgkmResult &result)
{
    const auto k = static_cast<std::size_t>(result.k);
    std::vector<long double> count(k, 0.0L), mean(k, 0.0L), square(k, 0.0L);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto j = static_cast<std::size_t>(result.labels[i]);
        const long double difference = static_cast<long double>(rows[i]) - mean[j];
        mean[j] += difference / ++count[j];
        square[j] += difference * (static_cast<long double>(rows[i]) - mean[j]);
    }
    return static_cast<double>(std::accumulate(square.begin(), square.end(), 0.0L));
}

TEST(Optimal, IsThatOfThePlainRecursion)
{
    Draws draws(2);
    for (int kind = 0; kind < 5; ++kind)
        for (const std::int64_t k : {1, 2, 3, 7, 16, 33}) {
            const Values rows = rows_of(kind, 600, draws);
            const FitRun run(optimal(rows, k));
            ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
            Values near = rows; // to where long double has all digits; exactly
            for (double &value : near)
                value -= kind == 2 ? 1e9 : 0.0;
            const double least = least_inertia(near, k);
            EXPECT_NEAR(inertia_of(near, run.result), least, 1e-12 * least) << kind << " " << k;
            EXPECT_LE(run.result.n_iter, 1) << kind << " " << k;
        }
}

TEST(Optimal, DoesNotDependOnOrderOrThreads)
{
    Draws draws(3);
    Values rows = draws.fill(30000, [](Draws &d) { return d.normal(); });
    Values weights = draws.fill(30000, [](Draws &d) { return std::exp(4.0 * d.normal()); });
    const auto centroids = [&](std::int32_t threads) {
        PgkmRequest request = optimal(rows, 12, weights);
        request.settings.cpu_threads = threads;
        const FitRun run(request);
        EXPECT_EQ(run.error.status, PGKM_OK) << run.error.text;
        return Values(run.result.centroids, run.result.centroids + run.result.k);
    };
    const Values one = centroids(1);
    EXPECT_EQ(one.size(), 12U);
    EXPECT_EQ(centroids(3), one);
    std::reverse(rows.begin(), rows.end());
    std::reverse(weights.begin(), weights.end());
    EXPECT_EQ(centroids(2), one);
}

// Rows that repeat weigh as one with their number; such rows are fitted by entries, too.
TEST(Optimal, CountsCopies)
{
    Draws draws(4);
    const Values differ = draws.fill(50, [](Draws &d) { return d.normal(); });
    Values copies, numbers;
    for (std::size_t i = 0; i < differ.size(); ++i) {
        numbers.push_back(static_cast<double>(1 + i * i));
        copies.insert(copies.end(), 1 + i * i, differ[i]);
    }
    const FitRun all(optimal(copies, 6)), weighed(optimal(differ, 6, numbers));
    ASSERT_EQ(all.error.status, PGKM_OK) << all.error.text;
    ASSERT_EQ(weighed.result.k, 6);
    for (std::int32_t j = 0; j < 6; ++j)
        EXPECT_NEAR(all.result.centroids[j], weighed.result.centroids[j], 1e-12);
    const FitRun more(optimal(copies, 1000));
    EXPECT_EQ(more.result.k, 50);
    EXPECT_EQ(more.result.inertia, 0.0);
}

TEST(Optimal, OfExtremes)
{
    for (const Values &rows : {Values{5.0}, Values{-0.0, 0.0, 0.0}, Values{-0x1p500, 0x1p500, 0x1p499},
                               Values{1.0, 1.0 + 0x1p-40, 2.0}, Values{0x1p-465, 3 * 0x1p-465}}) {
        Values differ = rows;
        std::sort(differ.begin(), differ.end());
        differ.erase(std::unique(differ.begin(), differ.end()), differ.end());
        const FitRun run(optimal(rows, 3));
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        EXPECT_EQ(Values(run.result.centroids, run.result.centroids + run.result.k), differ);
    }
    // a weight beside which the others vanish
    const Values rows = {0.0, 1.0, 10.0, 11.0}, weights = {1e-60, 1e60, 1e-60, 1e-60};
    const FitRun run(optimal(rows, 4, weights));
    EXPECT_EQ(Values(run.result.centroids, run.result.centroids + run.result.k), rows);
    // 24 of 25 values far away from one
    Values far(24, 1e6);
    std::iota(far.begin(), far.end(), 1e6);
    far.push_back(0.0);
    EXPECT_EQ(FitRun(optimal(far, 2)).result.centroids[0], 0.0);
}

TEST(Optimal, IsOfOneFeatureAndAllRows)
{
    PgkmRequest request = request_for(two_clouds, 2, 2);
    request.kmeans.init = PGKM_INIT_OPTIMAL;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    request = optimal(two_clouds, 2);
    request.kmeans.batch_size = 2;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
}

TEST(Optimal, KeepsWithinTheLimitOfMemory)
{
    Draws draws(5);
    const Values rows = draws.fill(100000, [](Draws &d) { return d.normal(); });
    PgkmRequest request = optimal(rows, 3);
    request.settings.memory_limit = 6 << 20;
    EXPECT_EQ(FitRun(request).error.status, PGKM_LIMIT);
    request.settings.memory_limit = 40 << 20;
    EXPECT_EQ(FitRun(request).error.status, PGKM_OK);
}

} // namespace
