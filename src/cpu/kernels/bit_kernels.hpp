// bit_kernels.hpp - rows of features with two values as sets of bits, and their scores with all centroids.
//
// A row's mark is a feature that has the rarer of its two values. What a mark adds to the score of each centroid is one
// line of 16-bit integers, so a row takes as many additions as it has marks, each for a vector of centroids. Features
// of more values, numbers, are 16-bit integers, of which each multiplies a line. encode/bits.hpp says what the integers
// mean.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "cpu/kernels/score_kernels.hpp"

namespace pgkm::cpu {

// Centroids are filled up to a multiple of this, and lie in panels of so many; the last one may be narrower.
inline constexpr std::int64_t bit_step = 32, bit_panel = 256;

struct BitLines {
    const std::uint16_t *start;  // `width` values: the score of a row without marks
    const std::uint16_t *steps;  // the value of feature f and centroid j of panel p at p * bit_panel * d + f * (the
                                 // panel's width) + j
    std::int64_t width;          // centroids, filled up
    const std::int32_t *numbers; // the features that are numbers
    int n_numbers;
};

struct BitKernels {
    // Of the features whose bits are set in `marked`: sets bit f % 64 of bits[f / 64] for each whose value is not
    // usual[f]. Returns whether all of these are other[f]; `bits` has no meaning if not.
    template <typename T>
    using Mark = bool(const T *row, int d, const T *usual, const T *other, const std::uint64_t *marked,
                      std::uint64_t *bits);
    ForElements<Mark> mark;

    // scores[i * width + j]: the start of centroid j, its steps of row i's marks, and those of the numbers times
    // values[i][..] / 2^15, each rounded to an integer next to it that is off by 1/2 at most; modulo 2^16. sizes[i]:
    // how many marks. best[i] and second[i]: the two lowest scores, the same on a tie; index[i]: the first centroid of
    // the best.
    void (*score)(const std::uint64_t *const *rows, const std::int16_t *const *values, int count, int d,
                  const BitLines &lines, std::uint16_t *scores, std::int32_t *sizes, const Lowest &lowest);

    // Lists the scores of one row that are at most `limit`, as hits of this point; returns their number.
    std::int64_t (*at_most)(const std::uint16_t *scores, std::int64_t width, int limit, int point, Hit *hits);

    // Of `rows` rows of `words` words: gains[t] is the sum of what the bits in which a row and candidate t differ are
    // fewer than the row's count. At most 32 candidates.
    void (*gains)(const std::uint64_t *bits, std::int64_t rows, std::int64_t words, const std::int32_t *counts,
                  const std::uint64_t *const *candidates, int n_candidates, std::uint64_t *gains);
    // Lists which of `rows` rows (those that `among` numbers, or, where it is NULL, the first) differ from the
    // candidate in fewer bits than their count, and in how many; returns how many.
    int (*nearer)(const std::uint64_t *bits, const std::int32_t *among, std::int64_t rows, std::int64_t words,
                  const std::int32_t *counts, const std::uint64_t *candidate, std::int32_t *nearer,
                  std::int32_t *fewer);

    // In how many bits two rows differ.
    std::int32_t (*different)(const std::uint64_t *a, const std::uint64_t *b, std::int64_t words);
    // Of k centroids, k x words, the first of those from which the row differs in the fewest bits. *best, *second: from
    // it and from the next one; the same on a tie, INT32_MAX where k is 1.
    std::int32_t (*nearest)(const std::uint64_t *row, std::int64_t words, const std::uint64_t *centroids,
                            std::int32_t k, std::int32_t *best, std::int32_t *second);
    // Adds `step` to the count of each bit that is set, counted from the lowest bit of the first word on.
    void (*count)(const std::uint64_t *row, std::int64_t words, std::int32_t step, std::int32_t *counts);
};

const BitKernels &bit_kernels(InstructionSet set);

} // namespace pgkm::cpu
