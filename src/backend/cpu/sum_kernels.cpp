#include "backend/cpu/sum_kernels.hpp"

#include <cstddef>
#include <cstring>

#include "backend/cpu/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/sum_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "backend/cpu/wide-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// quantise() without a conversion instruction: added to 1.5 * 2^52, a value below 2^51 in
// magnitude is rounded to an integer, ties to even, and the bits of the sum differ from those
// of the constant by that integer. (The product is exact: the scale is a power of two; a
// product that underflows rounds to 0 either way.)
inline constexpr double rounder = 0x1.8p52;

HWY_INLINE std::int64_t quantise_by_bits(double value, double scale)
{
    const double sum = value * scale + rounder;
    std::int64_t bits, base;
    std::memcpy(&bits, &sum, sizeof bits);
    std::memcpy(&base, &rounder, sizeof base);
    return bits - base;
}

// to[f] += quantise(weight * x[f]); from[f] -= the same, unless from is NULL.
template <bool Weighted, typename T>
HWY_INLINE void move_features(const T *x, int d, double weight, const double *scale, std::int64_t *from,
                              std::int64_t *to)
{
    const hn::ScalableTag<double> tag;
    const hn::RebindToSigned<decltype(tag)> integers;
    const int lanes = static_cast<int>(hn::Lanes(tag));
    const auto magic = hn::Set(tag, rounder);
    int f = 0;
    for (; f + lanes <= d; f += lanes) {
        auto value = load_wide(tag, x + f);
        if (Weighted)
            value = hn::Mul(hn::Set(tag, weight), value);
        const auto sum = hn::Add(hn::Mul(value, hn::LoadU(tag, scale + f)), magic);
        const auto integer = hn::Sub(hn::BitCast(integers, sum), hn::BitCast(integers, magic));
        hn::StoreU(hn::Add(hn::LoadU(integers, to + f), integer), integers, to + f);
        if (from != nullptr)
            hn::StoreU(hn::Sub(hn::LoadU(integers, from + f), integer), integers, from + f);
    }
    for (; f < d; ++f) {
        const double value = static_cast<double>(x[f]);
        const std::int64_t integer = quantise_by_bits(Weighted ? weight * value : value, scale[f]);
        to[f] += integer;
        if (from != nullptr)
            from[f] -= integer;
    }
}

template <bool Weighted, typename T>
HWY_INLINE std::int64_t move_rows(const T *values, int count, int d, const std::int32_t *from, const std::int32_t *to,
                                  const double *weights, const SumTarget &target)
{
    std::int64_t moved = 0;
    for (int i = 0; i < count; ++i) {
        if (from[i] == to[i])
            continue;
        ++moved;
        const double weight = Weighted ? weights[i] : 1.0;
        const std::int64_t mass = Weighted ? quantise_by_bits(weight, target.weight_scale) : 1;
        target.masses[to[i]] += mass;
        std::int64_t *old = nullptr;
        if (from[i] >= 0) {
            old = target.features + from[i] * target.stride;
            target.masses[from[i]] -= mass;
        }
        move_features<Weighted>(values + static_cast<std::ptrdiff_t>(i) * d, d, weight, target.feature_scale, old,
                                target.features + to[i] * target.stride);
    }
    return moved;
}

template <typename T>
std::int64_t move_any(const T *values, int count, int d, const std::int32_t *from, const std::int32_t *to,
                      const double *weights, const SumTarget &target)
{
    return weights == nullptr ? move_rows<false>(values, count, d, from, to, weights, target)
                              : move_rows<true>(values, count, d, from, to, weights, target);
}

const SumKernels *sum_table()
{
    static constexpr SumKernels table = {move_any<float>, move_any<double>};
    return &table;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/dispatch.hpp"

namespace pgkm::cpu {
HWY_EXPORT(sum_table);

const SumKernels &sum_kernels(InstructionSet set)
{
    return *PGKM_DISPATCH(sum_table, set);
}

} // namespace pgkm::cpu
#endif
