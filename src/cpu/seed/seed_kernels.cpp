// seed_kernels.cpp - distances of a block's rows to candidates, and the sampling integers made of them.
//
// Tiles of 64 rows are turned feature by feature, so that lanes run over rows; candidates are broadcast.
#include "cpu/seed/seed_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#define HWY_TARGET_INCLUDE "cpu/seed/seed_kernels.cpp"
#include "cpu/kernels/per_target.hpp"
#include "hwy/cache_control.h"

#include "cpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
// Rows per tile, and features of them that are transposed at once: 8 or 16 kB of L1.
inline constexpr int tile_rows = 64;
inline constexpr int tile_features = 32;
// Rows of a block that a candidate may win, with what is needed of them side by side.
// Lanes behind `count` have weight 0, so that they add nothing anywhere.
template <typename T>
struct Tile {
    int count = 0;
    const std::int64_t *index; // within the block
    const T *rows[tile_rows];
    HWY_ALIGN_MAX double nearest[tile_rows];
    HWY_ALIGN_MAX double weights[tile_rows];
    HWY_ALIGN_MAX T points[tile_features * tile_rows]; // feature-major
    HWY_ALIGN_MAX double distances[max_seed_candidates * tile_rows];
};

// Adds `features` terms to the distances between all rows of the tile and N candidates.
template <int N, typename T>
HWY_INLINE void add_features(const T *points, int features, const double *candidates, std::int64_t stride,
                             double *distances)
{
    for (int i = 0; i < tile_rows; i += tile_vectors * lanes) {
        Vector sum[N][tile_vectors];
        for (int j = 0; j < N; ++j)
            for (int v = 0; v < tile_vectors; ++v)
                sum[j][v] = hn::Load(tag, distances + j * tile_rows + i + v * lanes);
        for (int f = 0; f < features; ++f) {
            Vector x[tile_vectors];
            for (int v = 0; v < tile_vectors; ++v)
                x[v] = load_wide(points + f * tile_rows + i + v * lanes);
            for (int j = 0; j < N; ++j) {
                const Vector c = hn::Set(tag, candidates[j * stride + f]);
                for (int v = 0; v < tile_vectors; ++v)
                    sum[j][v] = add_square(hn::Sub(x[v], c), sum[j][v]);
            }
        }
        for (int j = 0; j < N; ++j)
            for (int v = 0; v < tile_vectors; ++v)
                hn::Store(sum[j][v], tag, distances + j * tile_rows + i + v * lanes);
    }
}

template <typename T>
void find_distances(Tile<T> &tile, std::int32_t d, const SeedCandidates &candidates)
{
    static constexpr decltype(&add_features<1, T>) by_count[] = {nullptr, add_features<1, T>, add_features<2, T>,
                                                                 add_features<3, T>, add_features<4, T>};
    std::fill_n(tile.distances, candidates.count * tile_rows, 0.0);
    for (std::int32_t f = 0; f < d; f += tile_features) {
        const int features = std::min(tile_features, d - f);
        const T *rows[tile_rows];
        for (int i = 0; i < tile.count; ++i)
            rows[i] = tile.rows[i] + f;
        pack_rows<T>(rows, tile.count, features, nullptr, tile_rows, tile.points);
        for (std::int32_t c = 0; c < candidates.count; c += 4)
            by_count[std::min(4, candidates.count - c)](
                tile.points, features, candidates.values + std::int64_t{c} * d + f, d, tile.distances + c * tile_rows);
    }
}

// Rows lie apart from each other where many are safe, and long ones defeat the hardware's
// prefetcher anyway: ask for the next tile's rows while this one's are worked on.
template <typename T>
HWY_INLINE void prefetch_rows(const SeedBlock<T> &block, const std::int64_t *index, std::int64_t count)
{
    constexpr std::int32_t line = 64 / static_cast<std::int32_t>(sizeof(T)), most = 16 * line;
    for (std::int64_t r = 0; r < count; ++r)
        for (std::int32_t f = 0; f < std::min(block.d, most); f += line)
            hwy::Prefetch(block.values + index[r] * block.d + f);
}

// The rows of the block that are not safe from the candidates; returns how many.
template <typename T>
HWY_INLINE std::int64_t find_unsafe(const SeedBlock<T> &block, std::int64_t *index)
{
    if (block.safe == nullptr) {
        std::iota(index, index + block.n, 0);
        return block.n;
    }
    const hn::RebindToSigned<Tag> integers;
    const hn::Rebind<std::int32_t, Tag> labels;
    const double *nearest = block.nearest, *safe = block.safe;
    std::int64_t count = 0, i = 0;
    for (; i + lanes <= block.n; i += lanes) {
        const auto chosen = hn::PromoteTo(integers, hn::LoadU(labels, block.labels + i));
        const auto unsafe = hn::Gt(hn::LoadU(tag, nearest + i), hn::GatherIndex(tag, safe, chosen));
        // Without a branch: which rows are safe is as good as random.
        count += static_cast<std::int64_t>(
            hn::CompressStore(hn::Iota(integers, i), hn::RebindMask(integers, unsafe), integers, index + count));
    }
    for (; i < block.n; ++i)
        if (nearest[i] > safe[block.labels[i]])
            index[count++] = i;
    return count;
}

// Hands the rows that are not safe over, tile by tile.
template <typename T, typename Process>
HWY_INLINE void for_tiles(const SeedBlock<T> &block, Tile<T> &tile, Process &&process)
{
    std::int64_t unsafe[max_seed_block + 8]; // whole vectors are stored
    const std::int64_t count = find_unsafe(block, unsafe);
    for (std::int64_t first = 0; first < count; first += tile_rows) {
        tile.index = unsafe + first;
        tile.count = static_cast<int>(std::min<std::int64_t>(tile_rows, count - first));
        prefetch_rows(block, tile.index + tile.count, std::min<std::int64_t>(tile_rows, count - first - tile.count));
        for (int r = 0; r < tile.count; ++r) {
            tile.rows[r] = block.values + tile.index[r] * block.d;
            tile.nearest[r] = block.nearest[tile.index[r]];
            tile.weights[r] = block.weights == nullptr ? 1.0 : block.weights[tile.index[r]];
        }
        std::fill(tile.nearest + tile.count, tile.nearest + tile_rows, 0.0);
        std::fill(tile.weights + tile.count, tile.weights + tile_rows, 0.0);
        process();
    }
}

// A non-negative integer below 2^52 that stands in a float64 is in the low bits of the sum
// with 2^52; the bits of 2^52 itself are taken off once, after many additions.
inline constexpr double integer_bias = 0x1p52;

// Sum of the lanes, each of which is a sum of `count` biased integers.
HWY_INLINE std::uint64_t sum_of_lanes(hn::Vec<hn::RebindToUnsigned<Tag>> biased, std::int64_t count)
{
    const hn::RebindToUnsigned<Tag> integers;
    std::uint64_t bits;
    std::memcpy(&bits, &integer_bias, sizeof bits);
    const auto bias = hn::Set(integers, bits * static_cast<std::uint64_t>(count));
    return hn::GetLane(hn::SumOfLanes(integers, hn::Sub(biased, bias)));
}

// quantise_mass(weight * distance, scale), biased.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<Tag>> biased_mass(Vector weight, Vector distance, Vector scale)
{
    const Vector whole = hn::Floor(hn::Mul(hn::Mul(weight, distance), scale));
    return hn::BitCast(hn::RebindToUnsigned<Tag>(), hn::Add(whole, hn::Set(tag, integer_bias)));
}

// Sum over the tile of the masses at min(nearest, distance); distances may be NULL.
template <typename T>
HWY_INLINE std::uint64_t tile_mass(const Tile<T> &tile, const double *distances, double scale)
{
    const hn::RebindToUnsigned<Tag> integers;
    auto sum = hn::Zero(integers);
    for (int i = 0; i < tile_rows; i += lanes) {
        Vector distance = hn::Load(tag, tile.nearest + i);
        if (distances != nullptr)
            distance = hn::Min(distance, hn::Load(tag, distances + i));
        sum = hn::Add(sum, biased_mass(hn::Load(tag, tile.weights + i), distance, hn::Set(tag, scale)));
    }
    return sum_of_lanes(sum, tile_rows / lanes);
}

template <typename T>
void try_each(const SeedBlock<T> &block, const SeedCandidates &candidates, double scale, std::uint64_t now,
              std::uint64_t *sums)
{
    Tile<T> tile;
    std::fill_n(sums, candidates.count, now);
    for_tiles(block, tile, [&] {
        find_distances(tile, block.d, candidates);
        const std::uint64_t before = tile_mass(tile, nullptr, scale);
        for (std::int32_t c = 0; c < candidates.count; ++c)
            sums[c] -= before - tile_mass(tile, tile.distances + c * tile_rows, scale);
    });
}

template <typename T>
std::uint64_t sum_block(const SeedBlock<T> &block, double scale)
{
    const hn::RebindToUnsigned<Tag> integers;
    auto sum = hn::Zero(integers);
    std::int64_t i = 0;
    for (; i + lanes <= block.n; i += lanes) {
        const Vector weight = block.weights == nullptr ? hn::Set(tag, 1.0) : hn::LoadU(tag, block.weights + i);
        sum = hn::Add(sum, biased_mass(weight, hn::LoadU(tag, block.nearest + i), hn::Set(tag, scale)));
    }
    std::uint64_t total = sum_of_lanes(sum, i / lanes);
    for (; i < block.n; ++i) {
        const double weight = block.weights == nullptr ? 1.0 : block.weights[i];
        total += static_cast<std::uint64_t>(weight * block.nearest[i] * scale);
    }
    return total;
}

template <typename T>
double largest_mass(const SeedBlock<T> &block)
{
    Vector largest = hn::Zero(tag);
    std::int64_t i = 0;
    for (; i + lanes <= block.n; i += lanes) {
        const Vector nearest = hn::LoadU(tag, block.nearest + i);
        largest =
            hn::Max(largest, block.weights == nullptr ? nearest : hn::Mul(hn::LoadU(tag, block.weights + i), nearest));
    }
    double result = hn::GetLane(hn::MaxOfLanes(tag, largest));
    for (; i < block.n; ++i)
        result = std::max(result, (block.weights == nullptr ? 1.0 : block.weights[i]) * block.nearest[i]);
    return result;
}

template <typename T>
double lower(const SeedBlock<T> &block, const SeedCandidates &candidates)
{
    Tile<T> tile;
    HWY_ALIGN_MAX double winners[tile_rows]; // a candidate's place, or -1
    for_tiles(block, tile, [&] {
        find_distances(tile, block.d, candidates);
        for (int i = 0; i < tile_rows; i += lanes) {
            Vector nearest = hn::Load(tag, tile.nearest + i);
            Vector winner = hn::Set(tag, -1.0);
            for (std::int32_t c = 0; c < candidates.count; ++c) {
                const Vector distance = hn::Load(tag, tile.distances + c * tile_rows + i);
                winner = hn::IfThenElse(hn::Lt(distance, nearest), hn::Set(tag, static_cast<double>(c)), winner);
                nearest = hn::Min(distance, nearest);
            }
            hn::Store(nearest, tag, tile.nearest + i);
            hn::Store(winner, tag, winners + i);
        }
        for (int r = 0; r < tile.count; ++r) {
            block.nearest[tile.index[r]] = tile.nearest[r];
            if (block.labels != nullptr && winners[r] >= 0.0)
                block.labels[tile.index[r]] = candidates.first_index + static_cast<std::int32_t>(winners[r]);
        }
    });
    return largest_mass(block);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(SeedKernels, seed_kernels, {lower<float>, lower<double>}, {sum_block<float>, sum_block<double>},
             {try_each<float>, try_each<double>})
