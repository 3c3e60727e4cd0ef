// tile_kernels.hpp - rows of a tile as 16-bit integers, and which of them a candidate may win.
//
// A tile has 64 rows in strips of 32, and two features to a word: pair p of strip s begins at word 32 (s pairs + p).
// Lanes run over rows, a few candidates share the loads. tiles.cpp says what the integers mean and proves the bound.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

inline constexpr int seed_tile_rows = 64;
inline constexpr int seed_strip_rows = 32;
inline constexpr int max_kernel_candidates = 6;

// Words of a row, or of a candidate: the last one of an odd number of features has 0 in its upper half.
inline std::int64_t tile_pairs(std::int64_t d)
{
    return (d + 1) / 2;
}

// What is known of the rows of a tile (tiles.cpp), and of a candidate that was compared with them.
struct ScreenedTile {
    const float *squares, *lost, *limits;
};
struct ScreenedCandidate {
    const std::int32_t *values; // tile_pairs(d) words
    float scale;                // what they are multiples of
    const float *scores;
    float start, square, lost, share;
};
struct GainBounds {
    double least, most;
};

struct TileKernels {
    bool fused; // one rounding per product and sum, not two

    // block[f * seed_tile_rows + i] = (row i's feature f - parent[f]) * inverse in float32, by two roundings of
    // float32 for float32 rows where `narrow`, else by float64. What lies behind `count` repeats the last row.
    template <typename T>
    using Centre = void(const T *const *rows, int count, int d, const T *parent, double inverse, bool narrow,
                        float *block);
    ForElements<Centre> centre;

    // Rounds a block to integers: `tile` in strips of words, the sum of the squares of each row's integers, and that of
    // the squares of what rounding changed.
    void (*round)(const float *block, int d, std::int32_t *tile, float *squares, float *lost);

    // scores[c * seed_tile_rows + i] is the product of row i and candidates[c]; bit i of hits[c] says that it is at
    // least what the limit of the row and the start of the candidate ask for (tiles.cpp). count candidates, at most
    // max_kernel_candidates.
    void (*screen)(const std::int32_t *tile, int d, const ScreenedCandidate *const *candidates, int count,
                   const ScreenedTile &about, float *scores, std::uint64_t *hits);

    // Bounds of what a candidate takes from the squared distances of the rows that it may win; each row's in gains, if
    // that is not NULL: the lower ones of the tile, then the upper ones.
    GainBounds (*estimate)(const ScreenedTile &tile, const ScreenedCandidate &candidate, float *gains);
};

const TileKernels &tile_kernels(InstructionSet set);

} // namespace pgkm::cpu
