// narrow_kernels.cpp - products of 16-bit integers, two features to a lane; rows become such integers.
//
// Rows of a block lie pair by pair, lanes run over rows; a panel of four centroids shares the loads. Panels that stay
// in a part of L1 meet all rows of the block before the next ones do.
#include "cpu/kernels/narrow_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#define HWY_TARGET_INCLUDE "cpu/kernels/narrow_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
inline constexpr hn::ScalableTag<float> single;
inline constexpr hn::ScalableTag<std::int32_t> words;
using SingleVector = hn::Vec<decltype(single)>;
using WordVector = hn::Vec<decltype(words)>;
inline constexpr int single_lanes = static_cast<int>(hn::MaxLanes(single));

// `count` values of a row, single_lanes at most, centred and times the factor; the other lanes are 0.
HWY_INLINE SingleVector centred(const float *x, const float *shift, int count, double factor)
{
    const auto scale = hn::Set(single, static_cast<float>(factor));
    if (count >= single_lanes)
        return hn::Mul(hn::Sub(hn::LoadU(single, x), hn::LoadU(single, shift)), scale);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 // elsewhere a masked load may read what lies behind
    const auto there = hn::FirstN(single, static_cast<std::size_t>(count));
    return hn::Mul(hn::Sub(hn::MaskedLoad(there, single, x), hn::MaskedLoad(there, single, shift)), scale);
#else
    HWY_ALIGN_MAX float values[single_lanes] = {};
    for (int i = 0; i < count; ++i)
        values[i] = x[i] - shift[i];
    return hn::Mul(hn::Load(single, values), scale);
#endif
}
HWY_INLINE SingleVector centred(const double *x, const double *shift, int count, double factor)
{
    HWY_ALIGN_MAX float values[single_lanes] = {};
    for (int i = 0; i < std::min(count, single_lanes); ++i)
        values[i] = static_cast<float>((x[i] - shift[i]) * factor);
    return hn::Load(single, values);
}

template <typename T>
float narrow_row(const T *x, int d, const T *shift, double factor, std::int32_t *out)
{
    const hn::Rebind<std::int16_t, decltype(single)> halves;
    const int words_of_row = narrow_words(d), stride = 2 * (words_of_row - narrow_head);
    SingleVector sum = hn::Zero(single), largest = hn::Zero(single);
    for (int f = 0; f < d; f += single_lanes) {
        const SingleVector value = centred(x + f, shift + f, d - f, factor);
        sum = hn::MulAdd(value, value, sum);
        largest = hn::Max(largest, hn::Abs(value));
    }
    const float square = hn::GetLane(hn::SumOfLanes(single, sum));
    if (!(square < 0x1p60f)) { // nor where it is not a number
        std::fill(out, out + words_of_row, 0);
        return 0.0f;
    }
    const float length = std::sqrt(square);
    const float unit = std::max(
        {length / narrow_length, hn::GetLane(hn::MaxOfLanes(single, largest)) / most_narrow_value, least_narrow_unit});
    const NarrowRow about = {1.0f / unit, unit, square, length};
    std::memcpy(out, &about, sizeof about);
    auto *integers = reinterpret_cast<std::int16_t *>(out + narrow_head);
    const auto inverse = hn::Set(single, about.inverse);
    std::fill(integers + stride - 8, integers + stride, std::int16_t{0});
    SingleVector less = hn::Zero(single);
    for (int f = 0; f < d; f += single_lanes) {
        const SingleVector value = hn::Mul(centred(x + f, shift + f, d - f, factor), inverse);
        const WordVector whole = hn::NearestInt(value);
        const SingleVector difference = hn::Sub(value, hn::ConvertTo(single, whole));
        less = hn::MulAdd(difference, difference, less);
        if (f + single_lanes <= stride) {
            hn::StoreU(hn::DemoteTo(halves, whole), halves, integers + f);
        } else {
            HWY_ALIGN_MAX std::int32_t each[single_lanes];
            hn::Store(whole, words, each);
            std::copy(each, each + (stride - f), integers + f);
        }
    }
    return std::sqrt(hn::GetLane(hn::SumOfLanes(single, less)));
}

template <typename T>
float narrow(const T *const *rows, int count, int d, const T *shift, double factor, std::int32_t *out)
{
    float most = 0.0f;
    for (int i = 0; i < count; ++i)
        most = std::max(most, narrow_row(rows[i], d, shift, factor, out + std::ptrdiff_t{i} * narrow_words(d)));
    return most;
}

void pack(const std::int32_t *const *rows, int count, int row_words, std::int32_t *block)
{
    pack_rows<std::int32_t>(rows, count, row_words, nullptr, tiled_width, block);
}

// The products of tile_vectors of rows with one panel. A function of its own: beside the lowest scores the compiler
// runs out of registers, and sums that wait for memory halve the speed.
template <bool Vnni>
HWY_NOINLINE void multiply(const std::int32_t *rows, int pairs, const std::int32_t *panel, std::int32_t *out)
{
    WordVector sum[tiled_panel][tile_vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < tiled_panel; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            sum[j][v] = hn::Zero(words);
    }
    for (int p = 0; p < pairs; ++p) {
        WordVector x[tile_vectors];
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            x[v] = hn::Load(words, rows + p * tiled_width + v * single_lanes);
        HWY_UNROLL(4)
        for (int j = 0; j < tiled_panel; ++j) {
            const WordVector c = hn::Set(words, panel[p * tiled_panel + j]);
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v)
                sum[j][v] = add_pair<Vnni>(x[v], c, sum[j][v]);
        }
    }
    HWY_UNROLL(4)
    for (int j = 0; j < tiled_panel; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            hn::Store(sum[j][v], words, out + (j * tile_vectors + v) * single_lanes);
    }
}

// tile_vectors of rows against one panel.
template <bool Vnni>
HWY_INLINE void score_tile(const std::int32_t *rows, int pairs, const std::int32_t *panel, const NarrowPanels &about,
                           std::int64_t first, const SingleVector *inverse, float number, float *scores,
                           SingleVector *best, SingleVector *second, SingleVector *index)
{
    HWY_ALIGN_MAX std::int32_t products[tiled_panel * tile_vectors * single_lanes];
    multiply<Vnni>(rows, pairs, panel, products);
    HWY_UNROLL(4)
    for (int j = 0; j < tiled_panel; ++j) {
        const SingleVector start = hn::Set(single, about.start[first + j]);
        const SingleVector scale = hn::Set(single, about.scale[first + j]);
        const SingleVector margin = hn::Set(single, about.margin[first + j]);
        const SingleVector own = hn::Set(single, number + static_cast<float>(j));
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v) {
            // Without a fused operation there are two roundings: the bound allows for them.
            const SingleVector score = hn::NegMulAdd(
                scale, hn::ConvertTo(single, hn::Load(words, products + (j * tile_vectors + v) * single_lanes)),
                hn::MulSub(start, inverse[v], margin));
            hn::Store(score, single, scores + j * tiled_width + v * single_lanes);
            const auto lower = hn::Lt(score, best[v]);
            second[v] = hn::Min(second[v], hn::Max(score, best[v]));
            best[v] = hn::Min(score, best[v]);
            index[v] = hn::IfThenElse(lower, own, index[v]);
        }
    }
}

template <bool Vnni>
void score_by(const NarrowBlock &block, int pairs, const NarrowPanels &panels, std::int64_t count, float *scores,
              const Lowest &lowest)
{
    const std::int64_t panel_size = std::int64_t{tiled_panel} * pairs;
    const std::int64_t range = std::max<std::int64_t>(1, 2048 / panel_size);
    for (std::int64_t from = 0; from < count; from += range)
        for (int i = 0; i < tiled_width; i += tile_vectors * single_lanes) {
            SingleVector best[tile_vectors], second[tile_vectors], index[tile_vectors], inverse[tile_vectors];
            for (int v = 0; v < tile_vectors; ++v) {
                const int at = i + v * single_lanes;
                inverse[v] = hn::Load(single, block.inverse + at);
                best[v] = hn::Load(single, lowest.best + at);
                second[v] = hn::Load(single, lowest.second + at);
                index[v] = hn::Load(single, lowest.index + at);
            }
            for (std::int64_t q = from; q < std::min(count, from + range); ++q)
                score_tile<Vnni>(block.values + i, pairs, panels.values + q * panel_size, panels, q * tiled_panel,
                                 inverse, lowest.first + static_cast<float>(q * tiled_panel),
                                 scores + q * tiled_panel * tiled_width + i, best, second, index);
            for (int v = 0; v < tile_vectors; ++v) {
                const int at = i + v * single_lanes;
                hn::Store(best[v], single, lowest.best + at);
                hn::Store(second[v], single, lowest.second + at);
                hn::Store(index[v], single, lowest.index + at);
            }
        }
}

void score(const NarrowBlock &block, int pairs, const NarrowPanels &panels, std::int64_t count, float *scores,
           const Lowest &lowest)
{
    const auto run = knows_vnni && has_vnni() ? score_by<knows_vnni> : score_by<false>;
    run(block, pairs, panels, count, scores, lowest);
}

void limits(const NarrowBlock &block, const NarrowPanels &centroids, const Lowest &lowest, float of_length,
            float *limit)
{
    for (int i = 0; i < tiled_width; i += single_lanes) {
        const WordVector index = hn::ConvertTo(words, hn::Load(single, lowest.index + i));
        const SingleVector best = hn::Load(single, lowest.best + i);
        const SingleVector start = hn::GatherIndex(single, centroids.start, index);
        const SingleVector margin = hn::GatherIndex(single, centroids.margin, index);
        const SingleVector share =
            hn::Mul(hn::Mul(start, hn::Load(single, block.inverse + i)), hn::Set(single, 0x1p-18f));
        const SingleVector above = hn::Add(hn::Add(hn::Add(margin, margin), share),
                                           hn::Mul(hn::Load(single, block.length + i), hn::Set(single, of_length)));
        const SingleVector rounding = hn::Mul(hn::Add(hn::Abs(best), above), hn::Set(single, 0x1p-21f));
        const SingleVector most = hn::Add(hn::Add(hn::Add(best, above), rounding), hn::Set(single, 0x1p-60f));
        hn::Store(hn::Min(most, hn::Load(single, limit + i)), single, limit + i);
    }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(NarrowKernels, narrow_kernels, {narrow<float>, narrow<double>}, pack, score, limits)
