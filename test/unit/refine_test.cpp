// Option refine: how good the optimum is that one run finds, and what a refined fit never does.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "draws.hpp"
#include "engine/kmeans/join.hpp"
#include "fit_run.hpp"
#include "published.hpp"

namespace {

constexpr int seeds = 10;

// Rows around centres that are known.
struct Set {
    const char *name;
    Values centres; // of two features
    Values rows;
};

// count rows about each centre, normal with this deviation.
void surround(Set &set, Draws &draws, std::size_t first, std::size_t last, int count, double deviation)
{
    for (std::size_t c = first; c < last; ++c)
        for (int i = 0; i < count; ++i)
            for (std::size_t f = 0; f < 2; ++f)
                set.rows.push_back(set.centres[2 * c + f] + deviation * draws.normal());
}

// Smaller sets of the construction of those in Fränti, Sieranoja (2018). S1 itself is in the checkout.
std::vector<Set> sets()
{
    std::vector<Set> all;
    const Values s = published::read(published::checkout() + "test/data/s1_centroids.csv", 2).values;
    all.push_back({"S1", s, published::read(published::checkout() + "test/data/s1.csv", 2).values});
    Draws draws(11);
    all.push_back({"S4: overlap", s, {}});
    surround(all.back(), draws, 0, 15, 200, 70000.0);
    all.push_back({"A3: fifty circles", {}, {}});
    for (int c = 0; c < 50; ++c)
        for (const double at : {10.0 * (c % 10), 10.0 * (c / 10)})
            all.back().centres.push_back(at + 3.0 * draws.uniform());
    surround(all.back(), draws, 0, 50, 60, 1.4);
    all.push_back({"Birch1: a grid", {}, {}});
    for (int c = 0; c < 100; ++c)
        for (const double at : {4.0 * (c % 10), 4.0 * (c / 10)})
            all.back().centres.push_back(at);
    surround(all.back(), draws, 0, 100, 60, 1.0);
    all.push_back({"Birch2: a curve", {}, {}});
    for (int c = 0; c < 100; ++c)
        for (const double at : {6.28 * c, 25.0 * std::sin(0.25 * c)})
            all.back().centres.push_back(at);
    surround(all.back(), draws, 0, 100, 60, 1.0);
    all.push_back({"Unbalance", {0, 0, 10, 10, 0, 20, 150, 0, 150, 60, 190, 30, 230, 0, 230, 60}, {}});
    surround(all.back(), draws, 0, 3, 1000, 1.5);
    surround(all.back(), draws, 3, 8, 50, 6.0);
    return all;
}

double inertia(const PgkmRequest &request)
{
    const FitRun run(request);
    EXPECT_EQ(run.error.status, PGKM_OK) << run.error.text;
    return run.result.inertia;
}

// The best known: where iterations from the true centres end.
double best_known(PgkmRequest request, const Values &centres)
{
    const auto k = static_cast<std::int32_t>(centres.size() / 2);
    request.kmeans.init_centroids = {centres.data(), 2, {k, 2, 0}};
    request.kmeans.tol = 0.0;
    return inertia(request);
}

TEST(Refine, FindsTheBestKnown)
{
    for (const Set &set : sets()) {
        PgkmRequest request = request_for(set.rows, 2, static_cast<std::int64_t>(set.centres.size() / 2));
        const double best = best_known(request, set.centres);
        int found = 0;
        double sum = 0.0;
        for (int seed = 0; seed < seeds; ++seed) {
            request.kmeans.seed = static_cast<std::uint64_t>(seed);
            request.kmeans.refine = 0;
            const double plain = inertia(request);
            request.kmeans.refine = 1;
            const double refined = inertia(request);
            EXPECT_LE(refined, plain) << set.name << ", seed " << seed;
            found += refined <= 1.001 * best;
            sum += plain / best;
        }
        RecordProperty(set.name, std::to_string(found) + " of 10; without it the mean is " + std::to_string(sum / 10));
        EXPECT_GE(found, 9) << set.name;
    }
}

// The published sets themselves, where they are there.
class Refined : public testing::TestWithParam<const char *> {};

TEST_P(Refined, FindsTheBestKnown)
{
    const std::string path = published::folder() + "/fraenti/" + GetParam();
    const published::Table rows = published::read(path + ".txt.xz", 2), truth = published::read(path + "-gt.txt", 2);
    if (rows.rows() == 0 || truth.rows() == 0)
        GTEST_SKIP() << "needs xz and the set " << GetParam() << " in " << published::folder() << "/fraenti";
    PgkmRequest request = request_for(rows.values, 2, truth.rows());
    const double best = best_known(request, truth.values);
    request.kmeans.refine = 1;
    int found = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        request.kmeans.seed = static_cast<std::uint64_t>(seed);
        found += inertia(request) <= 1.001 * best;
    }
    EXPECT_GE(found, 9);
}

INSTANTIATE_TEST_SUITE_P(Sets, Refined,
                         testing::Values("s1", "s2", "s3", "s4", "a1", "a2", "a3", "birch1", "birch2", "unbalance"),
                         [](const testing::TestParamInfo<const char *> &info) { return std::string(info.param); });

// Where nothing can be gained, nothing changes: one cluster, as many clusters as rows, equal rows.
TEST(Refine, LeavesWhatIsBest)
{
    const Values rows = Draws(3).clouds(40, 3, 4, 2.0);
    const Values equal(40 * 3, 0.1);
    struct Shape {
        const Values &rows;
        std::int64_t k;
    };
    for (const Shape &shape : {Shape{rows, 1}, {rows, 40}, {rows, 50}, {equal, 5}}) {
        PgkmRequest request = request_for(shape.rows, 3, shape.k);
        const FitRun plain(request);
        request.kmeans.refine = 1;
        const FitRun refined(request);
        ASSERT_EQ(refined.error.status, PGKM_OK) << refined.error.text;
        ASSERT_EQ(refined.result.k, plain.result.k);
        EXPECT_EQ(refined.result.inertia, plain.result.inertia);
        EXPECT_EQ(refined.result.n_iter, plain.result.n_iter);
        EXPECT_EQ(refined.result.converged, plain.result.converged);
        EXPECT_TRUE(std::equal(refined.result.centroids, refined.result.centroids + 3 * refined.result.k,
                               plain.result.centroids));
    }
}

// Rows that repeat, weights over decades, directions, few iterations, nearly as many clusters as rows.
TEST(Refine, IsNeverWorse)
{
    Draws draws(8);
    const Values repeated = draws.fill(600, [](Draws &d) { return std::floor(5.0 * d.uniform()); });
    const Values clouds = draws.clouds(200, 3, 12, 2.0);
    const Values weights = draws.fill(200, [](Draws &d) { return std::exp(20.0 * d.uniform() - 10.0); });
    for (const Values &rows : {repeated, clouds})
        for (const std::int64_t k : {2, 3, 17, 100, 199})
            for (const PgkmMetric metric : {PGKM_L2, PGKM_COSINE})
                for (const double *weight : {static_cast<const double *>(nullptr), weights.data()})
                    for (const std::int32_t max_iter : {1, 300}) {
                        Values positive = rows; // no row of zeros has a direction
                        for (double &value : positive)
                            value += metric == PGKM_COSINE ? 1.0 + std::fabs(value) : 0.0;
                        PgkmRequest request = request_for(positive, 3, k);
                        request.points.weights = weight;
                        request.kmeans.metric = metric;
                        request.kmeans.max_iter = max_iter;
                        request.kmeans.init = PGKM_INIT_RANDOM;
                        const double plain = inertia(request);
                        request.kmeans.refine = 1;
                        EXPECT_LE(inertia(request), plain * (1 + 1e-12)) << "k " << k << ", metric " << metric;
                    }
}

// Every pair's cost, anew for each join; centres of a grid, of which many are equally far apart.
pgkm::Centres join_all(pgkm::Centres centres, std::int32_t k)
{
    const auto d = static_cast<std::size_t>(centres.d);
    std::vector<double> &masses = centres.masses, &values = centres.centroids;
    for (; centres.k() > k;) {
        std::size_t earlier = 0, later = 0;
        double least = INFINITY;
        for (std::size_t i = 1; i < masses.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) {
                double square = 0.0;
                pgkm_distances(&values[i * d], &values[j * d], 1, centres.d, &square);
                const double x = masses[i], y = masses[j];
                const double cost = x == 0.0 || y == 0.0 ? 0.0 : x / (x + y) * y * square;
                if (cost < least) {
                    least = cost;
                    later = i;
                    earlier = j;
                }
            }
        const double share = masses[earlier] == 0.0 ? 0.0 : masses[earlier] / (masses[earlier] + masses[later]);
        for (std::size_t f = 0; f < d; ++f) {
            double &to = values[later * d + f];
            const double from = values[earlier * d + f];
            to = share == 1.0 ? from : to + share * (from - to);
        }
        masses[later] += masses[earlier];
        masses.erase(masses.begin() + static_cast<std::ptrdiff_t>(earlier));
        values.erase(values.begin() + static_cast<std::ptrdiff_t>(earlier * d),
                     values.begin() + static_cast<std::ptrdiff_t>(earlier * d + d));
    }
    return centres;
}

// Far from the origin, too, where a union's centre is rounded by much of what lies between centres.
TEST(Join, IsThatOfAllPairs)
{
    const pgkm::Monitor monitor;
    pgkm::ThreadPool alone(1);
    Draws draws(5);
    for (const std::int32_t d : {1, 2, 17})
        for (const double origin : {0.0, 1e6, 0x1p48})
            for (int attempt = 0; attempt < 10; ++attempt) {
                pgkm::Centres centres = {{}, {}, d};
                for (int i = 0; i < 60; ++i) {
                    centres.masses.push_back(i % 7 == 3 ? 0.0 : std::ceil(3.0 * draws.uniform()) / 100.0);
                    for (std::int32_t f = 0; f < d; ++f)
                        centres.centroids.push_back(origin + std::floor(4.0 * draws.uniform()));
                }
                const pgkm::Centres all = join_all(centres, 5);
                pgkm::join_clusters(centres, 5, alone, monitor);
                ASSERT_EQ(centres.masses, all.masses) << d << " features at " << origin;
                ASSERT_EQ(centres.centroids, all.centroids) << d << " features at " << origin;
            }
}

// Two pairs of near clusters, an empty one, and one that stands alone: the empty one goes first, then the light pair.
TEST(Join, TakesTheCheapestPairs)
{
    const pgkm::Monitor monitor;
    for (const int threads : {1, 3}) {
        pgkm::ThreadPool pool(threads);
        pgkm::Centres centres = {{0, 1, 50, 90, 93, 70}, {0.3, 0.3, 0.0, 0.01, 0.03, 0.36}, 1};
        pgkm::join_clusters(centres, 5, pool, monitor);
        EXPECT_EQ(centres.centroids, (Values{1, 0, 90, 93, 70})) << "cluster 0 stands where the empty one stood";
        pgkm::join_clusters(centres, 4, pool, monitor);
        EXPECT_EQ(centres.k(), 4);
        EXPECT_NEAR(centres.centroids[2], 92.25, 1e-12);
        pgkm::join_clusters(centres, 3, pool, monitor);
        EXPECT_EQ(centres.k(), 3);
        EXPECT_NEAR(centres.centroids[0], 0.5, 1e-12);
        EXPECT_NEAR(centres.masses[0], 0.6, 1e-12);
    }
}

} // namespace
