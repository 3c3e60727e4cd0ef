// filter.hpp - scores of a block of rows with all centroids, which tell what centroids may be the nearest.
//
// A score orders the centroids of a row as distances do, within a proven error. The limit of a row is a score that the
// nearest centroid by the contract's D does not exceed. Each filter has its own encoding of rows, made once for all
// calls (encoded.hpp), and proves its bounds beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/encode/different_centroids.hpp"
#include "cpu/kernels/score_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

inline constexpr float largest_float = std::numeric_limits<float>::max();

inline std::int64_t panels_for(std::int64_t count)
{
    return (count + tiled_panel - 1) / tiled_panel;
}

// Centroids that are scored at a time, by products of so many features: a moment's work.
inline std::int64_t range_for(std::int64_t features, std::int64_t most)
{
    return std::clamp<std::int64_t>(16 * work_per_poll / tiled_width / features / tiled_panel * tiled_panel,
                                    tiled_panel, most);
}

// Rounded up.
inline float float_above(double value)
{
    return static_cast<float>(value + std::fabs(value) * 0x1p-22 + 0x1p-140);
}

// A worker's block of rows: what all filters know of it, and buffers of which each makes those that it needs.
struct FilterBlock {
    int count = 0;                   // rows, at most tiled_width
    std::int32_t found[tiled_width]; // candidates of each row; -1: no bound holds
    alignas(128) float best[tiled_width], second[tiled_width], index[tiled_width];
    alignas(128) float limit[tiled_width];
    Buffer<float> scores; // range x tiled_width
    Buffer<Hit> hits;     // as many

    Buffer<std::int32_t> words;               // of rows as integers
    Buffer<float> image;                      // features x tiled_width: of projections, or what integers are made of
    Buffer<std::uint16_t> sums;               // tiled_width x width: scores by bits
    const void *points = nullptr;             // the rows as they lie: const T *const *
    const std::uint64_t *bits[tiled_width];   // of each row
    const std::int16_t *numbers[tiled_width]; // beside them
    std::int32_t sizes[tiled_width];          // how many bits are set
    alignas(128) float square[tiled_width];   // of a projection
    double norm[tiled_width];                 // its length; or the square of the distance to the mean, with bits
    double slack[tiled_width], error[tiled_width]; // how far a score may be off; and a projection

    // The block has met no centroid.
    void forget(int rows)
    {
        count = rows;
        for (float *each : {best, second, limit})
            std::fill_n(each, tiled_width, largest_float);
        std::fill_n(index, tiled_width, 0.0f);
    }
    Lowest lowest(std::int64_t first) { return {best, second, index, static_cast<float>(first)}; }
};

template <typename T>
class Filter {
  public:
    virtual ~Filter() = default;
    virtual const char *name() const = 0;

    // The centroids from now on; they stay the caller's. False where scores cannot hold them.
    virtual bool set(const DifferentCentroids<T> &centroids) = 0;

    // Centroids that are scored at a time; a multiple of tiled_panel.
    virtual std::int64_t range() const = 0;
    virtual void prepare(FilterBlock &block) const = 0;

    // The block has these rows from now on; `points` stays the caller's until the next ones. found[i] < 0 for those
    // that have no bound.
    virtual void load(FilterBlock &block, const std::int64_t *rows, const T *const *points) const = 0;
    // Scores with centroids first .. first + size - 1; lowers the limits by them.
    virtual void score(FilterBlock &block, std::int64_t first, std::int64_t size) const = 0;
    // Lists those of the last scores that are at most search[i], as hits of row i and the centroid within them.
    virtual std::int64_t pick(FilterBlock &block, std::int64_t size, const float *search) const = 0;

    // The score of a centroid at such a squared distance from the i-th row, at most.
    virtual double score_above(const FilterBlock &block, int i, double square) const = 0;
    // Squares of distances: at most to the nearest centroid, by the limit; at least to those of scores `others` or
    // more.
    virtual void squares(const FilterBlock &block, const float *others, double *most, double *least) const = 0;

    // Whether scores are so cheap that rows need no short lists of centroids.
    virtual bool is_quick() const = 0;
    // Whether a row's distance to its own centroid costs less than its scores.
    virtual bool is_dearer_than_a_distance() const { return true; }
};

} // namespace pgkm::cpu
