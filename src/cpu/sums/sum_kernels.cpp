// sum_kernels.cpp - adds rows to integer sums: one row at a time, lanes along its features.
#include "cpu/sums/sum_kernels.hpp"

#include <cstddef>
#include <cstring>

#define HWY_TARGET_INCLUDE "cpu/sums/sum_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "numeric/contract.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// quantise() without a conversion instruction: added to 1.5 * 2^52, a value below 2^51 in
// magnitude is rounded to an integer, ties to even, and the bits of the sum differ from those
// of the constant by that integer. (The product is exact: the scale is a power of two; a
// product that underflows rounds to 0 either way.)
inline constexpr double rounder = 0x1.8p52;
inline constexpr double lower_limb_scale = 0x1p46;
static_assert(lower_limb_bits == 46);

HWY_INLINE std::int64_t quantise_by_bits(double value, double scale)
{
    const double sum = value * scale + rounder;
    std::int64_t bits, base;
    std::memcpy(&bits, &sum, sizeof bits);
    std::memcpy(&base, &rounder, sizeof base);
    return bits - base;
}

// quantise_weighted() in the same way.
HWY_INLINE Limbs limbs_by_bits(double product, double scale)
{
    const double scaled = product * scale, whole = scaled + rounder - rounder;
    return {quantise_by_bits(scaled, 1.0), quantise_by_bits(scaled - whole, lower_limb_scale)};
}

// Adds integers to to[at], to[at + 1], ... and takes them from those of `from`, unless that is NULL.
template <typename V>
HWY_INLINE void move_integers(V integers, std::int64_t *from, std::int64_t *to, int at)
{
    const hn::DFromV<V> tag;
    hn::StoreU(hn::Add(hn::LoadU(tag, to + at), integers), tag, to + at);
    if (from != nullptr)
        hn::StoreU(hn::Sub(hn::LoadU(tag, from + at), integers), tag, from + at);
}

HWY_INLINE void move_integer(std::int64_t integer, std::int64_t *from, std::int64_t *to, int at)
{
    to[at] += integer;
    if (from != nullptr)
        from[at] -= integer;
}

// With x' = x less its feature's origin: to[f] receives quantise(x'[f]), `copies` times; with a weight to[f] and
// to[d + f] the limbs of weight * x'[f]. What they receive is taken from those of `from`, unless that is NULL.
template <bool Weighted, bool Counted, typename T>
HWY_INLINE void move_features(const T *x, int d, double weight, std::int64_t copies, const SumTarget &target,
                              std::int64_t *from, std::int64_t *to)
{
    const double *origin = target.origin, *scale = target.feature_scale;
    const hn::RebindToSigned<Tag> integers;
    const Vector magic = hn::Set(tag, rounder), lower = hn::Set(tag, lower_limb_scale);
    const auto bits = hn::BitCast(integers, magic), factor = hn::Set(integers, copies);
    const auto of_all = [&](auto value) {
        if constexpr (Counted)
            return hn::Mul(value, factor);
        else
            return value;
    };
    int f = 0;
    for (; f + lanes <= d; f += lanes) {
        const Vector centred = hn::Sub(load_wide(x + f), hn::LoadU(tag, origin + f));
        const Vector value = Weighted ? hn::Mul(hn::Set(tag, weight), centred) : centred;
        const Vector scaled = hn::Mul(value, hn::LoadU(tag, scale + f)), high = hn::Add(scaled, magic);
        move_integers(of_all(hn::Sub(hn::BitCast(integers, high), bits)), from, to, f);
        if constexpr (Weighted) {
            const Vector low = hn::Add(hn::Mul(hn::Sub(scaled, hn::Sub(high, magic)), lower), magic);
            move_integers(of_all(hn::Sub(hn::BitCast(integers, low), bits)), from, to, d + f);
        }
    }
    for (; f < d; ++f) {
        const double value = static_cast<double>(x[f]) - origin[f];
        if constexpr (Weighted) {
            const Limbs limbs = limbs_by_bits(weight * value, scale[f]);
            move_integer(limbs.hi * copies, from, to, f);
            move_integer(limbs.lo * copies, from, to, d + f);
        } else {
            move_integer(quantise_by_bits(value, scale[f]) * copies, from, to, f);
        }
    }
}

template <bool Weighted, bool Counted, typename T>
HWY_INLINE std::int64_t move_rows(const T *values, int count, int d, const std::int32_t *from, const std::int32_t *to,
                                  const double *weights, const std::uint16_t *counts, const SumTarget &target)
{
    std::int64_t moved = 0;
    for (int i = 0; i < count; ++i) {
        if (from[i] == to[i])
            continue;
        ++moved;
        const std::int64_t copies = Counted ? counts[i] : 1;
        const T *x = values + static_cast<std::ptrdiff_t>(i) * d;
        constexpr int limbs = Weighted ? 2 : 1;
        const bool leaves = from[i] >= 0;
        std::int64_t *features = target.features + to[i] * target.stride, *mass = target.masses + to[i] * limbs;
        std::int64_t *old_features = leaves ? target.features + from[i] * target.stride : nullptr;
        std::int64_t *old_mass = leaves ? target.masses + from[i] * limbs : nullptr;
        if constexpr (Weighted) {
            const Limbs weight = limbs_by_bits(weights[i], target.weight_scale);
            move_integer(weight.hi * copies, old_mass, mass, 0);
            move_integer(weight.lo * copies, old_mass, mass, 1);
            move_features<true, Counted>(x, d, weights[i], copies, target, old_features, features);
        } else {
            move_integer(copies, old_mass, mass, 0);
            move_features<false, Counted>(x, d, 1.0, copies, target, old_features, features);
        }
    }
    return moved;
}

template <typename T>
std::int64_t move_any(const T *values, int count, int d, const std::int32_t *from, const std::int32_t *to,
                      const double *weights, const std::uint16_t *copies, const SumTarget &target)
{
    const auto move = [&]<bool Weighted, bool Counted>() {
        return move_rows<Weighted, Counted>(values, count, d, from, to, weights, copies, target);
    };
    if (copies != nullptr)
        return weights == nullptr ? move.template operator()<false, true>() : move.template operator()<true, true>();
    return weights == nullptr ? move.template operator()<false, false>() : move.template operator()<true, false>();
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(SumKernels, sum_kernels, {move_any<float>, move_any<double>})
