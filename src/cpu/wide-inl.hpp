// wide-inl.hpp - loads values of either element type as a vector of float64.
#include "hwy/highway.h"

#if defined(PGKM_WIDE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PGKM_WIDE_INL
#undef PGKM_WIDE_INL
#else
#define PGKM_WIDE_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE hn::Vec<hn::ScalableTag<double>> load_wide(hn::ScalableTag<double> tag, const double *from)
{
    return hn::LoadU(tag, from);
}

HWY_INLINE hn::Vec<hn::ScalableTag<double>> load_wide(hn::ScalableTag<double> tag, const float *from)
{
    return hn::PromoteTo(tag, hn::LoadU(hn::Rebind<float, hn::ScalableTag<double>>(), from));
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // toggle
