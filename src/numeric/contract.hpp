// contract.hpp - the numeric contract: every rounding that decides a result.
//
// Each function here is compiled, as it stands, into the reference, the CPU backend and
// the CUDA plugin; a result is exact and free of order because
//   1. labels are decided by exact_distance() alone (lowest index on a tie),
//   2. sums are sums of integers, and integer addition is associative,
//   3. everything else (a division, a square root, a short sequential sum) is done once,
//      in one fixed order, in IEEE float64.
// Compile with -ffp-contract=off (nvcc: --fmad=false): a fused multiply-add stands only
// where fma() is written.
#pragma once

#include <cmath>
#include <cstdint>

#include "numeric/feature_scale.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Values of larger magnitude are refused: their squared distances could overflow.
inline constexpr double max_magnitude = 0x1p500;

// Rows without a value of at least this magnitude are refused: their squared distances could be 0.
inline constexpr double min_magnitude = 0x1p-500;

// Bits of a scaled value (of its upper limb, where it has two), its sign aside; 2^17 of them fit a
// 64-bit partial sum.
inline constexpr int value_bits = 45;
inline constexpr int partial_sum_length = 1 << 17;
// Squared distances and weighted values have a second limb of this many bits.
inline constexpr int lower_limb_bits = 46;

// D(x, c): the squared distance that decides labels. Features in order, one fma each.
template <typename X, typename C>
PGKM_HD inline double exact_distance(const X *x, const C *c, int d)
{
    double sum = 0.0;
    for (int i = 0; i < d; ++i) {
        const double difference = static_cast<double>(x[i]) - static_cast<double>(c[i]);
        sum = ::fma(difference, difference, sum);
    }
    return sum;
}

// 2^exponent, built from its bits; exponent in [-1022, 1023].
PGKM_HD inline double power_of_two(int exponent)
{
    const std::uint64_t bits = static_cast<std::uint64_t>(exponent + 1023) << 52;
    double value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// The smallest e with magnitude < 2^e (frexp's exponent); 0 for 0.
PGKM_HD inline int upper_exponent(double magnitude)
{
    if (magnitude == 0.0)
        return 0;
    int exponent;
    ::frexp(magnitude, &exponent);
    return exponent;
}

PGKM_HD inline int clamp_exponent(int exponent)
{
    return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

// Exponent s of values (or of the weights): |value| <= max_abs implies |value * 2^s| <= 2^45.
PGKM_HD inline int scale_exponent(double max_abs)
{
    return clamp_exponent(value_bits - upper_exponent(max_abs));
}

// The scaled integer of a value; scale = power_of_two(scale_exponent(...)). |result| <= 2^45.
PGKM_HD inline std::int64_t quantise(double value, double scale)
{
    return static_cast<std::int64_t>(::rint(value * scale));
}

// An integer in two limbs, hi * 2^46 + lo. The limbs may be summed apart.
struct Limbs {
    std::int64_t hi;
    std::int64_t lo;
};

PGKM_HD inline Int128 join_limbs(Int128 hi, Int128 lo)
{
    return hi * (Int128{1} << lower_limb_bits) + lo;
}

// How the rows of a problem enter the sums of a feature whose values lie in [min, max] (max_weight: 1 without
// weights). They are taken about an origin, so that the 45 bits lie below the feature's range and not below its
// magnitude: of rows 1e15 + {0, 1, 10, 11} the digits that differ are kept.
//
// The origin is the end of the range nearer to 0 where the other end is at most twice as far from 0, else 0.
//   * x - origin is exact, in float32 for float32 rows as in float64. An origin of 0 changes nothing. Another one is a
//     value y of the rows with |y| <= |x| <= 2 |y| for all x, of one sign: Sterbenz's lemma. So no rounding of a
//     midpoint or a subtraction can differ between kernels, and kernels may subtract in the rows' own type.
//   * |x - origin| is at most the range, or, about 0, less than twice the range: never more than one bit is lost.
//     Nothing overflows: max - min is taken only of values of one sign.
//   * Of a constant feature the origin is the constant, its integers are 0, and the centroid is the constant, exactly.
//   * It depends on min and max alone, and so neither on the order of rows nor on who sums them. Sums of one problem
//     made in several places can be added once all of them agree on min, max and max_weight.
// With weights the product weight * (x - origin) is rounded once; max_weight times the largest distance from the
// origin bounds it, since rounding is monotonic. Rows lighter than max_weight lose as many digits as their mass does.
PGKM_HD inline PgkmFeatureScale sum_scale(double min, double max, double max_weight)
{
    PgkmFeatureScale scale = {0.0, 0};
    if (min > 0.0 && max <= 2.0 * min)
        scale.origin = min;
    else if (max < 0.0 && min >= 2.0 * max)
        scale.origin = max;
    const double reach = ::fmax(max - scale.origin, scale.origin - min);
    scale.exponent = scale_exponent(max_weight * reach);
    return scale;
}

// The same of a value with a weight (weight * value, rounded to float64), and of the weight itself:
// light rows keep their digits beside heavy ones. |hi|, |lo| <= 2^45. scaled - whole is exact.
PGKM_HD inline Limbs quantise_weighted(double product, double scale)
{
    const double scaled = product * scale;
    const double whole = ::rint(scaled);
    return {static_cast<std::int64_t>(whole),
            static_cast<std::int64_t>(::rint((scaled - whole) * power_of_two(lower_limb_bits)))};
}

// Rounds to the nearest double, ties to even.
PGKM_HD inline double to_double(Int128 value)
{
    if (const auto narrow = static_cast<std::int64_t>(value); narrow == value)
        return static_cast<double>(narrow);
    const bool negative = value < 0;
    UInt128 magnitude = negative ? -static_cast<UInt128>(value) : static_cast<UInt128>(value);
    double scale = 1.0;
    if (static_cast<std::uint64_t>(magnitude >> 64) != 0) {
        // Keep 64 leading bits and fold what is cut off into the lowest one: it only has to
        // tell "exactly half" from "more than half" to the one rounding below.
        int shift = 0;
        for (std::uint64_t high = static_cast<std::uint64_t>(magnitude >> 64); high != 0; high >>= 1)
            ++shift;
        const bool lost = (magnitude & ((UInt128{1} << shift) - 1)) != 0;
        magnitude = (magnitude >> shift) | (lost ? 1u : 0u);
        scale = power_of_two(shift);
    }
    const double rounded = static_cast<double>(static_cast<std::uint64_t>(magnitude)) * scale;
    return negative ? -rounded : rounded;
}

// value * 2^exponent for |exponent| <= 2000, in two steps because one factor cannot hold it.
PGKM_HD inline double scale_by(double value, int exponent)
{
    const int half = exponent / 2;
    return value * power_of_two(clamp_exponent(half)) * power_of_two(clamp_exponent(exponent - half));
}

// One coordinate of a new centroid: origin + total / mass, in float64, then rounded to the engine's
// type by the caller. Without weights weight_exponent is 0 and mass the row count; with them both
// sums have 46 bits more than the exponents say.
PGKM_HD inline double mean_of(Int128 total, Int128 mass, double origin, int feature_exponent, int weight_exponent)
{
    return origin + scale_by(to_double(total) / to_double(mass), weight_exponent - feature_exponent);
}

// Exponent of squared distances known to be at most `bound`: D * 2^s < 2^46.
PGKM_HD inline int square_exponent(double bound)
{
    return clamp_exponent(lower_limb_bits - upper_exponent(bound));
}

// A non-negative value as a 92-bit integer, floor(value * 2^s * 2^46), for sums that must
// keep small terms beside large ones.
PGKM_HD inline Limbs quantise_square(double value, double scale)
{
    const double scaled = value * scale;
    const double whole = ::floor(scaled);
    return {static_cast<std::int64_t>(whole),
            static_cast<std::int64_t>((scaled - whole) * power_of_two(lower_limb_bits))};
}

// The sum that `within` holds, back in float64.
PGKM_HD inline double square_sum(Int128 within, int exponent)
{
    return scale_by(to_double(within), -exponent - lower_limb_bits);
}

// Mean and variance of a feature from integer sums of (x - middle) and (x - middle)^2,
// middle = min + (max - min) / 2. The squares are sums of Limbs.
struct MomentScale {
    double middle;
    int value_exponent;
    int square_exponent;
};

PGKM_HD inline MomentScale moment_scale(double min, double max)
{
    const double range = max - min;
    return {min + range / 2, scale_exponent(range), square_exponent(range * range)};
}

struct Moments {
    double mean;
    double variance;
};

PGKM_HD inline Moments moments_of(const MomentScale &scale, Int128 sum, Int128 square, std::int64_t n)
{
    const double count = static_cast<double>(n);
    const double shift = scale_by(to_double(sum), -scale.value_exponent) / count;
    const double raw = square_sum(square, scale.square_exponent) / count;
    const double variance = raw - shift * shift;
    return {scale.middle + shift, variance > 0.0 ? variance : 0.0};
}

// Sampling weight of a row in D^2 sampling: floor(value * 2^s) < 2^46, s from the largest value.
PGKM_HD inline std::int64_t quantise_mass(double value, double scale)
{
    return static_cast<std::int64_t>(value * scale);
}

// The sum of squares of a vector times `scale`, in order, one fma each.
template <typename T>
PGKM_HD inline double square_of(const T *x, int d, double scale)
{
    double square = 0.0;
    for (int i = 0; i < d; ++i) {
        const double value = static_cast<double>(x[i]) * scale;
        square = ::fma(value, value, square);
    }
    return square;
}

// A power of two that brings the largest coordinate next to 1, or as near as one factor can; 0 for a zero vector.
template <typename T>
PGKM_HD inline double unit_scale(const T *x, int d)
{
    double largest = 0.0;
    for (int i = 0; i < d; ++i)
        largest = ::fmax(largest, ::fabs(static_cast<double>(x[i])));
    return largest == 0.0 ? 0.0 : power_of_two(clamp_exponent(-upper_exponent(largest)));
}

// Gives a vector unit length (cosine k-means): every coordinate is divided in float64 by the norm and
// rounded once to T. Where squares would leave the range of float64, the vector is scaled first, which is
// exact. False, and untouched, for a zero vector.
template <typename T>
PGKM_HD inline bool normalise(T *x, int d)
{
    double scale = 1.0, square = square_of(x, d, scale);
    if (square < 0x1p-900) {
        scale = unit_scale(x, d);
        if (scale == 0.0)
            return false;
        square = square_of(x, d, scale);
    }
    const double norm = ::sqrt(square);
    for (int i = 0; i < d; ++i)
        x[i] = static_cast<T>(static_cast<double>(x[i]) * scale / norm);
    return true;
}

// Weight of a candidate of k-means|| that stands for rows of this mass. Where the weights of all of
// them vanish beside the largest, it counts as the least there is, and can be chosen.
PGKM_HD inline double candidate_weight(Int128 mass)
{
    return to_double(mass > 0 ? mass : 1);
}

// Right shift that brings a set of masses with this sum below 2^62, so that they fit 64 bits.
PGKM_HD inline int mass_shift(UInt128 total)
{
    int shift = 0;
    while ((total >> shift) >> 62 != 0)
        ++shift;
    return shift;
}

// Trials of greedy k-means++ for k clusters, 2 + floor(ln k) as in scikit-learn.
inline int greedy_trials(int k)
{
    return 2 + static_cast<int>(std::log(static_cast<double>(k)));
}

inline constexpr int oversampling_rounds = 5; // k-means||
inline constexpr int oversampling_factor = 2; // l = factor * k

} // namespace pgkm
