// fused-inl.hpp - the contract's fused multiply-add on vectors.
//
// Highway's MulAdd rounds twice where the instruction set has no fused one (scalar, SSE4);
// there every lane goes through std::fma: slow, and right.
#include <cmath>

#include "hwy/highway.h"

#if defined(PGKM_FUSED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PGKM_FUSED_INL
#undef PGKM_FUSED_INL
#else
#define PGKM_FUSED_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// sum + difference^2, rounded once.
template <typename V>
HWY_INLINE V add_square(V difference, V sum)
{
#if HWY_NATIVE_FMA
    return hn::MulAdd(difference, difference, sum);
#else
    const hn::DFromV<V> tag;
    alignas(64) double x[hn::MaxLanes(hn::DFromV<V>())];
    alignas(64) double s[hn::MaxLanes(hn::DFromV<V>())];
    hn::Store(difference, tag, x);
    hn::Store(sum, tag, s);
    for (std::size_t i = 0; i < hn::Lanes(tag); ++i)
        s[i] = std::fma(x[i], x[i], s[i]);
    return hn::Load(tag, s);
#endif
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // toggle
