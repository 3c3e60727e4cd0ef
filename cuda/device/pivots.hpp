// pivots.hpp - what kernels read of rows that are ordered by pivots (assign/pivots.hpp makes and explains it).
#pragma once

#include <cstdint>

namespace pgkm::cuda {

inline constexpr int most_pivots = 32;
inline constexpr int chain_step = 32; // features summed by themselves before they join the total
inline constexpr int tile_rows = 128; // rows of one block's matrix product

// Rows with the nearest of a few pivots, pivot by pivot. Without an order rows are taken as they come and there is one
// pivot.
template <typename T>
struct PivotedRows {
    int count = 0;                            // pivots; 0: not in use
    const T *pivots = nullptr;                // count x d: the shifts
    const float *radius = nullptr;            // count: at least |x - s| of every row
    const std::int32_t *order = nullptr;      // n: rows, pivot by pivot
    const std::int64_t *first_row = nullptr;  // count + 1, in the order
    const std::int64_t *first_tile = nullptr; // count + 1
    std::int64_t tiles = 0;                   // at least first_tile[count]
    // Remade for every set of centroids: those that can be nearest to a row of the pivot.
    std::int32_t *list = nullptr;   // count x k: ascending indices
    float *panel = nullptr;         // count x d x stride: c - s, feature by feature
    float *half = nullptr;          // count x stride: |c - s|^2 / 2; +infinity beyond the list
    std::int32_t *listed = nullptr; // count
    float2 *reach = nullptr;        // count: at least |c - s| of the nearest of all to the pivot, and of the list
    float *scratch = nullptr;       // count x k
    int stride = 0;                 // k padded to a multiple of 64
};

// Slack of a distance computed in float32 from d terms, far above its error (d + 4) 2^-24.
__host__ __device__ inline float distance_slack(int d)
{
    return 1e-5f + static_cast<float>(d) * 0x1p-22f;
}

} // namespace pgkm::cuda
