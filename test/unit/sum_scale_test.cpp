// About which origin, and with which scale, values enter the sums.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "numeric/contract.hpp"

namespace pgkm {
namespace {

// Random ranges, ends included, in the precision of T.
template <typename T>
void check_origins()
{
    std::mt19937_64 random(17);
    std::uniform_real_distribution<double> fraction(0.0, 1.0), exponent(-40.0, 30.0);
    for (int i = 0; i < 20'000; ++i) {
        const T one = static_cast<T>(std::exp2(exponent(random)));
        const T other = static_cast<T>(static_cast<double>(one) * (1.0 + std::exp2(exponent(random) / 2)));
        const T sign = i % 2 == 0 ? T{1} : T{-1};
        const double low = std::min(sign * one, sign * other), high = std::max(sign * one, sign * other);
        const PgkmFeatureScale scale = sum_scale(low, high, 1.0);
        const T origin = static_cast<T>(scale.origin);
        ASSERT_EQ(static_cast<double>(origin), scale.origin);
        for (int j = 0; j < 20; ++j) {
            const T x = j == 0   ? static_cast<T>(low)
                        : j == 1 ? static_cast<T>(high)
                                 : static_cast<T>(low + fraction(random) * (high - low));
            const T centred = x - origin;
            ASSERT_EQ(static_cast<long double>(centred),
                      static_cast<long double>(x) - static_cast<long double>(origin));
            ASSERT_LE(std::fabs(static_cast<double>(centred)), 2.0 * (high - low));
            ASSERT_LE(std::abs(quantise(static_cast<double>(centred), power_of_two(scale.exponent))),
                      std::int64_t{1} << value_bits);
        }
    }
}

TEST(SumScale, ValuesLessTheirOriginAreExact)
{
    check_origins<float>();
    check_origins<double>();
}

TEST(SumScale, OriginIsTheNearerEndOfANarrowRange)
{
    const auto origin = [](double min, double max) { return sum_scale(min, max, 1.0).origin; };
    EXPECT_EQ(origin(1e15, 1e15 + 11), 1e15);
    EXPECT_EQ(origin(-1e15 - 11, -1e15), -1e15);
    EXPECT_EQ(origin(1.0, 2.0), 1.0);
    EXPECT_EQ(origin(1.0, std::nextafter(2.0, 3.0)), 0.0);
    EXPECT_EQ(origin(-2.0, -1.0), -1.0);
    EXPECT_EQ(origin(-1.0, 1.0), 0.0);
    EXPECT_EQ(origin(0.0, 1.0), 0.0);
    EXPECT_EQ(origin(0.3, 0.3), 0.3);
    EXPECT_EQ(origin(DBL_TRUE_MIN, 2 * DBL_TRUE_MIN), DBL_TRUE_MIN);
    EXPECT_EQ(origin(0x1p499, 0x1p500), 0x1p499);
    EXPECT_EQ(sum_scale(1e15, 1e15 + 11, 1.0).exponent, value_bits - 4);
    EXPECT_EQ(sum_scale(-0x1p500, 0x1p500, 1.0).exponent, value_bits - 501);
    EXPECT_EQ(sum_scale(-0x1p500, 0x1p500, 0x1p500).exponent, value_bits - 1001);
    EXPECT_EQ(sum_scale(0x1p-1060, 0x1.8p-1060, 1.0).exponent, 1000);
}

TEST(SumScale, MeansLieAboutTheOrigin)
{
    const PgkmFeatureScale scale = sum_scale(1e15, 1e15 + 11, 1.0);
    const auto integer = [&](double x) { return quantise(x - scale.origin, power_of_two(scale.exponent)); };
    EXPECT_EQ(mean_of(Int128{integer(1e15 + 10)} + integer(1e15 + 11), 2, scale.origin, scale.exponent, 0),
              1e15 + 10.5);
    const PgkmFeatureScale constant = sum_scale(0.1, 0.1, 1.0);
    EXPECT_EQ(mean_of(0, 7, constant.origin, constant.exponent, 0), 0.1);
}

} // namespace
} // namespace pgkm
