// int16_kernels.cpp - products of 16-bit integers, two features to a lane; rows become such integers.
//
// Rows of a block lie pair by pair, lanes run over rows; a panel of four centroids shares the loads. Panels that stay
// in a part of L1 meet all rows of the block before the next ones do.
#include "cpu/kernels/int16_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#define HWY_TARGET_INCLUDE "cpu/kernels/int16_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/lowest-inl.hpp"
#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
inline constexpr hn::ScalableTag<std::int32_t> words;
using WordVector = hn::Vec<decltype(words)>;

// Rows less the shift, times the factor, feature by feature in float32, for so many lanes.
template <typename T>
void centre(const T *const *rows, int count, int d, const T *shift, double factor, int width, float *block)
{
    if constexpr (sizeof(T) == 4) {
        pack_rows<T>(rows, count, d, shift, width, block);
        const SingleVector scale = hn::Set(single, static_cast<float>(factor));
        for (std::int64_t i = 0; i < std::int64_t{d} * width; i += single_lanes)
            hn::StoreU(hn::Mul(hn::LoadU(single, block + i), scale), single, block + i);
    } else {
        for (int i = 0; i < width; ++i) {
            const T *row = rows[std::min(i, count - 1)];
            for (int f = 0; f < d; ++f)
                block[std::ptrdiff_t{f} * width + i] = static_cast<float>((row[f] - shift[f]) * factor);
        }
    }
}

template <typename T>
float encode(const T *const *rows, int count, int d, const T *shift, double factor, float *block, std::int32_t *out)
{
    const int width = (count + single_lanes - 1) / single_lanes * single_lanes;
    centre(rows, count, d, shift, factor, width, block);
    std::fill_n(out, int16_head * tiled_width, 0); // also of rows that are not there
    SingleVector most = hn::Zero(single);
    for (int i = 0; i < width; i += single_lanes) {
        SingleVector square = hn::Zero(single), largest = hn::Zero(single), less = hn::Zero(single);
        for (int f = 0; f < d; ++f) {
            const SingleVector value = hn::LoadU(single, block + std::ptrdiff_t{f} * width + i);
            square = hn::MulAdd(value, value, square);
            largest = hn::Max(largest, hn::Abs(value));
        }
        const auto holds = hn::Lt(square, hn::Set(single, 0x1p60f)); // nor where it is not a number
        const SingleVector length = hn::Sqrt(square);
        const SingleVector unit = hn::Max(hn::Max(hn::Div(length, hn::Set(single, int16_length)),
                                                  hn::Div(largest, hn::Set(single, most_int16_value))),
                                          hn::Set(single, least_int16_unit));
        const SingleVector inverse = hn::Div(hn::Set(single, 1.0f), unit);
        auto *head = reinterpret_cast<float *>(out) + i;
        for (const SingleVector each : {unit, square, length}) {
            hn::StoreU(hn::IfThenElseZero(holds, each), single, head);
            head += tiled_width;
        }
        const auto whole = [&](int f) {
            const SingleVector value =
                hn::IfThenElseZero(holds, hn::Mul(hn::LoadU(single, block + std::ptrdiff_t{f} * width + i), inverse));
            const WordVector rounded = hn::NearestInt(value);
            const SingleVector difference = hn::Sub(value, hn::ConvertTo(single, rounded));
            less = hn::MulAdd(difference, difference, less);
            return rounded;
        };
        std::int32_t *to = out + int16_head * tiled_width + i;
        for (int f = 0; f < d; f += 2, to += tiled_width) {
            const WordVector lower = hn::And(whole(f), hn::Set(words, 0xffff));
            hn::StoreU(f + 1 < d ? hn::Or(lower, hn::ShiftLeft<16>(whole(f + 1))) : lower, words, to);
        }
        most = hn::Max(most, less);
    }
    return std::sqrt(hn::GetLane(hn::MaxOfLanes(single, most)));
}

void pack(const std::int32_t *const *rows, int count, int row_words, std::int32_t *block)
{
    pack_rows<std::int32_t>(rows, count, row_words, nullptr, tiled_width, block);
}

void unpack(const std::int32_t *block, int count, int block_words, int row_words, std::int32_t *rows)
{
    std::vector<const std::int32_t *> lines;
    for (int w = 0; w < block_words; ++w)
        lines.push_back(block + std::ptrdiff_t{w} * tiled_width);
    pack_rows<std::int32_t>(lines.data(), block_words, count, nullptr, row_words, rows);
}

// The products of tile_vectors of rows with N centroids of one panel. A function of its own: beside the
// lowest scores the compiler runs out of registers, and sums that wait for memory halve the speed.
template <bool Vnni, int N>
HWY_NOINLINE void multiply(const std::int32_t *rows, int pairs, const std::int32_t *panel, std::int32_t *out)
{
    WordVector sum[N][tile_vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < N; ++j) {
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
        for (int j = 0; j < N; ++j) {
            const WordVector c = hn::Set(words, panel[p * tiled_panel + j]);
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v)
                sum[j][v] = add_pair<Vnni>(x[v], c, sum[j][v]);
        }
    }
    HWY_UNROLL(4)
    for (int j = 0; j < N; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            hn::Store(sum[j][v], words, out + (j * tile_vectors + v) * single_lanes);
    }
}

// tile_vectors of rows against N centroids of a panel from `first` on. Enters: the lowest scores are kept.
template <bool Vnni, bool Enters, int N>
HWY_INLINE void score_tile(const std::int32_t *rows, int pairs, const Int16Panels &panels, std::int64_t first,
                           const SingleVector *inverse, float number, float *scores, LowestVectors &lowest)
{
    HWY_ALIGN_MAX std::int32_t products[N * tile_vectors * single_lanes];
    multiply<Vnni, N>(rows, pairs, panels.values + first * pairs, products);
    HWY_UNROLL(4)
    for (int j = 0; j < N; ++j) {
        const SingleVector start = hn::Set(single, panels.start[first + j]);
        const SingleVector scale = hn::Set(single, panels.scale[first + j]);
        const SingleVector margin = hn::Set(single, panels.margin[first + j]);
        const SingleVector own = hn::Set(single, number + static_cast<float>(j));
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v) {
            // Without a fused operation there are two roundings: the bound allows for them.
            const SingleVector score = hn::NegMulAdd(
                scale, hn::ConvertTo(single, hn::Load(words, products + (j * tile_vectors + v) * single_lanes)),
                hn::MulSub(start, inverse[v], margin));
            hn::Store(score, single, scores + j * tiled_width + v * single_lanes);
            if constexpr (Enters)
                lowest.enter(v, score, own);
        }
    }
}

// 1 / unit of rows from i on, which takes less time to make than to read; 0 where float32 does not hold the row.
HWY_INLINE SingleVector inverses(const Int16Block &block, int i)
{
    const SingleVector unit = hn::LoadU(single, block.unit + i);
    return hn::IfThenElseZero(hn::Gt(unit, hn::Zero(single)), hn::Div(hn::Set(single, 1.0f), unit));
}

// Centroids first .. last - 1 of whole panels (N = tiled_panel), or the N of the last one.
template <bool Vnni, bool Enters, int N>
void score_panels(const Int16Block &block, int pairs, const Int16Panels &panels, std::int64_t first, std::int64_t last,
                  float *scores, const Lowest *out)
{
    for (int i = 0; i < tiled_width; i += tile_vectors * single_lanes) {
        SingleVector inverse[tile_vectors];
        for (int v = 0; v < tile_vectors; ++v)
            inverse[v] = inverses(block, i + v * single_lanes);
        LowestVectors lowest;
        if constexpr (Enters)
            lowest.load(*out, i);
        for (std::int64_t j = first; j < last; j += N)
            score_tile<Vnni, Enters, N>(block.values + i, pairs, panels, j, inverse,
                                        Enters ? out->first + static_cast<float>(j) : 0.0f,
                                        scores + j * tiled_width + i, lowest);
        if constexpr (Enters)
            lowest.store(*out, i);
    }
}

template <bool Vnni, bool Enters>
void score_by(const Int16Block &block, int pairs, const Int16Panels &panels, std::int64_t count, float *scores,
              const Lowest *lowest)
{
    const std::int64_t range = std::max(1, 2048 / (tiled_panel * pairs)) * tiled_panel;
    const std::int64_t whole = count / tiled_panel * tiled_panel;
    for (std::int64_t first = 0; first < whole; first += range)
        score_panels<Vnni, Enters, tiled_panel>(block, pairs, panels, first, std::min(whole, first + range), scores,
                                                lowest);
    static constexpr decltype(&score_panels<Vnni, Enters, 1>) rest[] = {
        score_panels<Vnni, Enters, 1>, score_panels<Vnni, Enters, 2>, score_panels<Vnni, Enters, 3>};
    if (whole < count)
        rest[count - whole - 1](block, pairs, panels, whole, count, scores, lowest);
}

void score(const Int16Block &block, int pairs, const Int16Panels &panels, std::int64_t count, float *scores,
           const Lowest *lowest)
{
    const bool vnni = knows_vnni && has_vnni();
    const auto run = lowest != nullptr ? (vnni ? score_by<knows_vnni, true> : score_by<false, true>)
                                       : (vnni ? score_by<knows_vnni, false> : score_by<false, false>);
    run(block, pairs, panels, count, scores, lowest);
}

void limits(const Int16Block &block, const Int16Panels &centroids, const Lowest &lowest, float of_length, float *limit)
{
    for (int i = 0; i < tiled_width; i += single_lanes) {
        const WordVector index = hn::ConvertTo(words, hn::Load(single, lowest.index + i));
        const SingleVector best = hn::Load(single, lowest.best + i);
        const SingleVector start = hn::GatherIndex(single, centroids.start, index);
        const SingleVector margin = hn::GatherIndex(single, centroids.margin, index);
        const SingleVector share = hn::Mul(hn::Mul(start, inverses(block, i)), hn::Set(single, 0x1p-18f));
        const SingleVector above = hn::Add(hn::Add(hn::Add(margin, margin), share),
                                           hn::Mul(hn::Load(single, block.length + i), hn::Set(single, of_length)));
        const SingleVector rounding = hn::Mul(hn::Add(hn::Abs(best), above), hn::Set(single, 0x1p-21f));
        const SingleVector most = hn::Add(hn::Add(hn::Add(best, above), rounding), hn::Set(single, 0x1p-60f));
        hn::Store(hn::Min(most, hn::Load(single, limit + i)), single, limit + i);
    }
}

std::uint64_t gain(const Int16Block &block, const Int16Distance &distance, const float *scores, const float *limit,
                   const double *nearest, GainBounds *sum, double *gains)
{
    std::uint64_t hits = 0;
    for (int i = 0; i < tiled_width; i += single_lanes) {
        std::uint64_t bits = 0; // one per lane; Highway wants at least 8 bytes of room
        hn::StoreMaskBits(single, hn::Le(hn::LoadU(single, scores + i), hn::LoadU(single, limit + i)),
                          reinterpret_cast<std::uint8_t *>(&bits));
        hits |= bits << i;
    }
    if (sum == nullptr || hits == 0)
        return hits;
    Vector least = hn::Zero(tag), most = hn::Zero(tag);
    for (int i = 0; i < tiled_width; i += lanes) {
        if ((hits >> i & ((std::uint64_t{1} << lanes) - 1)) == 0)
            continue;
        const Vector score = load_wide(scores + i), own = load_wide(block.square + i);
        const Vector step = hn::Add(load_wide(block.unit + i), load_wide(block.unit + i));
        const Vector low =
            hn::MulAdd(step, score, hn::MulSub(own, hn::Set(tag, distance.low), hn::Set(tag, distance.lost)));
        const Vector high = hn::MulAdd(step, hn::Add(score, hn::Set(tag, distance.margin)),
                                       hn::MulAdd(own, hn::Set(tag, distance.high), hn::Set(tag, distance.more)));
        const Vector zero = hn::Zero(tag), now = hn::LoadU(tag, nearest + i);
        const auto hit = hn::Le(score, load_wide(limit + i));
        const Vector fewest = hn::IfThenElseZero(
            hit, hn::Max(zero, hn::Sub(now, hn::Mul(hn::Max(zero, high), hn::Set(tag, distance.high_scale)))));
        const Vector at_most = hn::IfThenElseZero(
            hit, hn::Max(zero, hn::Sub(now, hn::Mul(hn::Max(zero, low), hn::Set(tag, distance.low_scale)))));
        least = hn::Add(least, fewest);
        most = hn::Add(most, at_most);
        if (gains != nullptr) {
            hn::StoreU(fewest, tag, gains + i);
            hn::StoreU(at_most, tag, gains + tiled_width + i);
        }
    }
    *sum = {total(least), total(most)};
    return hits;
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(Int16Kernels, int16_kernels, {encode<float>, encode<double>}, pack, unpack, score, limits, gain)
