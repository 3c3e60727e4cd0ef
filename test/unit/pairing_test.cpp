// pairing_test.cpp - the assignment problem beside all permutations; agreement of labellings beside all pairs of rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "engine/api.h"

namespace {

using Partners = std::vector<std::int32_t>;

Partners pair(const std::vector<double> &costs, std::int32_t rows, std::int32_t columns)
{
    Partners partners(static_cast<std::size_t>(rows), -2);
    PgkmError error = {};
    EXPECT_EQ(pgkm_pair(costs.data(), rows, columns, partners.data(), nullptr, &error), PGKM_OK) << error.text;
    return partners;
}

// Of all ways to give each row a column or, where there are more rows, none: the first of those of least cost. Costs
// are whole numbers times `unit`, so that sums are exact.
Partners first_of_all(const std::vector<double> &costs, std::int32_t rows, std::int32_t columns)
{
    const std::int32_t size = std::max(rows, columns);
    std::vector<std::int32_t> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    double least = std::numeric_limits<double>::infinity();
    Partners best;
    do {
        double total = 0;
        for (std::int32_t i = 0; i < rows; ++i)
            if (order[static_cast<std::size_t>(i)] < columns)
                total += costs[static_cast<std::size_t>(i * columns + order[static_cast<std::size_t>(i)])];
        if (total < least) { // permutations come in order, and none of a row is a column behind the last
            least = total;
            best.assign(order.begin(), order.begin() + rows);
        }
    } while (std::next_permutation(order.begin(), order.end()));
    for (std::int32_t &partner : best)
        if (partner >= columns)
            partner = -1;
    return best;
}

TEST(Pairing, IsTheFirstOfTheCheapest)
{
    std::mt19937_64 random(7);
    for (int round = 0; round < 1500; ++round) {
        const auto rows = static_cast<std::int32_t>(1 + random() % 7),
                   columns = static_cast<std::int32_t>(1 + random() % 7);
        const std::uint64_t values = round % 3 == 0 ? 2 : round % 3 == 1 ? 4 : 1000000;
        const double unit = std::ldexp(1.0, static_cast<int>(random() % 1800) - 900);
        const double sign = round % 5 == 0 ? -unit : unit;
        std::vector<double> costs(static_cast<std::size_t>(rows * columns));
        for (double &cost : costs)
            cost = sign * static_cast<double>(random() % values);
        EXPECT_EQ(pair(costs, rows, columns), first_of_all(costs, rows, columns))
            << rows << " x " << columns << ", round " << round;
    }
}

// Costs of very different magnitude: the small ones decide, though a sum in float64 would lose them.
TEST(Pairing, FarClustersDoNotHideNearOnes)
{
    EXPECT_EQ(pair({1e20, 1e20, 1e20, 1e20, 0.5, 0.25, 1e20, 0.25, 0.5}, 3, 3), (Partners{0, 2, 1}));
    EXPECT_EQ(pair({0, 0, 0, 0}, 2, 2), (Partners{0, 1}));
    EXPECT_EQ(pair({5e-324, 0, 0, 5e-324}, 2, 2), (Partners{1, 0}));
    EXPECT_EQ(pair({1.7e308, 1.6e308, 1.6e308, 1.7e308}, 2, 2), (Partners{1, 0}));
}

// Larger ones, by what tells an optimum: transposed and shuffled, the total stays the same.
TEST(Pairing, DoesNotDependOnTheOrder)
{
    std::mt19937_64 random(11);
    for (const auto &[rows, columns] : {std::pair(150, 150), std::pair(60, 200), std::pair(200, 60)}) {
        std::vector<double> costs(static_cast<std::size_t>(rows * columns)), turned(costs.size());
        for (double &cost : costs)
            cost = static_cast<double>(random() % 1000);
        std::vector<std::int32_t> order(static_cast<std::size_t>(columns));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        for (std::int32_t i = 0; i < rows; ++i)
            for (std::int32_t j = 0; j < columns; ++j)
                turned[static_cast<std::size_t>(order[static_cast<std::size_t>(j)] * rows + i)] =
                    costs[static_cast<std::size_t>(i * columns + j)];
        const auto total = [](const std::vector<double> &of, const Partners &partners, std::int32_t width) {
            double sum = 0;
            for (std::size_t i = 0; i < partners.size(); ++i)
                sum += partners[i] < 0
                           ? 0
                           : of[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(partners[i])];
            return sum;
        };
        const Partners partners = pair(costs, rows, columns);
        EXPECT_EQ(std::count(partners.begin(), partners.end(), -1), std::max(rows - columns, 0));
        EXPECT_EQ(total(costs, partners, columns), total(turned, pair(turned, columns, rows), rows));
    }
}

TEST(Pairing, IsCancelled)
{
    const std::vector<double> costs(16, 1.0);
    Partners partners(4);
    PgkmError error = {};
    EXPECT_EQ(pgkm_pair(
                  costs.data(), 4, 4, partners.data(), [] { return 1; }, &error),
              PGKM_CANCELLED);
}

PgkmAgreement agree(const std::vector<PgkmLabelPair> &pairs)
{
    PgkmAgreement agreement = {};
    PgkmError error = {};
    EXPECT_EQ(
        pgkm_agreement(pairs.data(), static_cast<std::int64_t>(pairs.size()), 1 << 20, &agreement, nullptr, &error),
        PGKM_OK)
        << error.text;
    return agreement;
}

// The index by its definition: over all pairs of rows, and the expectation of a random labelling of the same sizes.
double by_definition(const std::vector<PgkmLabelPair> &rows)
{
    double both = 0, a = 0, b = 0, all = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            both += rows[i].a == rows[j].a && rows[i].b == rows[j].b;
            a += rows[i].a == rows[j].a;
            b += rows[i].b == rows[j].b;
            ++all;
        }
    return (both - a * b / all) / ((a + b) / 2 - a * b / all);
}

TEST(Agreement, IsThatOfAllPairsOfRows)
{
    std::mt19937_64 random(5);
    for (int round = 0; round < 200; ++round) {
        std::vector<PgkmLabelPair> rows;
        for (int i = 0; i < 40; ++i) {
            const auto label = static_cast<std::int64_t>(random() % 4);
            rows.push_back({label, random() % 3 > 0 ? -label : static_cast<std::int64_t>(random() % 6), 1});
        }
        const PgkmAgreement agreement = agree(rows);
        EXPECT_NEAR(agreement.adjusted_rand, by_definition(rows), 1e-12);
        EXPECT_EQ(agreement.n, 40);
        std::vector<std::int64_t> labels = {0, 1, 2, 3}, others;
        for (std::int64_t label = -3; label < 6; ++label)
            others.push_back(label);
        double kept = 0; // by all ways to choose partners
        std::vector<char> taken(others.size());
        const auto choose = [&](const auto &self, std::size_t i, double sum) -> void {
            if (i == labels.size()) {
                kept = std::max(kept, sum);
                return;
            }
            for (std::size_t j = 0; j < others.size(); ++j) {
                if (taken[j] != 0)
                    continue;
                taken[j] = 1;
                self(self, i + 1,
                     sum + static_cast<double>(std::count_if(rows.begin(), rows.end(), [&](const auto &row) {
                         return row.a == labels[i] && row.b == others[j];
                     })));
                taken[j] = 0;
            }
        };
        choose(choose, 0, 0);
        EXPECT_EQ(agreement.moved, (40 - kept) / 40);
    }
}

// A table of 2^k times as many rows has the same shares, and an index that comes near to a limit.
TEST(Agreement, CountsBeyondTheRangeOfProducts)
{
    const auto scaled = [](std::int64_t factor) {
        return agree({{0, 0, 3 * factor}, {0, 1, factor}, {1, 1, 4 * factor}, {2, 0, factor}});
    };
    const double limit = (27.0 - 33.0 * 41.0 / 81.0) / ((33.0 + 41.0) / 2 - 33.0 * 41.0 / 81.0);
    EXPECT_NEAR(scaled(std::int64_t{1} << 40).adjusted_rand, limit, 1e-11);
    EXPECT_NEAR(scaled(std::int64_t{1} << 49).adjusted_rand, limit, 1e-13);
    EXPECT_EQ(scaled(std::int64_t{1} << 49).moved, 2.0 / 9);
    EXPECT_EQ(scaled(1).moved, 2.0 / 9);
}

TEST(Agreement, OfOneLabelOrOneForEachRow)
{
    EXPECT_EQ(agree({{5, 5, 1}}).adjusted_rand, 1);
    EXPECT_EQ(agree({{5, 6, 9}}).adjusted_rand, 1);
    EXPECT_EQ(agree({{1, 3, 1}, {2, 2, 1}, {3, 1, 1}}).adjusted_rand, 1);
    EXPECT_EQ(agree({{1, 3, 1}, {1, 2, 1}, {1, 1, 1}}).adjusted_rand, 0);
    EXPECT_EQ(agree({{INT64_MIN, INT64_MAX, 2}, {INT64_MAX, INT64_MIN, 2}}).adjusted_rand, 1);
}

TEST(Agreement, IsLimited)
{
    std::vector<PgkmLabelPair> pairs;
    for (std::int64_t i = 0; i < 10; ++i)
        pairs.push_back({i, i, 1});
    PgkmAgreement agreement = {};
    PgkmError error = {};
    EXPECT_EQ(pgkm_agreement(pairs.data(), 10, 799, &agreement, nullptr, &error), PGKM_LIMIT);
    EXPECT_EQ(pgkm_agreement(pairs.data(), 10, 800, &agreement, nullptr, &error), PGKM_OK);
    pairs[0].n = PGKM_MAX_ROWS;
    EXPECT_EQ(pgkm_agreement(pairs.data(), 10, 800, &agreement, nullptr, &error), PGKM_LIMIT);
}

} // namespace
