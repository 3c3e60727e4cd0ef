// pack-inl.hpp - transposes a block of rows to feature-major order, converting on the way.
//
// block[f * width + i] = row i's feature f (less a shift, if there is one). Lanes over points need
// it; done once per block, in L1, with square transposes in registers: as many rows as a vector has values, so that
// whole vectors are stored. Included once per target, as Highway's own -inl files.
#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "hwy/highway.h"

#include "cpu/kernels/ahead.hpp"

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

// How far ahead rows are asked for while a block is packed, part by part: by a block, or within long rows. Short rows
// need none of it.
template <typename T>
HWY_INLINE std::ptrdiff_t pack_ahead(const T *const *rows, int count, int d)
{
    constexpr std::ptrdiff_t short_row = 128, long_row = 4096, within = 1024;
    const std::ptrdiff_t row = d * static_cast<std::ptrdiff_t>(sizeof(T));
    if (row < short_row || row >= long_row)
        return row < short_row ? 0 : within;
    return dense_bytes(rows, count, d);
}

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

// Stores a vector as values of type Out.
template <typename V>
HWY_INLINE void store_as(V v, hn::TFromV<V> *to)
{
    hn::StoreU(v, hn::DFromV<V>(), to);
}
template <typename V>
HWY_INLINE void store_as(V v, double *to)
{
    const hn::Half<hn::DFromV<V>> half;
    const hn::Rebind<double, decltype(half)> wide;
    hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(half, v)), wide, to);
    hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(half, v)), wide, to + hn::Lanes(wide));
}

// The most rows and features that are transposed at once.
inline constexpr int pack_side = static_cast<int>(hn::MaxLanes(hn::CappedTag<float, 16>()));

// Rows 0 .. Side-1, features f .. f+Side-1. The 4 x 4 squares are transposed first. Then block b of v[4 g + t] has
// feature 4 b + t of rows 4 g .. 4 g + 3, and blocks of one feature are brought together.
template <int Side, typename T, typename Out>
HWY_INLINE void pack_square(const T *const *rows, int f, const T *shift, int width, Out *to)
{
    const hn::FixedTag<T, Side> tag;
    hn::Vec<decltype(tag)> v[Side];
    HWY_UNROLL(16)
    for (int i = 0; i < Side; ++i)
        v[i] = hn::LoadU(tag, rows[i] + f);
    if (shift != nullptr) {
        const auto s = hn::LoadU(tag, shift + f);
        HWY_UNROLL(16)
        for (int i = 0; i < Side; ++i)
            v[i] = hn::Sub(v[i], s);
    }
    HWY_UNROLL(4)
    for (int i = 0; i < Side; i += 4)
        transpose4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    const auto store = [&](int feature, auto values) {
        store_as(values, to + static_cast<std::ptrdiff_t>(feature) * width);
    };
    HWY_UNROLL(4)
    for (int t = 0; t < 4; ++t) {
        if constexpr (Side == 4) {
            store(t, v[t]);
        } else if constexpr (Side == 8) {
            store(t, hn::ConcatLowerLower(tag, v[4 + t], v[t]));
            store(4 + t, hn::ConcatUpperUpper(tag, v[4 + t], v[t]));
        } else {
            const auto low = hn::ConcatLowerLower(tag, v[8 + t], v[t]);
            const auto odd_low = hn::ConcatLowerLower(tag, v[12 + t], v[4 + t]);
            const auto high = hn::ConcatUpperUpper(tag, v[8 + t], v[t]);
            const auto odd_high = hn::ConcatUpperUpper(tag, v[12 + t], v[4 + t]);
            store(t, hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_low), low));
            store(4 + t, hn::OddEvenBlocks(odd_low, hn::SwapAdjacentBlocks(low)));
            store(8 + t, hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_high), high));
            store(12 + t, hn::OddEvenBlocks(odd_high, hn::SwapAdjacentBlocks(high)));
        }
    }
}

// The same of float64, two or four of them.
template <int Side>
HWY_INLINE void pack_square(const double *const *rows, int f, const double *shift, int width, double *to)
{
    const hn::FixedTag<double, Side> tag;
    hn::Vec<decltype(tag)> v[Side];
    HWY_UNROLL(4)
    for (int i = 0; i < Side; ++i) {
        v[i] = hn::LoadU(tag, rows[i] + f);
        if (shift != nullptr)
            v[i] = hn::Sub(v[i], hn::LoadU(tag, shift + f));
    }
    HWY_UNROLL(2)
    for (int t = 0; t < 2; ++t, to += width) {
        const auto ab = t == 0 ? hn::InterleaveLower(tag, v[0], v[1]) : hn::InterleaveUpper(tag, v[0], v[1]);
        if constexpr (Side == 2) {
            hn::StoreU(ab, tag, to);
        } else {
            const auto cd = t == 0 ? hn::InterleaveLower(tag, v[2], v[3]) : hn::InterleaveUpper(tag, v[2], v[3]);
            hn::StoreU(hn::ConcatLowerLower(tag, cd, ab), tag, to);
            hn::StoreU(hn::ConcatUpperUpper(tag, cd, ab), tag, to + 2 * std::ptrdiff_t{width});
        }
    }
}

// The rows and features that squares of this side cover: of every row a cache line at a time, since with many features
// the block does not stay in cache until the next rows come.
template <int Side, typename T, typename Out>
HWY_INLINE void pack_squares(const T *const *rows, int count, int first, int last, const T *shift, int width,
                             Out *block, std::ptrdiff_t ahead)
{
    for (int part = first; part < last; part += pack_part)
        for (int i = 0; i < count; i += Side) {
            for (int r = i; ahead > 0 && r < i + Side; ++r)
                ask_ahead(rows[r] + part, ahead);
            for (int f = part; f < std::min(part + pack_part, last); f += Side)
                pack_square<Side>(rows + i, f, shift, width,
                                  block + static_cast<std::size_t>(f) * static_cast<std::size_t>(width) + i);
        }
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
    const std::ptrdiff_t ahead = pack_ahead(rows, count, d);
    if constexpr (sizeof(T) == 4) {
        packed_rows = count / 4 * 4;
        packed_features = d / 4 * 4;
        const int side_rows = count / pack_side * pack_side, side_features = d / pack_side * pack_side;
        if constexpr (pack_side > 4) {
            pack_squares<pack_side>(rows, side_rows, 0, side_features, shift, width, block, ahead);
            pack_squares<4>(rows, side_rows, side_features, packed_features, shift, width, block, ahead);
            pack_squares<4>(rows + side_rows, packed_rows - side_rows, 0, packed_features, shift, width,
                            block + side_rows, ahead);
        } else {
            pack_squares<4>(rows, packed_rows, 0, packed_features, shift, width, block, ahead);
        }
    } else if constexpr (std::is_same_v<T, Out>) {
        constexpr int side = static_cast<int>(hn::MaxLanes(hn::CappedTag<double, 4>()));
        if constexpr (side > 1) {
            packed_rows = count / side * side;
            packed_features = d / side * side;
            pack_squares<side>(rows, packed_rows, 0, packed_features, shift, width, block, ahead);
        }
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
