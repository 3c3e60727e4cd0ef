// directions.hpp - the directions along which a sample of the rows spreads most, for projection.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/score_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

struct Directions {
    std::int32_t count = 0;
    std::vector<float> values; // count x d, by decreasing spread
    double skew = 0.0;         // |P P^T - I| of this matrix P, at most, by Frobenius
};

// Up to `most` directions, nearly orthonormal, of the rows less `shift` (d): three rounds of subspace iteration on up
// to 512 rows that lie evenly in the data. None where the sample has no spread, is not finite, or finds no memory.
template <typename T>
Directions find_directions(const Rows<T> &rows, const T *shift, std::int32_t most);

// Left's panels for ScoreKernels::add: panel[p][f * tiled_panel + j] = sign * matrix[(p * tiled_panel + j) * d + f];
// rows beyond `count` are 0.
void fill_panels(const float *matrix, std::int64_t count, std::int64_t d, std::int64_t panels, float sign, float *out);

} // namespace pgkm::cpu
