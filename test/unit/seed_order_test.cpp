// Seeding: draws follow the masses, whatever the order of the rows.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "draws.hpp"
#include "cpu/seed/sampler.hpp"
#include "seeded_rows.hpp"
#include "numeric/row_key.hpp"

namespace pgkm {
namespace {

// Distinct rows on a line; some stand several times, and each of those has its own weight.
struct Line {
    std::vector<double> at = {0.0, 1.0, 2.5, 7.0, 11.0}; // distinct
    std::vector<double> rows = {7.0, 0.0, 1.0, 7.0, 11.0, 2.5, 0.0, 7.0};
    std::vector<double> weights = {1.0, 2.0, 3.0, 0.5, 1.0, 4.0, 1.5, 2.5};

    double weight(double x) const
    {
        double sum = 0.0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            sum += rows[i] == x ? weights[i] : 0.0;
        return sum;
    }
    // Weight times the squared distance to the nearer of `a` and, if it is one, `b`.
    double mass(double x, double a, double b = NAN) const
    {
        const double square = (x - a) * (x - a);
        return weight(x) * (std::isnan(b) ? square : std::min(square, (x - b) * (x - b)));
    }
    double potential(double a, double b = NAN) const
    {
        double sum = 0.0;
        for (const double x : at)
            sum += mass(x, a, b);
        return sum;
    }
    // Probability that the second centroid is y after a, as the better of two draws.
    double second(double a, double y) const
    {
        const double own = mass(y, a) / potential(a);
        double p = own * own;
        for (const double other : at)
            if (other != y && potential(a, other) > potential(a, y))
                p += 2.0 * own * mass(other, a) / potential(a);
        return p;
    }
};

constexpr int draws = 20000;

// Pearson's statistic of counts that should be `expected` times `draws`.
double chi_square(const std::map<std::pair<double, double>, int> &counts,
                  const std::map<std::pair<double, double>, double> &expected)
{
    double sum = 0.0;
    int seen = 0;
    for (const auto &[outcome, p] : expected) {
        const auto found = counts.find(outcome);
        const int count = found == counts.end() ? 0 : found->second;
        seen += count;
        sum += (count - draws * p) * (count - draws * p) / (draws * p);
    }
    EXPECT_EQ(seen, draws) << "an outcome that cannot be";
    return sum;
}

// Seeds are fixed, so the statistic is the same in every run; a sound generator passes these bounds with 999 of 1000
// sets of seeds.
TEST(SeedDraws, FollowWeightsAndSquaredDistances)
{
    const Line line;
    std::map<std::pair<double, double>, double> expected;
    for (const double a : line.at)
        for (const double y : line.at)
            if (y != a)
                expected[{a, y}] = line.weight(a) / 15.5 * line.second(a, y);
    SeededRows loaded(cpu_backend(), line.rows, 1, line.weights);
    std::map<std::pair<double, double>, int> counts;
    for (int seed = 0; seed < draws; ++seed) {
        const std::vector<double> found = loaded.seed(2, PGKM_INIT_KMEANS_PLUS_PLUS, static_cast<std::uint64_t>(seed));
        ++counts[{found.at(0), found.at(1)}];
    }
    EXPECT_LT(chi_square(counts, expected), 43.8); // 19 degrees of freedom
}

TEST(SeedDraws, RandomTakesEveryPairOfPlaces)
{
    const std::vector<double> rows = {5.0, 3.0, 3.0, 1.0};
    std::map<std::pair<double, double>, double> expected;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows.size(); ++j)
            if (i != j)
                expected[std::minmax({rows[i], rows[j]})] += 1.0 / 12.0;
    SeededRows loaded(cpu_backend(), rows, 1);
    std::map<std::pair<double, double>, int> counts;
    for (int seed = 0; seed < draws; ++seed) {
        const std::vector<double> found = loaded.seed(2, PGKM_INIT_RANDOM, static_cast<std::uint64_t>(seed));
        ++counts[std::minmax({found.at(0), found.at(1)})];
    }
    EXPECT_LT(chi_square(counts, expected), 16.3); // 3 degrees of freedom
}

// One row after the other by the weight of all that equal it, in what is left: by order, and with a row of half of all.
TEST(SeedDraws, RandomFollowsWeights)
{
    const std::vector<double> rows = {5.0, 3.0, 3.0, 1.0, 8.0}, weights = {1.0, 2.0, 0.5, 0.5, 4.0};
    const std::map<double, double> weight = {{5.0, 1.0}, {3.0, 2.5}, {1.0, 0.5}, {8.0, 4.0}};
    std::map<std::pair<double, double>, double> expected;
    for (const auto &[a, first] : weight)
        for (const auto &[b, second] : weight)
            if (a != b)
                expected[{a, b}] = first / 8.0 * second / (8.0 - first);
    SeededRows loaded(cpu_backend(), rows, 1, weights);
    std::map<std::pair<double, double>, int> counts;
    for (int seed = 0; seed < draws; ++seed) {
        const std::vector<double> found = loaded.seed(2, PGKM_INIT_RANDOM, static_cast<std::uint64_t>(seed));
        ++counts[{found.at(0), found.at(1)}];
    }
    EXPECT_LT(chi_square(counts, expected), 31.3); // 11 degrees of freedom
}

// Weights that are all the same are none; and rows that differ are all there are.
TEST(SeedDraws, RandomWithEqualWeightsIsWithoutWeights)
{
    std::vector<double> rows;
    for (int i = 0; i < 500; ++i)
        rows.push_back(i % 120);
    const std::vector<double> expected = SeededRows(cpu_backend(), rows, 1).seed(40, PGKM_INIT_RANDOM, 7);
    std::vector<double> weights(500, 0.3);
    EXPECT_EQ(SeededRows(cpu_backend(), rows, 1, weights).seed(40, PGKM_INIT_RANDOM, 7), expected);
    weights[3] = 1e-30;
    std::vector<double> all = SeededRows(cpu_backend(), rows, 1, weights).seed(200, PGKM_INIT_RANDOM, 7);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, std::vector<double>(rows.begin(), rows.begin() + 120));
}

TEST(RowKey, TakesMinusZeroForZeroAndTellsPlaces)
{
    const float a[] = {0.0f, 1.0f}, b[] = {-0.0f, 1.0f}, c[] = {1.0f, 0.0f};
    EXPECT_EQ(row_key(a, 2), row_key(b, 2));
    EXPECT_NE(row_key(a, 2), row_key(c, 2));
    const double wide[] = {0.0, 1.0}, minus[] = {-0.0, 1.0};
    EXPECT_EQ(row_key(wide, 2), row_key(minus, 2));
    // Fixed for ever: models would change with it.
    EXPECT_EQ(row_key(a, 2), 7537157225452300363u);
    EXPECT_EQ(row_key(wide, 2), 14122473415623700968u);
}

// Copies of the rows are made where there is room for them and for all that follows: where seeding does without them,
// no limit above is too low.
TEST(SeedMemory, IsEnoughFromTheLeastLimitOn)
{
    constexpr std::int32_t n = 3000, d = 40, k = 60;
    std::vector<double> rows;
    for (int i = 0; i < n * d; ++i)
        rows.push_back(std::sin(1e3 * i));
    const std::vector<double> expected = SeededRows(cpu_backend(), rows, d).seed(k, PGKM_INIT_KMEANS_PLUS_PLUS, 1);
    bool enough = false;
    for (std::uint64_t limit = 100'000; limit < 1'500'000; limit += 5000) {
        SeededRows loaded(cpu_backend(), rows, d, {}, limit);
        const std::vector<double> found = loaded.seed_or_none(k, PGKM_INIT_KMEANS_PLUS_PLUS, 1);
        if (loaded.status == PGKM_OK) {
            ASSERT_EQ(found, expected) << limit;
        }
        ASSERT_EQ(loaded.status, enough || loaded.status == PGKM_OK ? PGKM_OK : PGKM_LIMIT) << limit;
        enough = enough || loaded.status == PGKM_OK;
    }
    EXPECT_TRUE(enough);
}

// Unit vectors near few directions, some of which are heavy. Threaded, they are looked at by projections: most of what
// those let pass, exact distances drop again, and a task's list of rows that trials may win runs full.
TEST(Seeding, ChoosesTheSameByProjections)
{
    constexpr std::int32_t d = 384, directions = 10, n = 2000, k = 200;
    Draws draws(7);
    const std::vector<double> axes = draws.fill(directions * d, [](Draws &next) { return next.normal(); });
    std::vector<float> rows;
    std::vector<Int128> masses;
    for (int i = 0; i < n; ++i) {
        const std::vector<double> along = draws.fill(directions, [](Draws &next) { return next.normal(); });
        const auto first = static_cast<std::ptrdiff_t>(rows.size());
        for (std::size_t f = 0; f < d; ++f) {
            double value = 0.3 * draws.normal();
            for (std::size_t j = 0; j < directions; ++j)
                value += along[j] * axes[j * d + f];
            rows.push_back(static_cast<float>(value));
        }
        const double square = std::inner_product(rows.begin() + first, rows.end(), rows.begin() + first, 0.0);
        for (auto value = rows.begin() + first; value != rows.end(); ++value)
            *value = static_cast<float>(*value / std::sqrt(square));
        masses.push_back(static_cast<Int128>(std::exp(3.0 * draws.uniform())));
    }
    cpu::Context context({}, 1);
    for (const std::uint64_t seed : {1, 24}) {
        const PgkmSeedParams params = {PGKM_INIT_KMEANS_PARALLEL, seed, 0, 0};
        EXPECT_EQ(cpu::choose_among({context, true}, rows.data(), d, masses, k, params),
                  cpu::choose_among({context, false}, rows.data(), d, masses, k, params))
            << seed;
    }
}

} // namespace
} // namespace pgkm
