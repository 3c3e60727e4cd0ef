// The arithmetic of rows at rest (cuda/device/slack.cuh) needs no GPU: what it promises is checked
// against the contract's own distances.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "device/slack.cuh"
#include "numeric/contract.hpp"

namespace {

using namespace pgkm;
using namespace pgkm::cuda;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

float float_above(double value)
{
    const auto rounded = static_cast<float>(value);
    return static_cast<double>(rounded) < value ? std::nextafter(rounded, infinity) : rounded;
}

float float_below(double value)
{
    const auto rounded = static_cast<float>(value);
    return static_cast<double>(rounded) > value ? std::nextafter(rounded, -infinity) : rounded;
}

TEST(Slack, SumsAreRoundedToTheirSide)
{
    std::mt19937_64 random(1);
    for (int i = 0; i < 100000; ++i) {
        const float a = std::ldexp(static_cast<float>(random() >> 40), static_cast<int>(random() % 60) - 30);
        const float b = std::ldexp(static_cast<float>(random() >> 40), static_cast<int>(random() % 60) - 30);
        const long double sum = static_cast<long double>(a) + static_cast<long double>(b);
        const auto nearest = static_cast<float>(sum);
        EXPECT_GE(static_cast<long double>(add_above(a, b)), sum);
        EXPECT_LE(add_above(a, b), std::nextafter(nearest, infinity));
        EXPECT_LE(static_cast<long double>(add_below(a, b)), sum);
        EXPECT_GE(add_below(a, b), std::nextafter(nearest, 0.0f));
    }
}

TEST(Slack, IsAtMostTheGapAndCloseToIt)
{
    std::mt19937_64 random(2);
    std::uniform_real_distribution<double> exponent(-30.0, 30.0), ratio(1.0, 3.0);
    for (int i = 0; i < 100000; ++i) {
        const double nearest = std::exp2(exponent(random)), next = nearest * ratio(random);
        const float slack = slack_of(float_below(next - nearest), float_above(nearest), float_above(next));
        const long double gap =
            std::sqrt(static_cast<long double>(next)) - std::sqrt(static_cast<long double>(nearest));
        EXPECT_LE(static_cast<long double>(slack), gap);
        if (next > nearest * 1.01) {
            EXPECT_GE(static_cast<long double>(slack), gap * 0.9999L);
        }
    }
}

TEST(Slack, NothingIsSureOfTiesInfinitiesAndNoNumbers)
{
    EXPECT_EQ(slack_of(0.0f, 4.0f, 4.0f), 0.0f);
    EXPECT_EQ(slack_of(-1.0f, 4.0f, 4.0f), 0.0f);
    EXPECT_EQ(slack_of(0.0f, 0.0f, 0.0f), 0.0f);
    EXPECT_EQ(slack_of(infinity, 1.0f, infinity), 0.0f);
    EXPECT_EQ(slack_of(not_a_number, 1.0f, 1.0f), 0.0f);
    EXPECT_EQ(slack_of(1.0f, not_a_number, 1.0f), 0.0f);
    EXPECT_FALSE(rests(0.0f, expired));
    EXPECT_FALSE(rests(5.0f, expiry_of(5.0f, 0.0f)));
    EXPECT_FALSE(rests(not_a_number, 5.0f));
    EXPECT_FALSE(rests(infinity, expiry_of(infinity, 5.0f)));
    EXPECT_TRUE(rests(5.0f, expiry_of(5.0f, 1.0f)));
}

TEST(Slack, WaysKeepTheTwoLongest)
{
    std::mt19937_64 random(3);
    for (int i = 0; i < 1000; ++i) {
        Ways all, parts[2];
        std::vector<float> sorted;
        for (int j = 0; j < 9; ++j) {
            const double way = static_cast<double>(random() % 5);
            all.take(way * way);
            parts[j % 2].take(way * way);
            sorted.push_back(static_cast<float>(way));
        }
        parts[0].take(parts[1]);
        std::sort(sorted.rbegin(), sorted.rend());
        EXPECT_GE(all.longest, sorted[0]);
        EXPECT_NEAR(all.longest, sorted[0], 1e-4f);
        EXPECT_NEAR(all.next, sorted[1], 1e-4f);
        EXPECT_EQ(parts[0].longest, all.longest);
        EXPECT_EQ(parts[0].next, all.next);
        EXPECT_GE(all.after(1.0f), 1.0f + sorted[0] + sorted[1]);
    }
    Ways broken;
    broken.take(1.0);
    broken.take(std::numeric_limits<double>::quiet_NaN());
    EXPECT_FALSE(rests(broken.after(0.0f), 1e30f));
    Ways still;
    still.take(0.0);
    still.take(0.0);
    EXPECT_EQ(still.after(3.0f), 3.0f);
}

struct Nearest {
    int label;
    float slack;
};

// The contract's label, and the slack of bounds in float32.
Nearest evaluate(const float *x, const std::vector<float> &centroids, int k, int d)
{
    double least = INFINITY, next = INFINITY;
    int label = 0;
    for (int j = 0; j < k; ++j) {
        const double square = exact_distance(x, centroids.data() + j * d, d);
        next = std::min(next, std::max(least, square));
        label = square < least ? j : label;
        least = std::min(least, square);
    }
    const double err = 0x1p-48; // of D, on both sides
    return {label, slack_of(float_below((next - least) - err * (next + least)), float_above(least * (1 + err)),
                            float_above(next * (1 + err)))};
}

// Rows are left alone for as long as they rest; the label at every step must be that of all distances.
// Returns the share of rows that rested.
double follow(std::uint64_t seed, int d, int k, float offset, float spread, float step)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    constexpr int rows = 400, iterations = 30;
    const auto features = static_cast<std::size_t>(d);
    std::vector<float> x(rows * features), centroids(static_cast<std::size_t>(k) * features), expiry(rows, expired);
    std::vector<int> label(rows, -1);
    for (float &value : x)
        value = offset + spread * normal(random);
    for (std::size_t i = 0; i < centroids.size(); ++i)
        centroids[i] = x[i];
    float drift = 0.0f;
    int rested = 0;
    for (int t = 0; t < iterations; ++t) {
        for (int i = 0; i < rows; ++i) {
            const auto row = static_cast<std::size_t>(i);
            const Nearest now = evaluate(x.data() + row * features, centroids, k, d);
            if (rests(drift, expiry[row])) {
                ++rested;
                EXPECT_EQ(label[row], now.label) << "row " << i << ", step " << t << ", seed " << seed;
            } else {
                label[row] = now.label;
                expiry[row] = expiry_of(drift, now.slack);
            }
        }
        Ways ways;
        const float size = step * std::exp2(-static_cast<float>(t) / 3.0f);
        for (int j = 0; j < k; ++j) {
            std::vector<float> old(centroids.begin() + j * d, centroids.begin() + (j + 1) * d);
            for (int f = 0; f < d; ++f)
                centroids[static_cast<std::size_t>(j * d + f)] += size * spread * normal(random);
            ways.take(exact_distance(centroids.data() + j * d, old.data(), d));
        }
        drift = ways.after(drift);
    }
    return static_cast<double>(rested) / (rows * iterations);
}

TEST(Slack, RowsAtRestKeepTheContractsLabel)
{
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        EXPECT_GT(follow(seed, 2, 4, 0.0f, 10.0f, 0.1f), 0.3);
        EXPECT_GT(follow(seed, 1, 2, 0.0f, 1e-18f, 0.1f), 0.0);
        EXPECT_GT(follow(seed, 8, 16, 0.0f, 1e6f, 0.01f), 0.3);
        EXPECT_GT(follow(seed, 3, 2, 1e6f, 1.0f, 0.05f), 0.3); // centroids go by steps of the float32 grid
        follow(seed, 3, 8, 1e6f, 0.1f, 0.5f);                  // ties everywhere
        EXPECT_GT(follow(seed, 64, 4, 0.0f, 1.0f, 0.002f), 0.3);
    }
}

} // namespace
