// tile_kernels.cpp - exact products of 16-bit rows and candidates, two features to a lane.
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
inline constexpr hn::RebindToSigned<Single> words;
using WordVector = hn::Vec<decltype(words)>;

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
            block[std::int64_t{f} * seed_tile_rows + i] =
                static_cast<float>((static_cast<double>(row[f]) - static_cast<double>(parent[f])) * inverse);
    }
}

void round(const float *block, int d, std::int32_t *tile, float *squares, float *lost)
{
    for (int i = 0; i < seed_tile_rows; i += single_lanes) {
        std::int32_t *to = tile + i / seed_strip_rows * tile_pairs(d) * seed_strip_rows + i % seed_strip_rows;
        SingleVector square = hn::Zero(single), less = hn::Zero(single);
        const auto whole = [&](int f) {
            const SingleVector value = hn::LoadU(single, block + std::int64_t{f} * seed_tile_rows + i);
            const WordVector rounded = hn::NearestInt(value);
            const SingleVector back = hn::ConvertTo(single, rounded), difference = hn::Sub(value, back);
            square = hn::MulAdd(back, back, square);
            less = hn::MulAdd(difference, difference, less);
            return rounded;
        };
        for (int f = 0; f < d; f += 2, to += seed_strip_rows) {
            const WordVector lower = hn::And(whole(f), hn::Set(words, 0xffff));
            hn::StoreU(f + 1 < d ? hn::Or(lower, hn::ShiftLeft<16>(whole(f + 1))) : lower, words, to);
        }
        hn::StoreU(square, single, squares + i);
        hn::StoreU(less, single, lost + i);
    }
}

// The square of how far a row may be from the candidate that wins it, both as integers; at most.
HWY_INLINE SingleVector far_squares(SingleVector own, SingleVector limit)
{
    const SingleVector square = hn::Sub(own, hn::Mul(hn::Set(single, 2.0f), limit));
    return hn::MulAdd(own, hn::Set(single, 0x1p-20f), hn::Max(hn::Zero(single), square));
}

// What a product must reach.
HWY_INLINE SingleVector bound_of(SingleVector limit, SingleVector far, const ScreenedCandidate &candidate)
{
    const SingleVector less = hn::Mul(far, hn::Set(single, candidate.lost * (1.0f + 0x1p-20f)));
    return hn::Sub(hn::Add(limit, hn::Set(single, candidate.start)), less);
}

// V vectors of rows against N candidates: enough sums to hide the latency of a product, and few enough for 16 registers
// beside what is loaded once.
template <bool Vnni, int N, int V>
HWY_INLINE void multiply(const std::int32_t *strip, int pairs, const ScreenedCandidate *const *candidates,
                         std::int32_t *out)
{
    WordVector sum[N][V];
    HWY_UNROLL(6)
    for (int c = 0; c < N; ++c)
        HWY_UNROLL(4)
    for (int v = 0; v < V; ++v)
        sum[c][v] = hn::Zero(words);
    const std::int32_t *from[N];
    for (int c = 0; c < N; ++c)
        from[c] = candidates[c]->values;
    for (int p = 0; p < pairs; ++p) {
        WordVector x[V];
        HWY_UNROLL(4)
        for (int v = 0; v < V; ++v)
            x[v] = hn::LoadU(words, strip + p * seed_strip_rows + v * single_lanes);
        HWY_UNROLL(6)
        for (int c = 0; c < N; ++c) {
            const WordVector value = hn::Set(words, from[c][p]);
            HWY_UNROLL(4)
            for (int v = 0; v < V; ++v)
                sum[c][v] = add_pair<Vnni>(x[v], value, sum[c][v]);
        }
    }
    HWY_UNROLL(6)
    for (int c = 0; c < N; ++c)
        HWY_UNROLL(4)
    for (int v = 0; v < V; ++v)
        hn::StoreU(sum[c][v], words, out + (c * V + v) * single_lanes);
}

template <bool Vnni, int N, int V>
HWY_INLINE void screen_rows(const std::int32_t *strip, int d, const ScreenedCandidate *const *candidates,
                            const ScreenedTile &about, int place, float *scores, std::uint64_t *hits)
{
    HWY_ALIGN_MAX std::int32_t products[N * V * single_lanes];
    multiply<Vnni, N, V>(strip, static_cast<int>(tile_pairs(d)), candidates, products);
    for (int v = 0; v < V; ++v) {
        const int at = place + v * single_lanes;
        const SingleVector limit = hn::LoadU(single, about.limits + at);
        const SingleVector far = hn::Sqrt(far_squares(hn::LoadU(single, about.squares + at), limit));
        for (int c = 0; c < N; ++c) {
            const SingleVector score =
                hn::Mul(hn::ConvertTo(single, hn::LoadU(words, products + (c * V + v) * single_lanes)),
                        hn::Set(single, candidates[c]->scale));
            hn::StoreU(score, single, scores + c * seed_tile_rows + at);
            std::uint8_t bytes[8] = {}; // one bit per lane; Highway wants at least 8 bytes of room
            hn::StoreMaskBits(single, hn::Ge(score, bound_of(limit, far, *candidates[c])), bytes);
            const std::uint64_t bits = bytes[0] | std::uint64_t{bytes[1]} << 8;
            hits[c] |= bits << at;
        }
    }
}

template <bool Vnni, int N>
void screen_for(const std::int32_t *tile, int d, const ScreenedCandidate *const *candidates, const ScreenedTile &about,
                float *scores, std::uint64_t *hits)
{
    constexpr int vectors = N < 4 && 4 * single_lanes <= seed_strip_rows && strip_vectors > 1 ? 4 : strip_vectors;
    std::fill_n(hits, N, 0);
    for (int i = 0; i < seed_tile_rows; i += vectors * single_lanes)
        screen_rows<Vnni, N, vectors>(tile + i / seed_strip_rows * tile_pairs(d) * seed_strip_rows +
                                          i % seed_strip_rows,
                                      d, candidates, about, i, scores, hits);
}

template <bool Vnni>
void screen_by(const std::int32_t *tile, int d, const ScreenedCandidate *const *candidates, int count,
               const ScreenedTile &about, float *scores, std::uint64_t *hits)
{
    static constexpr decltype(&screen_for<Vnni, 1>) by_count[] = {screen_for<Vnni, 1>, screen_for<Vnni, 2>,
                                                                  screen_for<Vnni, 3>, screen_for<Vnni, 4>,
                                                                  screen_for<Vnni, 5>, screen_for<Vnni, 6>};
    by_count[count - 1](tile, d, candidates, about, scores, hits);
}

void screen(const std::int32_t *tile, int d, const ScreenedCandidate *const *candidates, int count,
            const ScreenedTile &about, float *scores, std::uint64_t *hits)
{
    const auto run = knows_vnni && has_vnni() ? screen_by<knows_vnni> : screen_by<false>;
    run(tile, d, candidates, count, about, scores, hits);
}

GainBounds estimate(const ScreenedTile &tile, const ScreenedCandidate &candidate, float *gains)
{
    const auto set = [](float value) { return hn::Set(single, value); };
    const SingleVector square = set(candidate.square), lost = set(candidate.lost);
    const SingleVector share = set(candidate.share), zero = hn::Zero(single), one = set(1.0f), two = set(2.0f);
    SingleVector least = zero, most = zero;
    for (int i = 0; i < seed_tile_rows; i += single_lanes) {
        const SingleVector score = hn::LoadU(single, candidate.scores + i), limit = hn::LoadU(single, tile.limits + i);
        const SingleVector own = hn::LoadU(single, tile.squares + i), off = hn::LoadU(single, tile.lost + i);
        const auto hit = hn::Ge(score, bound_of(limit, hn::Sqrt(far_squares(own, limit)), candidate));
        const SingleVector apart = hn::Sub(hn::Add(own, square), hn::Mul(two, score));    // |q - v|^2
        const SingleVector far_square = hn::Max(zero, hn::Sub(own, hn::Mul(two, limit))); // (r + e)^2
        const SingleVector far = hn::Sqrt(far_square);
        const SingleVector nearest = hn::Add(hn::Sub(far_square, hn::Mul(hn::Mul(two, far), off)), hn::Mul(off, off));
        const SingleVector gain = hn::Sub(nearest, apart), away = hn::Add(off, lost);
        const SingleVector rounding = hn::Add(hn::Mul(share, hn::Add(hn::Add(own, square), far_square)), one);
        const SingleVector length = hn::Sqrt(hn::Add(hn::Max(apart, far_square), rounding)); // |q - v| at most
        const SingleVector doubt =
            hn::Add(hn::Add(hn::Mul(hn::Mul(two, hn::Add(length, lost)), away), hn::Mul(away, away)), rounding);
        const SingleVector low = hn::IfThenElseZero(hit, hn::Max(zero, hn::Sub(gain, doubt)));
        const SingleVector high = hn::IfThenElseZero(hit, hn::Max(zero, hn::Add(gain, doubt)));
        least = hn::Add(least, low);
        most = hn::Add(most, high);
        if (gains != nullptr) {
            hn::StoreU(low, single, gains + i);
            hn::StoreU(high, single, gains + seed_tile_rows + i);
        }
    }
    return {static_cast<double>(hn::GetLane(hn::SumOfLanes(single, least))),
            static_cast<double>(hn::GetLane(hn::SumOfLanes(single, most)))};
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(TileKernels, tile_kernels, HWY_NATIVE_FMA != 0, {centre<float>, centre<double>}, round, screen, estimate)
