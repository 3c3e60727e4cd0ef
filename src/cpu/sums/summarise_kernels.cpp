// summarise_kernels.cpp - ranges and integer moments of a block of row-major rows.
#include "cpu/sums/summarise_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#define HWY_TARGET_INCLUDE "cpu/sums/summarise_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "numeric/contract.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// Rows are read as they lie, lanes along them. Short rows are joined to lines of as many as
// make whole vectors, so that a lane always meets the same feature; long ones are cut into
// panels. Either way what a line sums up stays in L1.
inline constexpr int longest_joined = 64;
inline constexpr int line_length = 512;

struct Panel {
    std::int32_t first; // feature
    int width;          // features
    int rows;           // per line
    int length() const { return rows * width; }
};

// Calls body(panel) for panels that cover all features.
template <typename Body>
HWY_INLINE void for_panels(std::int32_t d, Body &&body)
{
    for (std::int32_t first = 0; first < d; first += line_length) {
        const int width = std::min(line_length, d - first);
        body(Panel{first, width, d > longest_joined ? 1 : lanes / std::gcd(lanes, d)});
    }
}

// Calls line(values) for the whole lines of a panel, and returns the first row that did not fit into one.
template <typename T, typename Line>
HWY_INLINE std::int64_t for_lines(const SummaryRows<T> &block, const Panel &panel, Line &&line)
{
    std::int64_t i = 0;
    for (; i + panel.rows <= block.n; i += panel.rows)
        line(block.values + i * block.d + panel.first);
    return i;
}

HWY_INLINE void widen_by_one(const Ranges &ranges, std::int64_t at, double value)
{
    ranges.min[at] = std::min(ranges.min[at], value);
    ranges.max[at] = std::max(ranges.max[at], value);
}

template <typename T>
HWY_INLINE void widen_by_line(const Ranges &ranges, int length, const T *x)
{
    int c = 0;
    for (; c + lanes <= length; c += lanes) {
        const Vector value = load_wide(x + c);
        hn::StoreU(hn::Min(hn::LoadU(tag, ranges.min + c), value), tag, ranges.min + c);
        hn::StoreU(hn::Max(hn::LoadU(tag, ranges.max + c), value), tag, ranges.max + c);
    }
    for (; c < length; ++c)
        widen_by_one(ranges, c, static_cast<double>(x[c]));
}

template <typename T>
void widen(const SummaryRows<T> &block, const Ranges &ranges)
{
    for_panels(block.d, [&](const Panel &panel) {
        HWY_ALIGN_MAX double min[line_length], max[line_length];
        const Ranges line = {min, max};
        std::fill_n(min, panel.length(), std::numeric_limits<double>::infinity());
        std::fill_n(max, panel.length(), -std::numeric_limits<double>::infinity());
        std::int64_t i = for_lines(block, panel, [&](const T *x) { widen_by_line(line, panel.length(), x); });
        for (int c = 0; c < panel.length(); ++c) {
            const std::int32_t f = panel.first + c % panel.width;
            ranges.min[f] = std::min(ranges.min[f], min[c]);
            ranges.max[f] = std::max(ranges.max[f], max[c]);
        }
        for (; i < block.n; ++i)
            for (std::int32_t f = panel.first; f < panel.first + panel.width; ++f)
                widen_by_one(ranges, f, static_cast<double>(block.values[i * block.d + f]));
    });
}

// An integer in a float64 stands in the low bits of the sum with one of these; the sum also
// rounds a value to an integer, ties to even. The bits of the constant itself are taken off
// once, after many additions.
inline constexpr double signed_bias = 0x1.8p52; // below 2^51 in magnitude
inline constexpr double unsigned_bias = 0x1p52; // non-negative, whole

HWY_INLINE std::uint64_t without_bias(std::uint64_t sum, double bias, std::int64_t count)
{
    std::uint64_t bits;
    std::memcpy(&bits, &bias, sizeof bits);
    return sum - bits * static_cast<std::uint64_t>(count);
}

HWY_INLINE void add_one(const MomentSums &sums, std::int64_t at, double value, double middle, double value_scale,
                        double square_scale)
{
    const double centred = value - middle;
    const Limbs limbs = quantise_square(centred * centred, square_scale);
    sums.value[at] += static_cast<std::uint64_t>(quantise(centred, value_scale));
    sums.square_hi[at] += static_cast<std::uint64_t>(limbs.hi);
    sums.square_lo[at] += static_cast<std::uint64_t>(limbs.lo);
}

HWY_INLINE void add_bits(Vector biased, std::uint64_t *sum)
{
    const hn::RebindToUnsigned<Tag> integers;
    hn::StoreU(hn::Add(hn::LoadU(integers, sum), hn::BitCast(integers, biased)), integers, sum);
}

// Adds a line's whole vectors, biased; returns where its scalar rest begins.
template <typename T>
HWY_INLINE int add_line(const MomentSums &sums, const MomentScales &scales, int length, const T *x)
{
    const Vector to_signed = hn::Set(tag, signed_bias), to_unsigned = hn::Set(tag, unsigned_bias);
    const Vector limb = hn::Set(tag, 0x1p46);
    static_assert(lower_limb_bits == 46);
    int c = 0;
    for (; c + lanes <= length; c += lanes) {
        const Vector centred = hn::Sub(load_wide(x + c), hn::LoadU(tag, scales.middle + c));
        add_bits(hn::Add(hn::Mul(centred, hn::LoadU(tag, scales.value_scale + c)), to_signed), sums.value + c);
        const Vector square = hn::Mul(hn::Mul(centred, centred), hn::LoadU(tag, scales.square_scale + c));
        const Vector whole = hn::Floor(square);
        add_bits(hn::Add(whole, to_unsigned), sums.square_hi + c);
        add_bits(hn::Add(hn::Floor(hn::Mul(hn::Sub(square, whole), limb)), to_unsigned), sums.square_lo + c);
    }
    return c;
}

template <typename T>
void moments(const SummaryRows<T> &block, const MomentScales &scales, const MomentSums &sums)
{
    for_panels(block.d, [&](const Panel &panel) {
        HWY_ALIGN_MAX double middle[line_length], value_scale[line_length], square_scale[line_length];
        HWY_ALIGN_MAX std::uint64_t value[line_length] = {}, square_hi[line_length] = {}, square_lo[line_length] = {};
        for (int c = 0; c < panel.length(); ++c) {
            middle[c] = scales.middle[panel.first + c % panel.width];
            value_scale[c] = scales.value_scale[panel.first + c % panel.width];
            square_scale[c] = scales.square_scale[panel.first + c % panel.width];
        }
        const MomentSums line = {value, square_hi, square_lo};
        int whole = 0;
        std::int64_t lines = 0;
        const std::int64_t joined = for_lines(block, panel, [&](const T *x) {
            whole = add_line(line, {middle, value_scale, square_scale}, panel.length(), x);
            for (int c = whole; c < panel.length(); ++c)
                add_one(line, c, static_cast<double>(x[c]), middle[c], value_scale[c], square_scale[c]);
            ++lines;
        });
        for (int c = 0; c < panel.length(); ++c) {
            const std::int32_t f = panel.first + c % panel.width;
            const std::int64_t biased = c < whole ? lines : 0;
            sums.value[f] += without_bias(value[c], signed_bias, biased);
            sums.square_hi[f] += without_bias(square_hi[c], unsigned_bias, biased);
            sums.square_lo[f] += without_bias(square_lo[c], unsigned_bias, biased);
        }
        for (std::int64_t i = joined; i < block.n; ++i)
            for (std::int32_t f = panel.first; f < panel.first + panel.width; ++f)
                add_one(sums, f, static_cast<double>(block.values[i * block.d + f]), scales.middle[f],
                        scales.value_scale[f], scales.square_scale[f]);
    });
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(SummaryKernels, summary_kernels, {widen<float>, widen<double>}, {moments<float>, moments<double>})
