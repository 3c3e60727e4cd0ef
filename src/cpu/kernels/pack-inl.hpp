// pack-inl.hpp - transposes a block of rows to feature-major order, converting on the way.
//
// block[f * width + i] = row i's feature f (less a shift, if there is one). Lanes over points need
// it; done once per block, in L1, with 4 x 4 transposes in registers (two shuffles per 4 elements
// instead of one strided scalar load per element). Included once per target, as Highway's own -inl
// files.
#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"

#if defined(PGKM_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PGKM_PACK_INL
#undef PGKM_PACK_INL
#else
#define PGKM_PACK_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

inline constexpr int pack_part = 16; // features: 64 bytes of a row

// Four rows' vectors of four features become four features' vectors of four rows.
template <typename V>
HWY_INLINE void transpose4(V &a, V &b, V &c, V &d)
{
    const hn::DFromV<V> tag;
    const hn::RepartitionToWide<decltype(tag)> wide;
    const V ab_low = hn::InterleaveLower(tag, a, b), ab_high = hn::InterleaveUpper(tag, a, b);
    const V cd_low = hn::InterleaveLower(tag, c, d), cd_high = hn::InterleaveUpper(tag, c, d);
    const auto al = hn::BitCast(wide, ab_low), ah = hn::BitCast(wide, ab_high);
    const auto cl = hn::BitCast(wide, cd_low), ch = hn::BitCast(wide, cd_high);
    a = hn::BitCast(tag, hn::InterleaveLower(wide, al, cl));
    b = hn::BitCast(tag, hn::InterleaveUpper(wide, al, cl));
    c = hn::BitCast(tag, hn::InterleaveLower(wide, ah, ch));
    d = hn::BitCast(tag, hn::InterleaveUpper(wide, ah, ch));
}

// Stores four values as four of type Out.
HWY_INLINE void store4(hn::Vec<hn::FixedTag<std::int32_t, 4>> v, std::int32_t *to)
{
    hn::StoreU(v, hn::FixedTag<std::int32_t, 4>(), to);
}
HWY_INLINE void store4(hn::Vec<hn::FixedTag<float, 4>> v, float *to)
{
    hn::StoreU(v, hn::FixedTag<float, 4>(), to);
}
HWY_INLINE void store4(hn::Vec<hn::FixedTag<float, 4>> v, double *to)
{
    const hn::FixedTag<double, 2> half;
    const hn::FixedTag<float, 2> low;
    hn::StoreU(hn::PromoteTo(half, hn::LowerHalf(low, v)), half, to);
    hn::StoreU(hn::PromoteTo(half, hn::UpperHalf(low, v)), half, to + 2);
}

// Rows i .. i+3, features f .. f+3.
template <typename T, typename Out>
HWY_INLINE void pack4x4(const T *const *rows, int f, const T *shift, int width, Out *to)
{
    const hn::FixedTag<T, 4> tag;
    auto a = hn::LoadU(tag, rows[0] + f), b = hn::LoadU(tag, rows[1] + f);
    auto c = hn::LoadU(tag, rows[2] + f), d = hn::LoadU(tag, rows[3] + f);
    if (shift != nullptr) {
        const auto s = hn::LoadU(tag, shift + f);
        a = hn::Sub(a, s);
        b = hn::Sub(b, s);
        c = hn::Sub(c, s);
        d = hn::Sub(d, s);
    }
    transpose4(a, b, c, d);
    store4(a, to);
    store4(b, to + width);
    store4(c, to + 2 * width);
    store4(d, to + 3 * width);
}
#endif

template <typename T, typename Out>
HWY_INLINE void pack_scalar(const T *const *rows, int count, int first, int last, const T *shift, int width, Out *block)
{
    for (int f = first; f < last; ++f) {
        Out *line = block + static_cast<std::size_t>(f) * static_cast<std::size_t>(width);
        const T less = shift == nullptr ? T(0) : shift[f]; // x - 0 is x
        for (int i = 0; i < count; ++i)
            line[i] = static_cast<Out>(rows[i][f] - less);
    }
}

// count rows, less the shift (in T, then rounded to Out) unless it is NULL; the rest of the width
// repeats the last row, so that every lane holds a point.
template <typename T, typename Out>
HWY_INLINE void pack_rows(const T *const *rows, int count, int d, const T *shift, int width, Out *block)
{
    int packed_rows = 0, packed_features = 0;
#if HWY_TARGET != HWY_SCALAR
    if constexpr (sizeof(T) == 4) {
        packed_rows = count / 4 * 4;
        packed_features = d / 4 * 4;
        // Of every row a cache line at a time: with many features the block does not stay in
        // cache until the next four rows come.
        for (int part = 0; part < packed_features; part += pack_part)
            for (int i = 0; i < packed_rows; i += 4)
                for (int f = part; f < std::min(part + pack_part, packed_features); f += 4)
                    pack4x4(rows + i, f, shift, width,
                            block + static_cast<std::size_t>(f) * static_cast<std::size_t>(width) + i);
    }
#endif
    pack_scalar(rows, packed_rows, packed_features, d, shift, width, block);
    pack_scalar(rows + packed_rows, count - packed_rows, 0, d, shift, width, block + packed_rows);
    for (int f = 0; count < width && f < d; ++f) {
        Out *line = block + static_cast<std::size_t>(f) * static_cast<std::size_t>(width);
        std::fill(line + count, line + width, line[count - 1]);
    }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // toggle
