// pivots.hpp - what kernels read of rows that are ordered by pivots (assign/pivots.hpp makes and explains it).
#pragma once

#include <cstdint>

namespace pgkm::cuda {

inline constexpr int most_pivots = 32;

// Rows with the nearest of a few pivots, pivot by pivot. Without an order rows are taken as they come and there is one
// pivot.
struct PivotedRows {
    int count = 0;                           // pivots; 0: not in use
    const float *pivots = nullptr;           // count x d: the shifts
    const float *radius = nullptr;           // count: at least |x - s| of every row
    const std::int32_t *order = nullptr;     // n: rows, pivot by pivot
    const std::int64_t *first_row = nullptr; // count + 1, in the order
};

} // namespace pgkm::cuda
