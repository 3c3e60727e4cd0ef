// per_target.hpp - compiles the kernels of a source once for each instruction set, by Highway.
//
// A source defines HWY_TARGET_INCLUDE as its own path, then includes this file: Highway includes the source again for
// each target. Its kernels stand in namespace pgkm::cpu::HWY_NAMESPACE, between HWY_BEFORE_NAMESPACE() and
// HWY_AFTER_NAMESPACE(). It ends with PGKM_KERNELS. No #pragma once: each target needs its own copy of what follows.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "cpu/kernels/targets.hpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "cpu/kernels/instruction_set.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<double>;
using Vector = hn::Vec<Tag>;
inline constexpr Tag tag;
inline constexpr int lanes = static_cast<int>(hn::MaxLanes(tag)); // of float64

// Vectors of rows per tile. With four centroids that makes 16 sums where there are 32 registers, 8 where there are 16.
#if HWY_TARGET == HWY_SCALAR
inline constexpr int tile_vectors = 1;
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr int tile_vectors = 2;
#else
inline constexpr int tile_vectors = 4;
#endif

// Values of either element type as float64.
HWY_INLINE Vector load_wide(const double *from)
{
    return hn::LoadU(tag, from);
}
HWY_INLINE Vector load_wide(const float *from)
{
    return hn::PromoteTo(tag, hn::LoadU(hn::Rebind<float, Tag>(), from));
}

HWY_INLINE double total(Vector v)
{
    return hn::GetLane(hn::SumOfLanes(tag, v));
}

// sum + difference^2, rounded once: the contract's fused multiply-add. Highway's rounds twice where the instruction
// set has no fused one (scalar, SSE4); there every lane goes through std::fma: slow, and right.
HWY_INLINE Vector add_square(Vector difference, Vector sum)
{
#if HWY_NATIVE_FMA
    return hn::MulAdd(difference, difference, sum);
#else
    HWY_ALIGN_MAX double x[lanes], s[lanes];
    hn::Store(difference, tag, x);
    hn::Store(sum, tag, s);
    for (int i = 0; i < lanes; ++i)
        s[i] = std::fma(x[i], x[i], s[i]);
    return hn::Load(tag, s);
#endif
}

// Whether this target has one instruction for add_pair() on some processors: AVX-512's VNNI, which Highway's target for
// AVX-512 goes without. Then add_pair<true>() is for those that have it (has_vnni()).
#if HWY_TARGET == HWY_AVX3 && defined(__GNUC__)
inline constexpr bool knows_vnni = true;
#else
inline constexpr bool knows_vnni = false;
#endif

// Of words (32-bit integers): sum + the product of the lower halves + that of the upper halves, lane by lane.
template <bool Vnni, typename V>
HWY_INLINE V add_pair(V x, V y, V sum)
{
#if HWY_TARGET == HWY_AVX3 && defined(__GNUC__)
    if constexpr (Vnni) {
        asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
        return sum;
    }
#endif
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
    const hn::DFromV<V> words;
    const hn::Repartition<std::int16_t, decltype(words)> halves;
    V unused = hn::Zero(words);
    return hn::ReorderWidenMulAccumulate(words, hn::BitCast(halves, x), hn::BitCast(halves, y), sum, unused);
#else
    const auto lower = [](V v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
    const auto upper = [](V v) { return hn::ShiftRight<16>(v); };
    return hn::Add(sum, hn::Add(hn::Mul(lower(x), lower(y)), hn::Mul(upper(x), upper(y))));
#endif
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// PGKM_KERNELS(TABLE, NAME, KERNELS...) defines const TABLE &NAME(InstructionSet set): {KERNELS...} as compiled for
// `set`. (Highway's own HWY_DYNAMIC_DISPATCH knows one choice per process; here contexts may use several at once.)
#undef PGKM_KERNELS
#undef PGKM_TARGET_TABLE
#define PGKM_TARGET_TABLE(TABLE, NAME, ...)           \
    namespace pgkm::cpu::HWY_NAMESPACE {              \
    const TABLE *NAME##_table()                       \
    {                                                 \
        static constexpr TABLE table = {__VA_ARGS__}; \
        return &table;                                \
    }                                                 \
    }
#if HWY_ONCE
#define PGKM_KERNELS(TABLE, NAME, ...)                                            \
    PGKM_TARGET_TABLE(TABLE, NAME, __VA_ARGS__)                                   \
    namespace pgkm::cpu {                                                         \
    HWY_EXPORT(NAME##_table);                                                     \
    const TABLE &NAME(InstructionSet set)                                         \
    {                                                                             \
        const std::size_t targets = std::size(HWY_DISPATCH_TABLE(NAME##_table));  \
        return *HWY_DISPATCH_TABLE(NAME##_table)[dispatch_index(set, targets)](); \
    }                                                                             \
    }

namespace pgkm::cpu {

// Where the kernels for `set` stand in a table of `targets` entries. Inline on purpose: GetIndex() looks at the
// targets compiled in the including source.
inline std::size_t dispatch_index(InstructionSet set, std::size_t targets)
{
    if (targets == 1)
        return 0; // a build for one target
    hwy::ChosenTarget target;
    target.Update(highway_target(set));
    return target.GetIndex();
}

} // namespace pgkm::cpu
#else
#define PGKM_KERNELS PGKM_TARGET_TABLE
#endif
