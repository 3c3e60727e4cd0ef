// bit_kernels.cpp - adds lines of 16-bit integers, lanes over centroids.
#include "cpu/kernels/bit_kernels.hpp"

#include <algorithm>

#define HWY_TARGET_INCLUDE "cpu/kernels/bit_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
inline constexpr hn::ScalableTag<std::uint16_t> shorts;
using ShortVector = hn::Vec<decltype(shorts)>;
inline constexpr int short_lanes = static_cast<int>(hn::MaxLanes(shorts));
inline constexpr int most_sums = 8; // vectors of centroids at a time
static_assert(bit_step % short_lanes == 0);

// One bit per lane.
template <typename D>
HWY_INLINE std::uint64_t bits_of(D tag, hn::Mask<D> mask)
{
    std::uint64_t bits = 0; // Highway wants at least 8 bytes of room
    hn::StoreMaskBits(tag, mask, reinterpret_cast<std::uint8_t *>(&bits));
    return bits;
}

template <typename T>
bool mark(const T *row, int d, const T *usual, const T *other, const std::uint64_t *marked, std::uint64_t *bits)
{
    const hn::ScalableTag<T> values;
    constexpr int width = static_cast<int>(hn::MaxLanes(values));
    std::fill_n(bits, (d + 63) / 64, 0);
    std::uint64_t strange = 0;
    int f = 0;
    for (; f + width <= d; f += width) {
        const auto value = hn::LoadU(values, row + f);
        const std::uint64_t own =
            bits_of(values, hn::Ne(value, hn::LoadU(values, usual + f))) & marked[f / 64] >> f % 64;
        strange |= own & bits_of(values, hn::Ne(value, hn::LoadU(values, other + f)));
        bits[f / 64] |= own << f % 64;
    }
    for (; f < d; ++f) {
        const bool own = row[f] != usual[f] && (marked[f / 64] >> f % 64 & 1) != 0;
        strange |= static_cast<std::uint64_t>(own && row[f] != other[f]);
        bits[f / 64] |= std::uint64_t{own} << f % 64;
    }
    return strange == 0;
}

// N vectors of centroids: start + the lines of a row's marks, `stride` apart, + those of its numbers by their values.
template <int N>
void add_lines(const std::uint64_t *bits, const std::int16_t *values, int d, const BitLines &all,
               const std::uint16_t *start, const std::uint16_t *steps, std::int64_t stride, std::uint16_t *scores)
{
    constexpr hn::RebindToSigned<decltype(shorts)> whole;
    ShortVector sum[N];
    HWY_UNROLL(8)
    for (int v = 0; v < N; ++v)
        sum[v] = hn::LoadU(shorts, start + v * short_lanes);
    for (int first = 0; first < d; first += 64) {
        const std::uint16_t *lines = steps + first * stride;
        for (std::uint64_t word = bits[first / 64]; word != 0; word &= word - 1) {
            const std::uint16_t *line = lines + __builtin_ctzll(word) * stride;
            HWY_UNROLL(8)
            for (int v = 0; v < N; ++v)
                sum[v] = hn::Add(sum[v], hn::LoadU(shorts, line + v * short_lanes));
        }
    }
    for (int n = 0; n < all.n_numbers; ++n) {
        const auto value = hn::Set(whole, values[n]);
        const std::uint16_t *line = steps + all.numbers[n] * stride;
        HWY_UNROLL(8)
        for (int v = 0; v < N; ++v) {
            const auto each = hn::BitCast(whole, hn::LoadU(shorts, line + v * short_lanes));
            sum[v] = hn::Add(sum[v], hn::BitCast(shorts, hn::MulFixedPoint15(each, value)));
        }
    }
    HWY_UNROLL(8)
    for (int v = 0; v < N; ++v)
        hn::StoreU(sum[v], shorts, scores + v * short_lanes);
}

// The two lowest of all lanes, where second has the second lowest of each.
template <typename D>
HWY_INLINE void lowest_two([[maybe_unused]] D tag, hn::Vec<D> best, hn::Vec<D> second, float *lowest, float *next)
{
#if HWY_TARGET != HWY_SCALAR
    if constexpr (hn::MaxLanes(tag) > 1) {
        const hn::Half<D> half;
        const auto a = hn::LowerHalf(half, best), b = hn::UpperHalf(half, best);
        const auto seconds = hn::Min(hn::LowerHalf(half, second), hn::UpperHalf(half, second));
        return lowest_two(half, hn::Min(a, b), hn::Min(seconds, hn::Max(a, b)), lowest, next);
    }
#endif
    *lowest = static_cast<float>(hn::GetLane(best));
    *next = static_cast<float>(hn::GetLane(second));
}

void score(const std::uint64_t *const *rows, const std::int16_t *const *values, int count, int d, const BitLines &lines,
           std::uint16_t *scores, std::int32_t *sizes, const Lowest &lowest)
{
    static constexpr decltype(&add_lines<1>) by_count[] = {add_lines<1>, add_lines<2>, add_lines<3>, add_lines<4>,
                                                           add_lines<5>, add_lines<6>, add_lines<7>, add_lines<8>};
    for (std::int64_t panel = 0; panel < lines.width; panel += bit_panel) {
        const std::int64_t width = std::min(bit_panel, lines.width - panel);
        for (std::int64_t at = 0; at < width; at += most_sums * short_lanes) {
            const auto run = by_count[std::min<std::int64_t>(most_sums, (width - at) / short_lanes) - 1];
            for (int i = 0; i < count; ++i)
                run(rows[i], values[i], d, lines, lines.start + panel + at, lines.steps + panel * d + at, width,
                    scores + i * lines.width + panel + at);
        }
    }
    for (int i = 0; i < count; ++i) {
        const std::uint16_t *own = scores + i * lines.width;
        ShortVector low = hn::LoadU(shorts, own), next = hn::Set(shorts, 0xffff);
        for (std::int64_t j = short_lanes; j < lines.width; j += short_lanes) {
            const ShortVector each = hn::LoadU(shorts, own + j);
            next = hn::Min(next, hn::Max(each, low));
            low = hn::Min(low, each);
        }
        lowest_two(shorts, low, next, lowest.best + i, lowest.second + i);
        const ShortVector least = hn::Set(shorts, static_cast<std::uint16_t>(lowest.best[i]));
        for (std::int64_t j = 0; j < lines.width; j += short_lanes) {
            const std::uint64_t equal = bits_of(shorts, hn::Eq(hn::LoadU(shorts, own + j), least));
            if (equal == 0)
                continue;
            lowest.index[i] = static_cast<float>(j + __builtin_ctzll(equal));
            break;
        }
        sizes[i] = 0;
        for (int w = 0; w < (d + 63) / 64; ++w)
            sizes[i] += __builtin_popcountll(rows[i][w]);
    }
}

std::int64_t at_most(const std::uint16_t *scores, std::int64_t width, int limit, int point, Hit *hits)
{
    const ShortVector most = hn::Set(shorts, static_cast<std::uint16_t>(limit));
    std::int64_t found = 0;
    for (std::int64_t j = 0; j < width; j += short_lanes) {
        const ShortVector score = hn::LoadU(shorts, scores + j);
        std::uint64_t low = bits_of(shorts, hn::Eq(hn::Min(score, most), score));
        for (; low != 0; low &= low - 1) {
            const std::int64_t at = j + __builtin_ctzll(low);
            hits[found++] = {point, static_cast<std::int32_t>(at), static_cast<float>(scores[at])};
        }
    }
    return found;
}

HWY_INLINE std::int32_t count_different(const std::uint64_t *a, const std::uint64_t *b, std::int64_t words)
{
    std::int64_t w = 0, count = 0;
#if HWY_TARGET != HWY_SCALAR
    constexpr hn::ScalableTag<std::uint8_t> bytes;
    constexpr hn::ScalableTag<std::uint64_t> wide;
    constexpr int width = static_cast<int>(hn::MaxLanes(wide)), most = 255 / 8; // vectors whose counts a byte holds
    if (words > 4) {
        auto counts = hn::Zero(wide);
        while (w + width <= words) {
            auto own = hn::Zero(bytes);
            for (const std::int64_t end = std::min<std::int64_t>(words - width, w + (most - 1) * width); w <= end;
                 w += width)
                own = hn::Add(own, hn::PopulationCount(
                                       hn::BitCast(bytes, hn::Xor(hn::LoadU(wide, a + w), hn::LoadU(wide, b + w)))));
            counts = hn::Add(counts, hn::SumsOf8(own));
        }
        count = static_cast<std::int64_t>(hn::GetLane(hn::SumOfLanes(wide, counts)));
    }
#endif
    for (; w < words; ++w)
        count += __builtin_popcountll(a[w] ^ b[w]);
    return static_cast<std::int32_t>(count);
}

// Words: how many there are, or 0 for any number.
template <int Words>
void add_gains(const std::uint64_t *bits, std::int64_t rows, std::int64_t words, const std::int32_t *counts,
               const std::uint64_t *const *candidates, int n_candidates, std::uint64_t *gains)
{
    const std::int64_t width = Words == 0 ? words : Words;
    for (int t = 0; t < n_candidates; ++t) {
        std::uint64_t gain = 0;
        for (std::int64_t i = 0; i < rows; ++i)
            gain += static_cast<std::uint64_t>(
                std::max(0, counts[i] - count_different(bits + i * width, candidates[t], width)));
        gains[t] = gain;
    }
}

void gains(const std::uint64_t *bits, std::int64_t rows, std::int64_t words, const std::int32_t *counts,
           const std::uint64_t *const *candidates, int n_candidates, std::uint64_t *gains)
{
    static constexpr decltype(&add_gains<0>) by_words[] = {add_gains<0>, add_gains<1>, add_gains<2>, add_gains<3>,
                                                           add_gains<4>};
    const auto run = by_words[words <= 4 ? words : 0];
    run(bits, rows, words, counts, candidates, n_candidates, gains);
}

template <int Words>
int find_nearer(const std::uint64_t *bits, const std::int32_t *among, std::int64_t rows, std::int64_t words,
                const std::int32_t *counts, const std::uint64_t *candidate, std::int32_t *nearer, std::int32_t *fewer)
{
    const std::int64_t width = Words == 0 ? words : Words;
    int found = 0;
    for (std::int64_t place = 0; place < rows; ++place) {
        const std::int64_t i = among == nullptr ? place : among[place];
        const std::int32_t count = count_different(bits + i * width, candidate, width);
        nearer[found] = static_cast<std::int32_t>(i);
        fewer[found] = count;
        found += static_cast<int>(count < counts[i]);
    }
    return found;
}

int nearer(const std::uint64_t *bits, const std::int32_t *among, std::int64_t rows, std::int64_t words,
           const std::int32_t *counts, const std::uint64_t *candidate, std::int32_t *nearer, std::int32_t *fewer)
{
    const auto run = words == 16 ? find_nearer<16> : find_nearer<0>;
    return run(bits, among, rows, words, counts, candidate, nearer, fewer);
}

std::int32_t different(const std::uint64_t *a, const std::uint64_t *b, std::int64_t words)
{
    return count_different(a, b, words);
}

// Words as above.
template <int Words>
std::int32_t find_nearest(const std::uint64_t *row, std::int64_t words, const std::uint64_t *centroids, std::int32_t k,
                          std::int32_t *best, std::int32_t *second)
{
    const std::int64_t width = Words == 0 ? words : Words;
    std::int32_t least = INT32_MAX, next = INT32_MAX, found = 0;
    for (std::int32_t j = 0; j < k; ++j) {
        const std::int32_t count = count_different(row, centroids + j * width, width);
        next = std::min(next, std::max(count, least));
        found = count < least ? j : found;
        least = std::min(least, count);
    }
    *best = least;
    *second = next;
    return found;
}

std::int32_t nearest(const std::uint64_t *row, std::int64_t words, const std::uint64_t *centroids, std::int32_t k,
                     std::int32_t *best, std::int32_t *second)
{
    static constexpr decltype(&find_nearest<0>) by_words[] = {find_nearest<0>, find_nearest<1>, find_nearest<2>,
                                                              find_nearest<3>, find_nearest<4>};
    const auto run = words == 16 ? find_nearest<16> : by_words[words <= 4 ? words : 0];
    return run(row, words, centroids, k, best, second);
}

void count(const std::uint64_t *row, std::int64_t words, std::int32_t step, std::int32_t *counts)
{
    const hn::CappedTag<std::int32_t, 16> steps;
    constexpr int width = static_cast<int>(hn::MaxLanes(steps));
    const auto one = hn::Set(steps, 1), add = hn::Set(steps, step);
    for (std::int64_t w = 0; w < words; ++w)
        for (int p = 0; p < 64; p += width, counts += width) {
            const auto bits = hn::Set(steps, static_cast<std::int32_t>(row[w] >> p & 0xffff));
            const auto mask = hn::TestBit(bits, hn::Shl(one, hn::Iota(steps, 0)));
            hn::StoreU(hn::Add(hn::LoadU(steps, counts), hn::IfThenElseZero(mask, add)), steps, counts);
        }
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(BitKernels, bit_kernels, {mark<float>, mark<double>}, score, at_most, gains, nearer, different, nearest,
             count)
