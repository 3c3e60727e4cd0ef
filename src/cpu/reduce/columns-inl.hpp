// columns-inl.hpp - what kernels on columns share: failures that stay, rounding. No #pragma once: each target needs its
// own copy, after per_target.hpp.
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {

HWY_INLINE Vector zero()
{
    return hn::Zero(tag);
}
HWY_INLINE Vector nan()
{
    return hn::Set(tag, std::numeric_limits<double>::quiet_NaN());
}

// 0 of either sign, or NaN where x is no number.
HWY_INLINE Vector poison_of(Vector x)
{
    return hn::Mul(x, zero());
}
HWY_INLINE Vector keep_poison(Vector x, Vector result)
{
    return hn::IfThenElse(hn::Eq(poison_of(x), zero()), result, nan());
}

template <typename Mask>
HWY_INLINE Vector truth(Mask mask)
{
    return hn::IfThenElseZero(mask, hn::Set(tag, 1.0));
}

// Highway's own for one lane lose the sign of 0, and round 0.5 - 2^-54 up.
#if HWY_TARGET == HWY_SCALAR
#define PGKM_ROUNDING(NAME, VECTOR, FUNCTION)                                                         \
    struct NAME {                                                                                     \
        static HWY_INLINE Vector of(Vector a) { return hn::Set(tag, std::FUNCTION(hn::GetLane(a))); } \
    };
#else
#define PGKM_ROUNDING(NAME, VECTOR, FUNCTION)                           \
    struct NAME {                                                       \
        static HWY_INLINE Vector of(Vector a) { return hn::VECTOR(a); } \
    };
#endif
PGKM_ROUNDING(ToFloor, Floor, floor)
PGKM_ROUNDING(ToCeil, Ceil, ceil)
PGKM_ROUNDING(ToRound, Round, rint)
PGKM_ROUNDING(ToTrunc, Trunc, trunc)
#undef PGKM_ROUNDING

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
