// Options that bound clusters, min_size and others: bounds that hold, and assignments that no other one beats.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "draws.hpp"
#include "engine/kmeans/options.hpp"
#include "fit_run.hpp"

namespace {

using Values = std::vector<double>;

double square(const double *x, const double *c, std::int32_t d)
{
    double sum = 0.0;
    for (std::int32_t f = 0; f < d; ++f)
        sum += (x[f] - c[f]) * (x[f] - c[f]);
    return sum;
}

std::vector<std::int64_t> sizes_of(const PgkmResult &result)
{
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(result.k), 0);
    for (std::int64_t i = 0; i < result.n; ++i)
        ++sizes[static_cast<std::size_t>(result.labels[i])];
    return sizes;
}

// What the inertia could fall by, relative to it: an assignment is the cheapest within its bounds where no circle of
// moves between clusters costs less than nothing. The last node is the outside, which takes a row from a cluster that
// may have fewer and gives one to a cluster that may have more.
bool can_be_improved(const Values &rows, const PgkmResult &result, const std::vector<PgkmSizeBounds> &bounds)
{
    const std::int32_t d = result.d, k = result.k;
    const std::size_t nodes = static_cast<std::size_t>(k) + 1;
    std::vector<Values> cost(nodes, Values(nodes, std::numeric_limits<double>::infinity()));
    for (std::int64_t i = 0; i < result.n; ++i) {
        const auto own = static_cast<std::size_t>(result.labels[i]);
        const double *x = rows.data() + i * d;
        const double here = square(x, result.centroids + result.labels[i] * d, d);
        for (std::int32_t j = 0; j < k; ++j)
            cost[own][static_cast<std::size_t>(j)] =
                std::min(cost[own][static_cast<std::size_t>(j)], square(x, result.centroids + j * d, d) - here);
    }
    const std::vector<std::int64_t> sizes = sizes_of(result);
    for (std::size_t j = 0; j + 1 < nodes; ++j) {
        if (sizes[j] < bounds[j].most)
            cost[j][nodes - 1] = 0.0; // a path ends there
        if (sizes[j] > bounds[j].least)
            cost[nodes - 1][j] = 0.0; // one begins there
    }
    const double tolerance = 1e-9 * (result.inertia + 1e-300);
    for (std::size_t via = 0; via < nodes; ++via)
        for (std::size_t a = 0; a < nodes; ++a)
            for (std::size_t b = 0; b < nodes; ++b) {
                const double through = cost[a][via] + cost[via][b];
                if (through < cost[a][b] - tolerance) // else rounding adds up on circles that cost nothing
                    cost[a][b] = through;
            }
    for (std::size_t j = 0; j < nodes; ++j)
        if (cost[j][j] < -tolerance)
            return true;
    return false;
}

PgkmRequest bounded(const Values &rows, std::int32_t d, std::int64_t k, double least, double most)
{
    PgkmRequest request = request_for(rows, d, k);
    request.kmeans.min_size = least;
    request.kmeans.max_size = most;
    request.kmeans.tol = 0.0;
    return request;
}

// What holds of every bounded fit.
void expect_optimum(const PgkmRequest &request, const Values &rows)
{
    const FitRun run(request);
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    const PgkmResult &result = run.result;
    const std::vector<PgkmSizeBounds> bounds = pgkm::size_bounds(request.kmeans, result.n, request.k);
    const std::vector<std::int64_t> sizes = sizes_of(result);
    ASSERT_EQ(result.k, std::min(request.k, result.n));
    double inertia = 0.0;
    for (std::int64_t i = 0; i < result.n; ++i) {
        const double own = square(rows.data() + i * result.d, result.centroids + result.labels[i] * result.d, result.d);
        EXPECT_NEAR(result.distances[i], own, 1e-9 * own);
        inertia += own;
    }
    EXPECT_NEAR(result.inertia, inertia, 1e-9 * inertia);
    for (std::size_t j = 0; j < sizes.size(); ++j) {
        EXPECT_EQ(result.sizes[j], sizes[j]);
        EXPECT_GE(sizes[j], bounds[j].least);
        EXPECT_LE(sizes[j], bounds[j].most);
    }
    EXPECT_FALSE(can_be_improved(rows, result, bounds));
}

// Kinds of rows: two clouds of different size, a cube, integers that repeat, values over many decades.
Values rows_of(int kind, std::int64_t n, std::int32_t d, Draws &draws)
{
    Values rows;
    for (std::int64_t i = 0; i < n * d; ++i) {
        const double normal = draws.normal();
        rows.push_back(kind == 0   ? normal + (i / d % 4 == 0 ? 8.0 : 0.0)
                       : kind == 1 ? draws.uniform()
                       : kind == 2 ? std::round(normal)
                                   : std::exp(3.0 * normal));
    }
    return rows;
}

TEST(Sizes, NoAssignmentIsCheaper)
{
    Draws draws(5);
    for (int kind = 0; kind < 4; ++kind)
        for (const std::int32_t d : {1, 3})
            for (const std::int64_t k : {2, 5, 9}) {
                const std::int64_t n = 211 + 10 * k;
                const Values rows = rows_of(kind, n, d, draws);
                for (const auto &[least, most] : {std::pair<double, double>{0.0, static_cast<double>(n / k + 1)},
                                                  {static_cast<double>(n / k), 0.0},
                                                  {static_cast<double>(n / k - 4), static_cast<double>(n / k + 6)},
                                                  {static_cast<double>(n / k), static_cast<double>(n / k + 1)}}) {
                    SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(d) + " " + std::to_string(k) + " " +
                                 std::to_string(least) + " " + std::to_string(most));
                    PgkmRequest request = bounded(rows, d, k, least, most);
                    expect_optimum(request, rows);
                    request.kmeans.max_iter = 1; // far from rest
                    request.kmeans.init = PGKM_INIT_RANDOM;
                    expect_optimum(request, rows);
                }
            }
}

PgkmGiven given(const Values &values)
{
    return {values.data(), 1, {static_cast<std::int32_t>(values.size())}};
}

TEST(Sizes, BoundsOfEachCluster)
{
    Draws draws(10);
    for (int kind = 0; kind < 4; ++kind)
        for (const std::int64_t n : {300, 20000}) {
            const Values rows = rows_of(kind, n, 2, draws);
            const Values least = {0.05, 0.0, 0.2, 0.1}, most = {0.1, 0.0, 0.3, 0.25};
            for (const auto &[low, high] : {std::pair{true, true}, {true, false}, {false, true}}) {
                SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(n) + " " + std::to_string(low));
                PgkmRequest request = bounded(rows, 2, 4, 0.0, 0.0);
                request.kmeans.max_iter = 5;
                if (low)
                    request.kmeans.min_sizes = given(least);
                if (high)
                    request.kmeans.max_sizes = given(most);
                expect_optimum(request, rows);
            }
        }
}

// Prices are found for samples first.
TEST(Sizes, ManyRows)
{
    Draws draws(6);
    for (int kind = 0; kind < 4; ++kind) {
        const Values rows = rows_of(kind, 20000, 2, draws);
        PgkmRequest request = bounded(rows, 2, 12, 1600.0, 1700.0);
        request.kmeans.max_iter = 3;
        SCOPED_TRACE(kind);
        expect_optimum(request, rows);
    }
}

// Far from even, few rows each: paths are long, and most clusters must change.
TEST(Sizes, ManyClusters)
{
    Draws draws(9);
    for (int kind = 0; kind < 4; ++kind)
        for (const std::int32_t d : {2, 16})
            for (const auto &[least, most] : {std::pair<double, double>{24.0, 24.0}, {20.0, 28.0}, {0.0, 30.0}}) {
                SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(d) + " " + std::to_string(least));
                const Values rows = rows_of(kind, 2880, d, draws);
                PgkmRequest request = bounded(rows, d, 120, least, most);
                request.kmeans.max_iter = 2;
                request.kmeans.init = PGKM_INIT_RANDOM;
                expect_optimum(request, rows);
            }
}

// All assignments of a few rows, tried one by one.
TEST(Sizes, BestOfAllAssignments)
{
    Draws draws(7);
    constexpr std::int64_t n = 9, k = 3;
    for (int trial = 0; trial < 20; ++trial) {
        const Values rows = rows_of(trial % 4, n, 2, draws);
        const FitRun run(bounded(rows, 2, k, 2.0, 4.0));
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        double best = std::numeric_limits<double>::infinity();
        for (int code = 0; code < 19683; ++code) { // 3^9
            std::vector<int> sizes(k, 0);
            double inertia = 0.0;
            for (int i = 0, rest = code; i < n; ++i, rest /= 3) {
                ++sizes[static_cast<std::size_t>(rest % 3)];
                inertia += square(rows.data() + 2 * i, run.result.centroids + 2 * (rest % 3), 2);
            }
            if (*std::min_element(sizes.begin(), sizes.end()) >= 2 &&
                *std::max_element(sizes.begin(), sizes.end()) <= 4)
                best = std::min(best, inertia);
        }
        EXPECT_NEAR(run.result.inertia, best, 1e-12 * best);
    }
}

// Kinds of weights: whole numbers, tenths, a few that are heavy.
Values weights_of(int kind, std::int64_t n, Draws &draws)
{
    Values weights;
    for (std::int64_t i = 0; i < n; ++i) {
        const double uniform = draws.uniform();
        weights.push_back(kind == 0   ? std::floor(1.0 + 20.0 * uniform)
                          : kind == 1 ? std::floor(1.0 + 9.0 * uniform) / 10.0
                                      : std::exp(draws.normal()));
    }
    return weights;
}

PgkmRequest weighted(const Values &rows, const Values &weights, std::int64_t k, double least, double most)
{
    PgkmRequest request = bounded(rows, 2, k, 0.0, 0.0);
    request.points.weights = weights.data();
    request.kmeans.min_weight = least;
    request.kmeans.max_weight = most;
    return request;
}

// Whether a row that moves, or two that change places, make it cheaper and keep within the bounds. n x n x d.
bool step_is_cheaper(const Values &rows, const Values &weights, const PgkmResult &result, const Values &loads,
                     double least, double most)
{
    const std::int32_t d = result.d;
    const double slack = 1e-9 * most, gain = -1e-9 * result.inertia;
    const auto cost = [&](std::size_t i, std::size_t to) {
        const auto *centroids = result.centroids;
        return weights[i] * (square(rows.data() + i * 2, centroids + to * 2, d) -
                             square(rows.data() + i * 2, centroids + result.labels[i] * 2, d));
    };
    const auto are_within = [&](std::size_t a, std::size_t b, double moved) {
        return loads[a] - moved >= std::max(least - slack, slack) && loads[a] - moved <= most + slack &&
               loads[b] + moved >= least - slack && loads[b] + moved <= most + slack;
    };
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto own = static_cast<std::size_t>(result.labels[i]);
        for (std::size_t to = 0; to < loads.size(); ++to)
            if (to != own && are_within(own, to, weights[i]) && cost(i, to) < gain)
                return true;
        for (std::size_t j = 0; j < i; ++j) {
            const auto other = static_cast<std::size_t>(result.labels[j]);
            if (other != own && are_within(own, other, weights[i] - weights[j]) && cost(i, other) + cost(j, own) < gain)
                return true;
        }
    }
    return false;
}

TEST(Sizes, WeightsWithinBounds)
{
    Draws draws(11);
    for (int kind = 0; kind < 4; ++kind)
        for (int heavy = 0; heavy < 3; ++heavy)
            for (const std::int64_t k : {2, 7}) {
                const std::int64_t n = 150;
                const Values rows = rows_of(kind, n, 2, draws), weights = weights_of(heavy, n, draws);
                const double fair = std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(k);
                for (const auto &[least, most] :
                     {std::pair{0.0, 1.15}, {0.9, 1000.0}, {0.95, 1.05}, {0.9, 1.5}, {0.0, 1000.0}}) {
                    SCOPED_TRACE(std::to_string(kind) + " " + std::to_string(heavy) + " " + std::to_string(k) + " " +
                                 std::to_string(least) + " " + std::to_string(most));
                    const FitRun run(weighted(rows, weights, k, least * fair, most * fair));
                    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
                    Values loads(static_cast<std::size_t>(k), 0.0);
                    double inertia = 0.0;
                    for (std::size_t i = 0; i < weights.size(); ++i) {
                        loads[static_cast<std::size_t>(run.result.labels[i])] += weights[i];
                        inertia += weights[i] *
                                   square(rows.data() + 2 * i, run.result.centroids + run.result.labels[i] * 2, 2);
                    }
                    EXPECT_EQ(run.result.k, k);
                    EXPECT_EQ(run.result.converged, 1);
                    EXPECT_NEAR(run.result.inertia, inertia, 1e-9 * inertia);
                    for (const double load : loads) {
                        EXPECT_GE(load, least * fair * (1.0 - 1e-11));
                        EXPECT_LE(load, most * fair * (1.0 + 1e-11));
                    }
                    EXPECT_FALSE(step_is_cheaper(rows, weights, run.result, loads, least * fair, most * fair));
                }
            }
}

// No row is divided then, so that the assignment is the cheapest.
TEST(Sizes, EqualWeightsAreRows)
{
    Draws draws(12);
    for (int kind = 0; kind < 4; ++kind) {
        SCOPED_TRACE(kind);
        const Values rows = rows_of(kind, 3000, 2, draws), weights(3000, 0.3);
        const FitRun run(weighted(rows, weights, 9, 90.0, 105.0));
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        EXPECT_FALSE(can_be_improved(rows, run.result, std::vector<PgkmSizeBounds>(9, {300, 350})));
        const std::vector<std::int64_t> sizes = sizes_of(run.result);
        EXPECT_GE(*std::min_element(sizes.begin(), sizes.end()), 300);
        EXPECT_LE(*std::max_element(sizes.begin(), sizes.end()), 350);
    }
}

// All assignments of a few rows, tried one by one: what is found is one of those that keep within the bounds.
TEST(Sizes, WholeRowsOfAllAssignments)
{
    Draws draws(13);
    constexpr std::int64_t n = 9, k = 3;
    int possible = 0, found = 0;
    double ratios = 0.0, worst = 1.0;
    for (int trial = 0; trial < 300; ++trial) {
        const Values rows = rows_of(trial % 2, n, 2, draws), weights = weights_of(trial % 3, n, draws);
        const double fair = std::accumulate(weights.begin(), weights.end(), 0.0) / 3.0;
        const double most = fair * (1.0 + 0.02 * (trial % 10 + 1));
        const FitRun run(weighted(rows, weights, k, 0.0, most));
        double best = std::numeric_limits<double>::infinity();
        bool is_possible = false;
        for (int code = 0; code < 19683; ++code) { // 3^9
            Values loads(k, 0.0);
            double inertia = 0.0;
            for (std::size_t i = 0, rest = static_cast<std::size_t>(code); i < n; ++i, rest /= 3) {
                loads[rest % 3] += weights[i];
                if (run.error.status == PGKM_OK)
                    inertia += weights[i] * square(rows.data() + 2 * i, run.result.centroids + 2 * (rest % 3), 2);
            }
            if (*std::max_element(loads.begin(), loads.end()) > most * (1.0 + 1e-12))
                continue;
            is_possible = true;
            best = std::min(best, inertia);
        }
        possible += is_possible;
        if (run.error.status != PGKM_OK)
            continue;
        ++found;
        EXPECT_TRUE(is_possible);
        EXPECT_GE(run.result.inertia, best * (1.0 - 1e-9));
        ratios += run.result.inertia / best;
        worst = std::max(worst, run.result.inertia / best);
    }
    EXPECT_GT(possible, 200);
    EXPECT_GE(found, possible - 1); // a search may miss what is possible
    EXPECT_LT(ratios / found, 1.02);
    EXPECT_LT(worst, 2.0);
}

// The order of rows and the number of threads change nothing. Equal rows may change places.
void expect_any_order(std::int64_t k, double least, double most, bool by_weight = false)
{
    Draws draws(8);
    for (int kind = 0; kind < 4; ++kind) {
        SCOPED_TRACE(kind);
        const std::int64_t n = 6000, d = 2;
        const Values rows = rows_of(kind, n, d, draws), weights = weights_of(0, n, draws);
        std::vector<std::int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        for (std::size_t i = order.size() - 1; i > 0; --i)
            std::swap(order[i], order[static_cast<std::size_t>(draws.uniform() * static_cast<double>(i))]);
        Values shuffled;
        for (const std::int64_t i : order)
            shuffled.insert(shuffled.end(), rows.begin() + i * d, rows.begin() + (i + 1) * d);
        PgkmRequest one = bounded(rows, d, k, least, most);
        one.settings.cpu_threads = 1;
        one.kmeans.seed = 3;
        one.kmeans.max_iter = 20;
        Values shuffled_weights;
        for (const std::int64_t i : order)
            shuffled_weights.push_back(weights[static_cast<std::size_t>(i)]);
        if (by_weight) {
            one.points.weights = weights.data();
            std::swap(one.kmeans.min_size, one.kmeans.min_weight);
            std::swap(one.kmeans.max_size, one.kmeans.max_weight);
        }
        PgkmRequest other = one;
        other.points.values = shuffled.data();
        if (by_weight)
            other.points.weights = shuffled_weights.data();
        other.settings.cpu_threads = 3;
        const FitRun a(one), b(other);
        ASSERT_EQ(a.error.status, PGKM_OK) << a.error.text;
        ASSERT_EQ(b.error.status, PGKM_OK) << b.error.text;
        EXPECT_EQ(a.result.inertia, b.result.inertia);
        EXPECT_EQ(a.result.n_iter, b.result.n_iter);
        EXPECT_TRUE(std::equal(a.result.centroids, a.result.centroids + k * d, b.result.centroids));
        EXPECT_TRUE(std::equal(a.result.sizes, a.result.sizes + k, b.result.sizes));
        for (std::size_t i = 0; kind != 2 && i < order.size(); ++i)
            ASSERT_EQ(b.result.labels[i], a.result.labels[order[i]]);
    }
}

TEST(Sizes, AnyOrderAnyThreads)
{
    expect_any_order(7, 800.0, 900.0);
    expect_any_order(100, 60.0, 60.0);
    expect_any_order(100, 50.0, 70.0);
    expect_any_order(7, 8700.0, 9300.0, true);
    expect_any_order(40, 1400.0, 1700.0, true);
}

TEST(Sizes, RowsThatAreEqual)
{
    const Values rows(1000, 2.5);
    const FitRun run(bounded(rows, 1, 8, 125.0, 125.0));
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(sizes_of(run.result), std::vector<std::int64_t>(8, 125));
    EXPECT_EQ(run.result.inertia, 0.0);
}

TEST(Sizes, BoundsAsRows)
{
    const auto bounds = [](double least, double most, std::int64_t n, std::int64_t k) {
        PgkmOptions options;
        pgkm_options_default(&options);
        options.min_size = least;
        options.max_size = most;
        const std::vector<PgkmSizeBounds> found = pgkm::size_bounds(options, n, k);
        EXPECT_EQ(std::ssize(found), k);
        return std::pair(found[0].least, found[0].most);
    };
    EXPECT_EQ(bounds(0.07, 0.0, 100, 5), std::pair(std::int64_t{7}, std::int64_t{100}));
    EXPECT_EQ(bounds(0.0, 0.29, 100, 5), std::pair(std::int64_t{1}, std::int64_t{29}));
    EXPECT_EQ(bounds(0.1, 0.5, 11, 3), std::pair(std::int64_t{2}, std::int64_t{5}));
    EXPECT_EQ(bounds(3.0, 40.0, 11, 3), std::pair(std::int64_t{3}, std::int64_t{11}));
    EXPECT_ANY_THROW(bounds(4.0, 0.0, 11, 3));
    EXPECT_ANY_THROW(bounds(0.0, 3.0, 11, 3));
    EXPECT_ANY_THROW(bounds(5.0, 4.0, 100, 3));
}

TEST(Sizes, CannotBe)
{
    PgkmRequest request = bounded(two_clouds, 2, 4, 2.0, 0.0);
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    const Values weights(6, 1.0);
    request = bounded(two_clouds, 2, 2, 3.0, 0.0);
    request.points.weights = weights.data();
    EXPECT_EQ(FitRun(request).error.status, PGKM_UNSUPPORTED);
    request.kmeans.max_weight = 5.0; // of both kinds
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
    const auto fails = [](const Values &weights, double least, double most, const char *how) {
        const PgkmError error = FitRun(weighted(two_clouds, weights, 2, least, most)).error;
        EXPECT_EQ(error.status, PGKM_INVALID);
        EXPECT_NE(std::string(error.text).find(how), std::string::npos) << error.text;
    };
    fails(weights, 3.5, 0.0, "2 clusters of at least weight 7 in all cannot be made of weight 6");
    fails(weights, 0.0, 2.5, "2 clusters of at most weight 5 in all cannot hold weight 6");
    fails({1.0, 1.0, 9.0, 1.0, 1.0, 1.0}, 0.0, 8.0, "a row of weight 9");
    fails({3.0, 3.0, 3.0, 3.0, 3.0, 3.0}, 0.0, 9.0 - 1e-9, "cannot hold");
    fails({2.0, 2.0, 2.0, 2.0, 2.0, 4.0}, 6.5, 7.5, "weights are multiples of 2: no sums");
    fails({4.0, 4.0, 4.0, 0.5, 0.5, 0.5}, 0.0, 7.0, "miss them by 1 in all");
    request = weighted(two_clouds, weights, 2, 0.0, 4.0);
    request.points.weights = nullptr;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
}

} // namespace
