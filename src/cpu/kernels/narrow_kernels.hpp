// narrow_kernels.hpp - float32 scores of a block of rows against panels of centroids, from products of 16-bit integers.
//
// Rows and centroids are vectors of 16-bit integers, each times a unit of its own. Two features stand in one word of 32
// bits, so that one instruction multiplies and adds a pair for each lane: twice the work of a fused operation in
// float32. Sums of products are exact. assign/narrow.hpp says what a score may be off, and proves it.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "cpu/kernels/tiled_kernels.hpp"

namespace pgkm::cpu {

// Vectors of integers are no longer than this, so that their products stay below 2^31, and no value is beyond the most.
inline constexpr double most_narrow_length = 46140.0;
inline constexpr float narrow_length = 45800.0f; // before rounding, as float32 computes it
inline constexpr float most_narrow_value = 32766.0f;
// The least unit.
inline constexpr float least_narrow_unit = 0x1p-56f;

// What stands before the integers of a row: 1 / unit, the unit, the sum of the squares of its centred values, and the
// root of that. The unit is 0 where float32 does not hold the row.
struct NarrowRow {
    float inverse, unit, square, length;
};
// Words of a row before those of its pairs.
inline constexpr int narrow_head = sizeof(NarrowRow) / sizeof(std::int32_t);
// Words of a row of d features: a multiple of four.
inline int narrow_words(std::int64_t d)
{
    return static_cast<int>(narrow_head + (d + 7) / 8 * 4);
}

// Centroids, tiled_panel to a panel: pair p of panel q at values[(q * pairs + p) * tiled_panel + j].
struct NarrowPanels {
    const std::int32_t *values;
    const float *start;  // half the square of each length, rounded down
    const float *scale;  // unit
    const float *margin; // most that a score is off, in units of the row, beside a share of start
};

// Rows of a block, tiled_width of each: their integers by pairs, 1 / unit, and length.
struct NarrowBlock {
    const std::int32_t *values;
    const float *inverse, *length;
};

struct NarrowKernels {
    // Narrows rows: out has narrow_words(d) for each, a NarrowRow and the integers nearest to (row - shift) * factor /
    // unit, with zeros beyond d. Returns the largest root of the sum of squares of what rounding changed, in units.
    template <typename T>
    using Narrow = float(const T *const *rows, int count, int d, const T *shift, double factor, std::int32_t *out);
    ForElements<Narrow> narrow;

    // Transposes rows of `words` words to block[w * tiled_width + i]; the rest of the width repeats the last row.
    void (*pack)(const std::int32_t *const *rows, int count, int words, std::int32_t *block);

    // scores[c * tiled_width + i] = start[c] * inverse[i] - scale[c] * (product of row i and centroid c) - margin[c].
    // `lowest` has the lowest of these and earlier ones.
    void (*score)(const NarrowBlock &block, int pairs, const NarrowPanels &panels, std::int64_t count, float *scores,
                  const Lowest &lowest);

    // limit[i]: what the score of the nearest centroid of row i is at most, by the lowest score; `of_length` is added
    // for each unit of its length.
    void (*limits)(const NarrowBlock &block, const NarrowPanels &centroids, const Lowest &lowest, float of_length,
                   float *limit);
};

const NarrowKernels &narrow_kernels(InstructionSet set);

} // namespace pgkm::cpu
