// int16_kernels.hpp - float32 scores of a block of rows against panels of centroids, from products of 16-bit integers.
//
// Rows and centroids are vectors of 16-bit integers, each times a unit of its own. Two features stand in one word of 32
// bits, so that one instruction multiplies and adds a pair for each lane: twice the work of a fused operation in
// float32. Sums of products are exact. encode/int16.hpp says what a score may be off, and proves it.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "cpu/kernels/score_kernels.hpp"

namespace pgkm::cpu {

// Vectors of integers are no longer than this, so that their products stay below 2^31, and no value is beyond the most.
inline constexpr double most_int16_length = 46140.0;
inline constexpr float int16_length = 45800.0f; // before rounding, as float32 computes it
inline constexpr float most_int16_value = 32766.0f;
// The least unit.
inline constexpr float least_int16_unit = 0x1p-56f;

// What stands before the integers of a row: the unit, the sum of the squares of its centred values, and the root of
// that. The unit is 0 where float32 does not hold the row.
struct Int16Row {
    float unit, square, length;
};
// Words of a row before those of its pairs.
inline constexpr int int16_head = sizeof(Int16Row) / sizeof(std::int32_t);
// Words of a row of d features: a multiple of four.
inline int int16_words(std::int64_t d)
{
    return static_cast<int>((int16_head + (d + 1) / 2 + 3) / 4 * 4);
}

// Centroids in panels: pair p of centroid j at values[panel_place(j, p, pairs)].
struct Int16Panels {
    const std::int32_t *values;
    const float *start;  // half the square of each length, rounded down
    const float *scale;  // unit
    const float *margin; // most that a score is off, in units of the row, beside a share of start
};

// Rows of a block as pack() leaves them: tiled_width of each number of an Int16Row, then their integers by pairs.
struct Int16Block {
    // Without lengths.
    Int16Block(const std::int32_t *integers, const float *units, const float *squares)
        : values(integers), unit(units), square(squares), length(nullptr)
    {
    }
    explicit Int16Block(const std::int32_t *words)
        : values(words + int16_head * tiled_width), unit(reinterpret_cast<const float *>(words)),
          square(unit + tiled_width), length(square + tiled_width)
    {
    }
    const std::int32_t *values;
    const float *unit, *square, *length;
};

// How a score tells the square of a distance to one centroid: at least (low (square of the row) - lost + 2 unit score)
// low_scale, at most (high (square of the row) + more + 2 unit (score + margin)) high_scale.
struct Int16Distance {
    double low, high, lost, more, margin, low_scale, high_scale;
};

struct GainBounds {
    double least, most;
};

struct Int16Kernels {
    // Encodes rows: `out` is a block of int16_head + (d + 1) / 2 words, an Int16Row and the integers nearest to (row -
    // shift) * factor / unit, with 0 beside the last of an odd number; beyond `count` rows the integers are any.
    // Returns the largest root of the sum of squares of what rounding changed, in units. block: room for d x
    // tiled_width values.
    template <typename T>
    using Encode = float(const T *const *rows, int count, int d, const T *shift, double factor, float *block,
                         std::int32_t *out);
    ForElements<Encode> encode;

    // Transposes rows of `words` words to block[w * tiled_width + i]; the rest of the width repeats the last row.
    void (*pack)(const std::int32_t *const *rows, int count, int words, std::int32_t *block);
    // And back, to rows that are row_words >= block_words apart.
    void (*unpack)(const std::int32_t *block, int count, int block_words, int row_words, std::int32_t *rows);

    // scores[c * tiled_width + i] = start[c] / unit[i] - scale[c] * (product of row i and centroid c) - margin[c].
    // Of `count` centroids; `lowest` has the lowest of these and earlier ones, unless it is NULL.
    void (*score)(const Int16Block &block, int pairs, const Int16Panels &panels, std::int64_t count, float *scores,
                  const Lowest *lowest);

    // limit[i]: what the score of the nearest centroid of row i is at most, by the lowest score; `of_length` is added
    // for each unit of its length.
    void (*limits)(const Int16Block &block, const Int16Panels &centroids, const Lowest &lowest, float of_length,
                   float *limit);

    // Bit i: the score of row i with one centroid is at most limit[i]. Such a row gains what its distance falls short
    // of nearest[i], in squares: the sum of their gains is within *sum, each within gains[i] and gains[tiled_width +
    // i], unless these are NULL.
    std::uint64_t (*gain)(const Int16Block &block, const Int16Distance &distance, const float *scores,
                          const float *limit, const double *nearest, GainBounds *sum, double *gains);
};

const Int16Kernels &int16_kernels(InstructionSet set);

} // namespace pgkm::cpu
