// The numeric contract: every rounding that decides a result.
#include "numeric/contract.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pgkm {
namespace {

std::vector<double> magnitudes()
{
    std::vector<double> result = {0.0,
                                  DBL_TRUE_MIN,
                                  3 * DBL_TRUE_MIN,
                                  DBL_MIN,
                                  1e-300,
                                  0x1p-1000,
                                  1.0,
                                  std::nextafter(1.0, 0.0),
                                  std::nextafter(1.0, 2.0),
                                  max_magnitude,
                                  0x1p1000};
    for (int exponent = -1074; exponent <= 1000; exponent += 7)
        for (const double factor : {1.0, 1.5, 1.999999})
            result.push_back(std::ldexp(factor, exponent));
    return result;
}

TEST(Contract, PowerOfTwoIsExact)
{
    for (int exponent = -1022; exponent <= 1023; ++exponent)
        ASSERT_EQ(power_of_two(exponent), std::ldexp(1.0, exponent)) << exponent;
}

TEST(Contract, UpperExponentIsFrexps)
{
    EXPECT_EQ(upper_exponent(0.0), 0);
    EXPECT_EQ(upper_exponent(1.0), 1);
    EXPECT_EQ(upper_exponent(0.75), 0);
    EXPECT_EQ(upper_exponent(DBL_TRUE_MIN), -1073);
}

TEST(Contract, ScaledValuesFitTheirBits)
{
    for (const double magnitude : magnitudes()) {
        const double scale = power_of_two(scale_exponent(magnitude));
        for (const double value : {magnitude, -magnitude, magnitude / 3, -magnitude / 7})
            ASSERT_LE(std::abs(quantise(value, scale)), std::int64_t{1} << value_bits) << value;
        // As many bits as there are, unless the exponent had to be clamped.
        if (magnitude > 0x1p-900) {
            ASSERT_GE(quantise(magnitude, scale), std::int64_t{1} << (value_bits - 1)) << magnitude;
        }
    }
}

TEST(Contract, PartialSumsOfTheLargestValuesFit64Bits)
{
    const std::int64_t largest = std::int64_t{1} << value_bits;
    std::int64_t sum;
    EXPECT_FALSE(__builtin_mul_overflow(largest, std::int64_t{partial_sum_length}, &sum));
    const std::int64_t limb = (std::int64_t{1} << lower_limb_bits) - 1;
    EXPECT_FALSE(__builtin_mul_overflow(limb, std::int64_t{partial_sum_length}, &sum));
}

TEST(Contract, QuantiseRoundsTiesToEven)
{
    EXPECT_EQ(quantise(0.5, 1.0), 0);
    EXPECT_EQ(quantise(1.5, 1.0), 2);
    EXPECT_EQ(quantise(2.5, 1.0), 2);
    EXPECT_EQ(quantise(-0.5, 1.0), 0);
    EXPECT_EQ(quantise(-1.5, 1.0), -2);
    EXPECT_EQ(quantise(-2.5, 1.0), -2);
    EXPECT_EQ(quantise(2.500001, 1.0), 3);
}

// libgcc's conversion of 128-bit integers rounds to nearest, ties to even, as ours must.
TEST(Contract, ToDoubleRoundsAsTheCompilerDoes)
{
    std::vector<UInt128> patterns;
    for (int shift = 0; shift < 127; ++shift)
        for (const std::int64_t near : {-3, -2, -1, 0, 1, 2, 3}) {
            const UInt128 power = UInt128{1} << shift;
            patterns.push_back(power + static_cast<UInt128>(Int128{near}));
            // Exactly half way between two doubles, and one off, for even and odd neighbours.
            for (const std::uint64_t mantissa : {(1ull << 53) + 1, (1ull << 53) + 3, (1ull << 54) - 1}) {
                if (shift < 127 - 54)
                    patterns.push_back((UInt128{mantissa} << shift) + static_cast<UInt128>(Int128{near}));
            }
        }
    std::mt19937_64 random(1);
    for (int i = 0; i < 100'000; ++i)
        patterns.push_back(((UInt128{random()} << 64) | random()) >> (1 + random() % 127));
    for (const UInt128 pattern : patterns) {
        const auto value = static_cast<Int128>(pattern & (~UInt128{0} >> 1));
        ASSERT_EQ(to_double(value), static_cast<double>(value)) << static_cast<double>(value);
        ASSERT_EQ(to_double(-value), static_cast<double>(-value)) << static_cast<double>(value);
    }
    const Int128 lowest = static_cast<Int128>(UInt128{1} << 127);
    EXPECT_EQ(to_double(lowest), -0x1p127);
    EXPECT_EQ(to_double(0), 0.0);
}

TEST(Contract, SquareLimbsAreTheFloor)
{
    std::mt19937_64 random(2);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (int i = 0; i < 100'000; ++i) {
        const double bound = std::ldexp(uniform(random), static_cast<int>(random() % 1800) - 900);
        const int exponent = square_exponent(bound);
        const double value =
            i % 10 == 0 ? bound : bound * std::ldexp(uniform(random), -static_cast<int>(random() % 60));
        const Limbs limbs = quantise_square(value, power_of_two(exponent));
        ASSERT_GE(limbs.hi, 0);
        ASSERT_GE(limbs.lo, 0);
        ASSERT_LT(limbs.hi, std::int64_t{1} << lower_limb_bits);
        ASSERT_LT(limbs.lo, std::int64_t{1} << lower_limb_bits);
        // The same from the bits of the value.
        int shift;
        const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(value, &shift), 53));
        shift += exponent + lower_limb_bits - 53;
        const Int128 expected = shift >= 0 ? Int128{mantissa} << shift : shift > -127 ? Int128{mantissa} >> -shift : 0;
        ASSERT_TRUE(join_limbs(limbs.hi, limbs.lo) == expected) << value << " at exponent " << exponent;
    }
    const Limbs zero = quantise_square(0.0, 1.0);
    EXPECT_EQ(zero.hi, 0);
    EXPECT_EQ(zero.lo, 0);
}

// Both limbs keep the bounds of a value without weight, and together they are the value at 46 bits more, rounded to the
// nearest integer, ties to even.
TEST(Contract, WeightedValuesHaveTwoLimbs)
{
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    constexpr std::int64_t most = std::int64_t{1} << value_bits;
    for (int i = 0; i < 100'000; ++i) {
        const double bound = std::ldexp(1.0 + std::fabs(uniform(random)), static_cast<int>(random() % 1800) - 900);
        const int exponent = scale_exponent(bound);
        const double value =
            i % 10 == 0 ? bound : bound * std::ldexp(uniform(random), -static_cast<int>(random() % 110));
        const Limbs limbs = quantise_weighted(value, power_of_two(exponent));
        ASSERT_LE(std::abs(limbs.hi), most) << value;
        ASSERT_LE(std::abs(limbs.lo), most) << value;
        int shift;
        const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(value), &shift), 53));
        shift += exponent + lower_limb_bits - 53;
        Int128 expected = Int128{mantissa} << std::max(shift, 0);
        if (shift < 0) {
            const int cut = std::min(-shift, 100);
            const Int128 half = Int128{1} << (cut - 1), rest = mantissa & ((Int128{1} << cut) - 1);
            expected = Int128{mantissa} >> cut;
            expected += rest > half || (rest == half && expected % 2 != 0) ? 1 : 0;
        }
        ASSERT_TRUE(join_limbs(limbs.hi, limbs.lo) == (value < 0 ? -expected : expected))
            << value << " at " << exponent;
        if (value > 0) {
            ASSERT_GE(join_limbs(limbs.hi, limbs.lo), 0) << value; // so that masses never cancel
        }
    }
}

TEST(Contract, TotalsOfWeightedValuesFit128Bits)
{
    Int128 total;
    const Int128 largest = join_limbs(Int128{1} << value_bits, Int128{1} << value_bits);
    EXPECT_FALSE(__builtin_mul_overflow(largest, Int128{1} << 31, &total));
}

TEST(Contract, MeanOfWeightedValuesHasTheirDigits)
{
    const double weights[] = {3e-15, 5e-15}, values[] = {10.25, -0.125};
    const int feature = scale_exponent(10.0), weight = scale_exponent(1.0); // there is a heavy row in another cluster
    Int128 total = 0, mass = 0;
    for (int i = 0; i < 2; ++i) {
        const Limbs value = quantise_weighted(weights[i] * values[i], power_of_two(feature));
        const Limbs one = quantise_weighted(weights[i], power_of_two(weight));
        total += join_limbs(value.hi, value.lo);
        mass += join_limbs(one.hi, one.lo);
    }
    EXPECT_NEAR(mean_of(total, mass, 0.0, feature, weight), 3.765625, 3.765625e-12);
}

TEST(Contract, CandidatesWithoutMassCount)
{
    EXPECT_EQ(candidate_weight(0), 1.0);
    EXPECT_EQ(candidate_weight(1), 1.0);
    EXPECT_EQ(candidate_weight(Int128{3} << 80), 0x3p80);
}

TEST(Contract, SquareSumUndoesTheScaling)
{
    for (const double value : {1.0, 0.75, 3.0, 1234.5, 0x1p-300, 0x1.8p700}) {
        const int exponent = square_exponent(value);
        const Limbs limbs = quantise_square(value, power_of_two(exponent));
        EXPECT_EQ(square_sum(join_limbs(limbs.hi, limbs.lo), exponent), value);
        EXPECT_EQ(square_sum(5 * join_limbs(limbs.hi, limbs.lo), exponent), 5 * value);
    }
}

TEST(Contract, ScaleByReachesBothEnds)
{
    EXPECT_EQ(scale_by(0x1p-1000, 2000), 0x1p1000);
    EXPECT_EQ(scale_by(0x1p1000, -2000), 0x1p-1000);
    EXPECT_EQ(scale_by(3.0, 0), 3.0);
    EXPECT_EQ(scale_by(3.0, -1), 1.5);
    EXPECT_EQ(scale_by(3.0, 7), 384.0);
}

TEST(Contract, MeanOfEqualValuesIsTheValue)
{
    for (const double value : {1.0, -1.0, 0.1, 3e-7, 1e9, 0x1p-400}) {
        const int exponent = scale_exponent(std::fabs(value));
        const std::int64_t scaled = quantise(value, power_of_two(exponent));
        const double rounded = std::ldexp(static_cast<double>(scaled), -exponent);
        for (const std::int64_t count :
             {std::int64_t{1}, std::int64_t{3}, std::int64_t{1000003}, std::int64_t{1} << 40})
            EXPECT_EQ(mean_of(Int128{scaled} * count, count, 0.0, exponent, 0), rounded) << value << " x " << count;
    }
}

TEST(Contract, MeanOfIsCorrectToAnUlpOrTwo)
{
    std::mt19937_64 random(3);
    for (int i = 0; i < 10'000; ++i) {
        const auto total =
            (static_cast<Int128>(static_cast<std::int64_t>(random())) << 64 | random()) >> (random() % 100);
        const Int128 mass = static_cast<Int128>(random() >> 1 >> (random() % 60)) + 1;
        const int feature = static_cast<int>(random() % 200) - 100, weight = static_cast<int>(random() % 200) - 100;
        const long double expected =
            std::ldexp(static_cast<long double>(total) / static_cast<long double>(mass), weight - feature);
        const double actual = mean_of(total, mass, 0.0, feature, weight);
        ASSERT_LE(std::fabs(static_cast<long double>(actual) - expected), std::fabs(expected) * 0x1p-51L);
    }
}

TEST(Contract, ExactDistanceByHand)
{
    const float x[] = {1.0f, 2.0f, 3.0f};
    const double c[] = {1.5, 0.0, -1.0};
    EXPECT_EQ(exact_distance(x, c, 3), 0.25 + 4.0 + 16.0);
    EXPECT_EQ(exact_distance(x, x, 3), 0.0);
    // Fused: the square of 2^27 + 1 has 55 bits, and only the sum is rounded.
    const double big[] = {0x1p27 + 1, 0x1p-1}, zero[] = {0.0, 0.0};
    EXPECT_EQ(exact_distance(big, zero, 2), std::fma(0x1p-1, 0x1p-1, std::fma(0x1p27 + 1, 0x1p27 + 1, 0.0)));
}

// Sums as a backend makes them, then moments; long double as the judge.
TEST(Contract, MomentsAgreeWithHighPrecision)
{
    std::mt19937_64 random(4);
    std::normal_distribution<double> normal;
    for (const double offset : {0.0, 1e6, -1e12}) {
        std::vector<double> values;
        for (int i = 0; i < 1000; ++i)
            values.push_back(offset + normal(random));
        const auto [low, high] = std::minmax_element(values.begin(), values.end());
        const MomentScale scale = moment_scale(*low, *high);
        Int128 sum = 0, square = 0;
        long double mean = 0.0L, variance = 0.0L;
        for (const double value : values) {
            const double centred = value - scale.middle;
            const Limbs limbs = quantise_square(centred * centred, power_of_two(scale.square_exponent));
            sum += quantise(centred, power_of_two(scale.value_exponent));
            square += join_limbs(limbs.hi, limbs.lo);
            mean += value / 1000.0L;
        }
        for (const double value : values)
            variance += (value - mean) * (value - mean) / 1000.0L;
        const Moments moments = moments_of(scale, sum, square, 1000);
        EXPECT_NEAR(moments.mean, static_cast<double>(mean), 1e-12 + std::fabs(offset) * 0x1p-52);
        EXPECT_NEAR(moments.variance, static_cast<double>(variance), 1e-11);
    }
}

TEST(Contract, MomentsOfAConstantAreExact)
{
    for (const double value : {0.0, 0.1, -7.25, 1e300 * 1e-200}) {
        const MomentScale scale = moment_scale(value, value);
        EXPECT_EQ(scale.middle, value);
        const Moments moments = moments_of(scale, 0, 0, 17);
        EXPECT_EQ(moments.mean, value);
        EXPECT_EQ(moments.variance, 0.0);
    }
}

TEST(Contract, NormaliseGivesUnitLength)
{
    double x[] = {3.0, 0.0, -4.0};
    ASSERT_TRUE(normalise(x, 3));
    EXPECT_EQ(x[0], 0.6);
    EXPECT_EQ(x[1], 0.0);
    EXPECT_EQ(x[2], -0.8);
    float narrow[] = {1.0f, 1.0f};
    ASSERT_TRUE(normalise(narrow, 2));
    EXPECT_EQ(narrow[0], static_cast<float>(1.0 / std::sqrt(2.0)));
    double zero[] = {0.0, -0.0};
    EXPECT_FALSE(normalise(zero, 2));
    EXPECT_EQ(zero[0], 0.0);
    EXPECT_TRUE(std::signbit(zero[1])) << "a zero vector was touched";
}

TEST(Contract, MassShiftMakesTheSumFit)
{
    EXPECT_EQ(mass_shift(0), 0);
    EXPECT_EQ(mass_shift((UInt128{1} << 62) - 1), 0);
    EXPECT_EQ(mass_shift(UInt128{1} << 62), 1);
    EXPECT_EQ(mass_shift((UInt128{1} << 80) - 1), 18);
}

TEST(Contract, GreedyTrialsAreScikitLearns)
{
    EXPECT_EQ(greedy_trials(1), 2);
    EXPECT_EQ(greedy_trials(2), 2);
    EXPECT_EQ(greedy_trials(3), 3);
    EXPECT_EQ(greedy_trials(8), 4);
    EXPECT_EQ(greedy_trials(100), 6);
    // A draw's index leaves room for 64 trials per step.
    EXPECT_LE(greedy_trials(std::numeric_limits<std::int32_t>::max()), 64);
}

} // namespace
} // namespace pgkm
