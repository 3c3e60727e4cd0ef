// missing_test.cpp - means in the place of missing values, beside plain sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "engine/api.h"

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Filled {
    PgkmStatus status;
    std::int32_t feature;
    std::vector<double> means;
};

Filled fill(std::vector<double> &values, std::int32_t d, const double *weights = nullptr,
            PgkmInterrupted interrupted = nullptr)
{
    PgkmError error = {};
    Filled result = {PGKM_OK, 0, std::vector<double>(static_cast<std::size_t>(d), nan)};
    result.status = pgkm_fill_missing(values.data(), PGKM_FLOAT64, static_cast<std::int64_t>(values.size()) / d, d,
                                      weights, result.means.data(), &result.feature, interrupted, &error);
    return result;
}

TEST(Missing, MeansOfTheOtherValuesByWeight)
{
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal(1e6, 3.0);
    std::vector<double> values, weights;
    for (int i = 0; i < 999; ++i) {
        values.insert(values.end(), {i % 7 == 0 ? nan : normal(random), i % 5 == 0 ? nan : normal(random)});
        weights.push_back(1.0 + i % 4);
    }
    long double sums[2] = {}, masses[2] = {};
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isnan(values[i])) {
            sums[i % 2] += static_cast<long double>(weights[i / 2]) * values[i];
            masses[i % 2] += weights[i / 2];
        }
    std::vector<double> filled = values;
    const Filled told = fill(filled, 2, weights.data());
    EXPECT_EQ(told.feature, 0);
    for (std::size_t i = 0; i < values.size(); ++i)
        if (std::isnan(values[i])) {
            ASSERT_NEAR(filled[i], static_cast<double>(sums[i % 2] / masses[i % 2]), 1e-9);
            ASSERT_EQ(filled[i], told.means[i % 2]);
        } else
            ASSERT_EQ(filled[i], values[i]);
}

TEST(Missing, DoNotDependOnTheOrderOfRows)
{
    std::mt19937_64 random(4);
    std::lognormal_distribution<double> spread(0.0, 3.0);
    std::vector<double> values = {nan};
    for (int i = 0; i < 5000; ++i)
        values.push_back(spread(random));
    std::vector<double> other = values;
    std::shuffle(other.begin() + 1, other.end(), random);
    fill(values, 1);
    fill(other, 1);
    EXPECT_EQ(values[0], other[0]);
}

TEST(Missing, LeaveWholeRowsAsTheyAre)
{
    std::vector<double> values = {1, -0.0, 3, 4};
    const std::vector<double> before = values;
    EXPECT_EQ(fill(values, 2).means, (std::vector<double>{2, 2}));
    EXPECT_EQ(values, before);
}

TEST(Missing, TellWhichFeatureHasNoValue)
{
    std::vector<double> values = {1, nan, 3, nan};
    EXPECT_EQ(fill(values, 2).feature, 2);
}

TEST(Missing, CanBeStopped)
{
    std::vector<double> values = {1, nan};
    EXPECT_EQ(fill(values, 1, nullptr, [] { return 1; }).status, PGKM_CANCELLED);
}

} // namespace
