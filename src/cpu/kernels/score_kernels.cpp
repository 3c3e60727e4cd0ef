// score_kernels.cpp - float32 scores of 64 rows against panels of four centroids, and which are low enough.
//
// Rows lie feature by feature, lanes run over rows. encode/score_bound.hpp proves how far a score may be off.
#include "cpu/kernels/score_kernels.hpp"

#include <algorithm>
#include <limits>

#define HWY_TARGET_INCLUDE "cpu/kernels/score_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/lowest-inl.hpp"
#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// One panel against tile_vectors of points. Start: the scores begin here, else they go on. Last: they are complete.
template <bool Start, bool Last>
HWY_INLINE void add_tile(const float *points, int features, const float *panel, const float *start, float *scores,
                         float first, LowestVectors &lowest)
{
    SingleVector sum[tiled_panel][tile_vectors];
    HWY_UNROLL(4)
    for (int j = 0; j < tiled_panel; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            sum[j][v] = hn::Zero(single);
    }
    for (int f = 0; f < features; ++f) {
        SingleVector x[tile_vectors];
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v)
            x[v] = hn::Load(single, points + f * tiled_width + v * single_lanes);
        HWY_UNROLL(4)
        for (int j = 0; j < tiled_panel; ++j) {
            const SingleVector c = hn::Set(single, panel[f * tiled_panel + j]);
            HWY_UNROLL(4)
            for (int v = 0; v < tile_vectors; ++v)
                sum[j][v] = hn::MulAdd(x[v], c, sum[j][v]); // two roundings without FMA: the bound allows for it
        }
    }
    HWY_UNROLL(4)
    for (int j = 0; j < tiled_panel; ++j) {
        HWY_UNROLL(4)
        for (int v = 0; v < tile_vectors; ++v) {
            float *score = scores + j * tiled_width + v * single_lanes;
            const SingleVector total = hn::Add(Start ? hn::Set(single, start[j]) : hn::Load(single, score), sum[j][v]);
            hn::Store(total, single, score);
            if constexpr (Last)
                lowest.enter(v, total, hn::Set(single, first + static_cast<float>(j)));
        }
    }
}

template <bool Start, bool Last>
void add_panels(const float *block, int features, const float *panels, std::int64_t panel_stride, std::int64_t count,
                const float *start, float *scores, const Lowest *out)
{
    for (int i = 0; i < tiled_width; i += tile_vectors * single_lanes) {
        LowestVectors lowest;
        if constexpr (Last)
            lowest.load(*out, i);
        for (std::int64_t p = 0; p < count; ++p)
            add_tile<Start, Last>(block + i, features, panels + p * panel_stride,
                                  Start ? start + p * tiled_panel : nullptr, scores + p * tiled_panel * tiled_width + i,
                                  Last ? out->first + static_cast<float>(p * tiled_panel) : 0.0f, lowest);
        if constexpr (Last)
            lowest.store(*out, i);
    }
}

void add(const float *block, int features, const float *panels, std::int64_t panel_stride, std::int64_t count,
         const float *start, float *scores, const Lowest *lowest)
{
    const auto run = start != nullptr ? (lowest != nullptr ? add_panels<true, true> : add_panels<true, false>)
                                      : (lowest != nullptr ? add_panels<false, true> : add_panels<false, false>);
    run(block, features, panels, panel_stride, count, start, scores, lowest);
}

void norms(const float *block, int d, float *squares)
{
    constexpr int depth = 64; // features that stay in L1 while all points pass
    std::fill_n(squares, tiled_width, 0.0f);
    for (int first = 0; first < d; first += depth) {
        const int last = std::min(first + depth, d);
        for (int i = 0; i < tiled_width; i += single_lanes) {
            SingleVector sum = hn::Load(single, squares + i);
            for (int f = first; f < last; ++f) {
                const SingleVector x = hn::Load(single, block + static_cast<std::ptrdiff_t>(f) * tiled_width + i);
                sum = hn::MulAdd(x, x, sum);
            }
            hn::Store(sum, single, squares + i);
        }
    }
}

void lowest_of(const float *scores, std::int64_t count, const Lowest &lowest)
{
    for (int i = 0; i < tiled_width; i += tile_vectors * single_lanes) {
        LowestVectors found;
        found.load(lowest, i);
        for (std::int64_t j = 0; j < count; ++j)
            for (int v = 0; v < tile_vectors; ++v)
                found.enter(v, hn::Load(single, scores + j * tiled_width + i + v * single_lanes),
                            hn::Set(single, lowest.first + static_cast<float>(j)));
        found.store(lowest, i);
    }
}

std::int64_t at_most(const float *scores, std::int64_t count, const float *limit, Hit *hits)
{
    std::int64_t found = 0;
    for (int i = 0; i < tiled_width; i += single_lanes) {
        const SingleVector limits = hn::Load(single, limit + i);
        if (hn::AllTrue(single, hn::Lt(limits, hn::Set(single, -std::numeric_limits<float>::max()))))
            continue;
        for (std::int64_t j = 0; j < count; ++j) {
            const auto low = hn::Le(hn::Load(single, scores + j * tiled_width + i), limits);
            if (HWY_LIKELY(hn::AllFalse(single, low)))
                continue;
            std::uint8_t bytes[8] = {}; // one bit per lane; Highway wants at least 8 bytes of room
            hn::StoreMaskBits(single, low, bytes);
            std::uint64_t bits = 0;
            for (int b = 0; b < (single_lanes + 7) / 8; ++b)
                bits |= std::uint64_t{bytes[b]} << (8 * b);
            for (; bits != 0; bits &= bits - 1) {
                const int point = i + __builtin_ctzll(bits);
                hits[found++] = {point, static_cast<std::int32_t>(j), scores[j * tiled_width + point]};
            }
        }
    }
    return found;
}

template <typename T>
void pack(const T *const *rows, int count, int d, const T *shift, float *block)
{
    pack_rows(rows, count, d, shift, tiled_width, block);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(ScoreKernels, score_kernels, HWY_NATIVE_FMA != 0, {pack<float>, pack<double>}, norms, add, lowest_of,
             at_most)
