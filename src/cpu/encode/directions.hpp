// directions.hpp - the directions along which a sample of the rows spreads most, for projection.hpp.
#pragma once

#include <cstdint>

#include "cpu/rows.hpp"

namespace pgkm::cpu {

struct Directions {
    std::int32_t count = 0;
    Buffer<float> values; // count x d, by decreasing spread
    double skew = 0.0;    // |P P^T - I| of this matrix P, at most, by Frobenius
};

// Up to `most` directions, nearly orthonormal, of the rows less `shift` (d): three rounds of subspace iteration on up
// to 256 rows that lie evenly in the data. None where the sample has no spread or is not finite.
template <typename T>
Directions find_directions(const Rows<T> &rows, const T *shift, std::int32_t most);

} // namespace pgkm::cpu
