// tile_kernels.cpp - products of 16-bit rows and float32 candidates in float32; one chain over all features.
#include "cpu/seed/tile_kernels.hpp"

#include <algorithm>

#define HWY_TARGET_INCLUDE "cpu/seed/tile_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
inline constexpr hn::CappedTag<float, seed_strip_rows / 2> single;
using Single = decltype(single);
using SingleVector = hn::Vec<Single>;
inline constexpr int single_lanes = static_cast<int>(hn::MaxLanes(single));
inline constexpr int strip_vectors = HWY_TARGET == HWY_SCALAR ? 1 : 2;
inline constexpr hn::RebindToSigned<Single> integers;
inline constexpr hn::Rebind<std::int16_t, Single> halves;

template <typename T>
void centre(const T *const *rows, int count, int d, const T *parent, double inverse, bool narrow, float *block)
{
    if constexpr (sizeof(T) == 4) {
        if (narrow) {
            pack_rows<T>(rows, count, d, parent, seed_tile_rows, block);
            const SingleVector factor = hn::Set(single, static_cast<float>(inverse));
            for (std::int64_t i = 0; i < std::int64_t{d} * seed_tile_rows; i += single_lanes)
                hn::StoreU(hn::Mul(hn::LoadU(single, block + i), factor), single, block + i);
            return;
        }
    }
    for (int i = 0; i < seed_tile_rows; ++i) {
        const T *row = rows[std::min(i, count - 1)];
        for (int f = 0; f < d; ++f)
            block[std::int64_t{f} * seed_tile_rows + i] = static_cast<float>(
                (static_cast<double>(row[f]) - static_cast<double>(parent[f])) * inverse);
    }
}

void round(const float *block, int d, std::int16_t *tile, float *squares, float *lost)
{
    for (int i = 0; i < seed_tile_rows; i += single_lanes) {
        std::int16_t *to = tile + std::int64_t{i / seed_strip_rows} * d * seed_strip_rows + i % seed_strip_rows;
        SingleVector square = hn::Zero(single), less = hn::Zero(single);
        for (int f = 0; f < d; ++f) {
            const SingleVector value = hn::LoadU(single, block + std::int64_t{f} * seed_tile_rows + i);
            const auto whole = hn::NearestInt(value);
            const SingleVector back = hn::ConvertTo(single, whole), difference = hn::Sub(value, back);
            square = hn::MulAdd(back, back, square);
            less = hn::MulAdd(difference, difference, less);
            hn::StoreU(hn::DemoteTo(halves, whole), halves, to + std::int64_t{f} * seed_strip_rows);
        }
        hn::StoreU(square, single, squares + i);
        hn::StoreU(less, single, lost + i);
    }
}

// strip_vectors vectors of rows against N candidates.
template <int N>
HWY_INLINE void screen_rows(const std::int16_t *strip, int d, const float *const *candidates, const float *starts,
                            const float *limits, int place, std::uint64_t *hits)
{
    SingleVector sum[N][strip_vectors];
    HWY_UNROLL(6)
    for (int c = 0; c < N; ++c)
        HWY_UNROLL(2)
    for (int v = 0; v < strip_vectors; ++v)
        sum[c][v] = hn::Zero(single);
    const float *from[N];
    for (int c = 0; c < N; ++c)
        from[c] = candidates[c];
    for (int f = 0; f < d; ++f) {
        SingleVector x[strip_vectors];
        HWY_UNROLL(2)
        for (int v = 0; v < strip_vectors; ++v)
            x[v] = hn::ConvertTo(
                single, hn::PromoteTo(integers, hn::LoadU(halves, strip + std::int64_t{f} * seed_strip_rows +
                                                                      v * single_lanes)));
        HWY_UNROLL(6)
        for (int c = 0; c < N; ++c) {
            const SingleVector value = hn::Set(single, from[c][f]);
            HWY_UNROLL(2)
            for (int v = 0; v < strip_vectors; ++v)
                sum[c][v] = hn::MulAdd(x[v], value, sum[c][v]); // two roundings without FMA: the bound allows for it
        }
    }
    for (int c = 0; c < N; ++c)
        for (int v = 0; v < strip_vectors; ++v) {
            const SingleVector bound = hn::Add(hn::LoadU(single, limits + v * single_lanes), hn::Set(single, starts[c]));
            std::uint8_t bytes[8] = {}; // one bit per lane; Highway wants at least 8 bytes of room
            hn::StoreMaskBits(single, hn::Ge(sum[c][v], bound), bytes);
            const std::uint64_t bits = bytes[0] | std::uint64_t{bytes[1]} << 8;
            hits[c] |= bits << (place + v * single_lanes);
        }
}

template <int N>
void screen_for(const std::int16_t *tile, int d, const float *const *candidates, const float *starts,
                const float *limits, std::uint64_t *hits)
{
    std::fill_n(hits, N, 0);
    for (int i = 0; i < seed_tile_rows; i += strip_vectors * single_lanes)
        screen_rows<N>(tile + std::int64_t{i / seed_strip_rows} * d * seed_strip_rows + i % seed_strip_rows, d,
                       candidates, starts, limits + i, i, hits);
}

void screen(const std::int16_t *tile, int d, const float *const *candidates, int count, const float *starts,
            const float *limits, std::uint64_t *hits)
{
    static constexpr decltype(&screen_for<1>) by_count[] = {screen_for<1>, screen_for<2>, screen_for<3>,
                                                            screen_for<4>, screen_for<5>, screen_for<6>};
    by_count[count - 1](tile, d, candidates, starts, limits, hits);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(TileKernels, tile_kernels, HWY_NATIVE_FMA != 0, {centre<float>, centre<double>}, round, screen)
