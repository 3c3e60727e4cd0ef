// score_kernels.hpp - float32 scores of a block of points against panels of centroids.
//
// A score is |c|^2 / 2 - x.c on float32 projections (encode/projection.hpp), in the form of a blocked matrix
// product: one fused operation per feature where the exact D takes two in float64, four
// times the speed of exact_kernels.hpp. What a score may be off by is worked out in
// score_bound.hpp; these kernels only fix the order: the features of a call are one chain per
// centroid from 0, whose sum is then added to the score.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

// Points per block: four AVX-512 vectors of float32.
inline constexpr int tiled_width = 64;
// Centroids per panel, feature-major. Those of score kernels are negated.
inline constexpr int tiled_panel = 4;

// Where feature f of centroid j stands in panels of so many features.
inline std::int64_t panel_place(std::int64_t j, std::int64_t f, std::int64_t features)
{
    return (j / tiled_panel * features + f) * tiled_panel + j % tiled_panel;
}

struct Hit {
    std::int32_t point;
    std::int32_t centroid; // within the call
    float score;
};

// The lowest scores of each point of a block so far, tiled_width of each.
struct Lowest {
    float *best;
    float *second; // of another centroid; the same on a tie
    float *index;  // the centroid of the best, the first on a tie; exact below 2^24
    float first;   // the number of the call's first centroid
};

struct ScoreKernels {
    bool fused; // one rounding per product and sum, not two

    // Transposes rows to block[f * tiled_width + i], less the shift; the rest of the width
    // repeats the last row.
    template <typename T>
    using Pack = void(const T *const *rows, int count, int d, const T *shift, float *block);
    ForElements<Pack> pack;

    // squares[i] = sum of the squares of point i's features.
    void (*norms)(const float *block, int d, float *squares);

    // Adds the products of `features` features to the scores of `panels` panels (panel_stride
    // values apart). Scores are tiled_width per centroid; with start != NULL they begin as
    // start[centroid]. With lowest != NULL the sums are complete, and enter the lowest scores of each point.
    void (*add)(const float *block, int features, const float *panels, std::int64_t panel_stride, std::int64_t count,
                const float *start, float *scores, const Lowest *lowest);

    // Enters scores of `count` centroids.
    void (*lowest)(const float *scores, std::int64_t count, const Lowest &lowest);

    // Lists every score at or below limit[i]; hits has room for count * tiled_width entries.
    std::int64_t (*at_most)(const float *scores, std::int64_t count, const float *limit, Hit *hits);
};

const ScoreKernels &score_kernels(InstructionSet set);

} // namespace pgkm::cpu
