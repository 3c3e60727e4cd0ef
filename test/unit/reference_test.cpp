// The reference itself, on examples that can be followed by hand. Whatever it computes is by
// definition right for the backends; these tests say that it is also k-means.
#include "reference/reference.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "seeded_rows.hpp"

namespace pgkm {
namespace {

// The reference with some rows of d features loaded.
class Loaded : public SeededRows {
  public:
    Loaded(std::vector<double> rows, std::int32_t d, std::vector<double> weights = {})
        : SeededRows(reference_backend(), std::move(rows), d, std::move(weights))
    {
    }
    PgkmProblem fit(std::vector<double> &centroids, std::int32_t max_iter, double tol = 0.0)
    {
        PgkmProblem result = problem(centroids);
        result.tol = tol;
        const PgkmFitParams params = {PGKM_L2, max_iter};
        EXPECT_EQ(table_->fit(data_, &result, 1, &params, &error_), PGKM_OK) << error_.text;
        return result;
    }
    std::vector<std::int32_t> labels(std::vector<double> &centroids)
    {
        std::vector<std::int32_t> result(static_cast<std::size_t>(n()));
        const PgkmProblem one = problem(centroids);
        PgkmAssignment wanted = {};
        wanted.labels = result.data();
        EXPECT_EQ(table_->assign(data_, &one, 1, &wanted, &error_), PGKM_OK) << error_.text;
        return result;
    }
};

TEST(Reference, TwoClustersOnALine)
{
    Loaded data({0, 1, 10, 11}, 1);
    std::vector<double> centroids = {0, 10};
    const PgkmProblem one = data.fit(centroids, 1);
    EXPECT_EQ(centroids, (std::vector<double>{0.5, 10.5}));
    EXPECT_EQ(one.n_iter, 1);
    EXPECT_EQ(one.converged, 0);
    EXPECT_EQ(one.shift, 0.5);
    centroids = {0, 10};
    const PgkmProblem end = data.fit(centroids, 100);
    EXPECT_EQ(centroids, (std::vector<double>{0.5, 10.5}));
    EXPECT_EQ(end.n_iter, 2); // the second iteration finds the same labels
    EXPECT_EQ(end.converged, 1);
    EXPECT_EQ(end.shift, 0.0);
}

// Rows whose weights vanish beside the largest can be chosen, by each way of choosing.
TEST(Reference, RowsOfNearlyNoWeightAreCandidates)
{
    std::vector<double> rows, weights(100, 1e-40);
    for (int i = 0; i < 100; ++i)
        rows.push_back(i);
    weights[30] = 1.0;
    Loaded data(rows, 1, weights);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM}) {
        const std::vector<double> seeds = data.seed(5, init, 1);
        EXPECT_EQ(std::set<double>(seeds.begin(), seeds.end()).size(), 5u) << "init " << init;
    }
}

TEST(Reference, TolStopsAtTheFirstSmallShift)
{
    std::vector<double> centroids = {0, 1};
    // Shifts by hand: {0, 4} -> means 0 and (1+4+5+9)/4, and so on; 2 x the first one is enough.
    Loaded data({0, 1, 4, 5, 9}, 1);
    const double first = data.fit(centroids, 1).shift;
    EXPECT_EQ(centroids, (std::vector<double>{0.0, 4.75}));
    EXPECT_EQ(first, 3.75 * 3.75);
    centroids = {0, 1};
    const PgkmProblem stopped = data.fit(centroids, 100, first);
    EXPECT_EQ(stopped.n_iter, 1);
    EXPECT_EQ(stopped.converged, 1);
}

TEST(Reference, LowestIndexOnATie)
{
    Loaded data({0, 1, 2}, 1);
    std::vector<double> centroids = {2, 0, 0};
    EXPECT_EQ(data.labels(centroids), (std::vector<std::int32_t>{1, 0, 0}));
}

TEST(Reference, WeightsPullTheMean)
{
    Loaded data({0, 3}, 1, {2, 1});
    std::vector<double> centroids = {7};
    data.fit(centroids, 5);
    EXPECT_EQ(centroids[0], 1.0);
}

TEST(Reference, EmptyClusterTakesTheFarthestRow)
{
    Loaded data({0, 1, 2, 30}, 1);
    std::vector<double> centroids = {1, 1000};
    data.fit(centroids, 1);
    EXPECT_EQ(centroids, (std::vector<double>{1, 30}));
}

TEST(ReferenceSeed, FindsEveryDistinctRow)
{
    Loaded data({1, 2, 2, 1, 3, 3, 3, 1}, 1);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        std::vector<double> chosen = data.seed(8, PGKM_INIT_KMEANS_PLUS_PLUS, seed);
        std::sort(chosen.begin(), chosen.end());
        EXPECT_EQ(chosen, (std::vector<double>{1, 2, 3})) << "seed " << seed;
        // A round of k-means|| samples equal rows independently: they may come twice.
        chosen = data.seed(8, PGKM_INIT_KMEANS_PARALLEL, seed);
        EXPECT_EQ(std::set<double>(chosen.begin(), chosen.end()), (std::set<double>{1, 2, 3})) << "seed " << seed;
    }
}

TEST(ReferenceSeed, FindsWellSeparatedClusters)
{
    std::vector<double> rows;
    for (int i = 0; i < 200; ++i)
        rows.push_back(1000.0 * (i % 5) + i * 0.01);
    Loaded data(rows, 1);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            std::set<int> clusters;
            for (const double value : data.seed(5, init, seed))
                clusters.insert(static_cast<int>(value / 500 + 0.5));
            EXPECT_EQ(clusters.size(), 5u) << "init " << init << ", seed " << seed;
        }
}

TEST(ReferenceSeed, RandomRowsDoNotRepeat)
{
    std::vector<double> rows;
    for (int i = 0; i < 50; ++i)
        rows.push_back(i);
    Loaded data(rows, 1);
    std::vector<int> counts(50);
    for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
        const std::vector<double> chosen = data.seed(10, PGKM_INIT_RANDOM, seed);
        EXPECT_EQ(std::set<double>(chosen.begin(), chosen.end()).size(), 10u);
        for (const double value : chosen)
            ++counts[static_cast<std::size_t>(value)];
    }
    // 400 expected each, standard deviation 18; five of them cover 50 rows with ease.
    for (const int count : counts)
        EXPECT_NEAR(count, 400, 90);
    std::vector<double> all = data.seed(50, PGKM_INIT_RANDOM, 1);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, rows);
}

TEST(ReferenceSeed, FirstCentroidIsDrawnByWeight)
{
    Loaded data({1, 2, 3}, 1, {1, 2, 5});
    std::vector<int> counts(4);
    for (std::uint64_t seed = 0; seed < 4'000; ++seed)
        ++counts[static_cast<std::size_t>(data.seed(1, PGKM_INIT_KMEANS_PLUS_PLUS, seed)[0])];
    EXPECT_NEAR(counts[1], 500, 105); // five standard deviations of a binomial
    EXPECT_NEAR(counts[2], 1000, 137);
    EXPECT_NEAR(counts[3], 2500, 153);
}

TEST(ReferenceSeed, FirstTakesTheFirstRows)
{
    Loaded data({5, 5, 4, 3}, 1);
    EXPECT_EQ(data.seed(3, PGKM_INIT_FIRST, 9), (std::vector<double>{5, 5, 4}));
    EXPECT_EQ(data.seed(9, PGKM_INIT_FIRST, 9), (std::vector<double>{5, 5, 4, 3}));
}

} // namespace
} // namespace pgkm
