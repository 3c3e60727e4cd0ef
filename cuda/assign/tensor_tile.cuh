// tensor_tile.cuh - a block's row tile: fp16 rows in shared memory and what bounds need of them.
#pragma once

#include "assign/tensor_layout.cuh"
#include "device/copy_rows.cuh"
#include "device/tensor_mma.cuh"

namespace pgkm::cuda::tensor {

inline constexpr int filter_threads = 256;

// 8 warps: WarpRows of them along the rows, 32 each, the others along the columns.
template <int WarpRows, int Columns>
struct Shape {
    static constexpr int rows = 32 * WarpRows;
    static constexpr int columns = Columns;
    static constexpr int warp_columns = 8 / WarpRows;
    static constexpr int width = Columns / warp_columns; // columns of a warp
    static constexpr int strips = width / 8;             // of eight columns
    static constexpr int stage_bytes = Columns * feature_chunk * 2;
    static_assert(column_tile % Columns == 0 && strips % 2 == 0);
};

// What is known of the tile's rows; tensor.cu derives the bounds.
template <int Rows>
struct RowFacts {
    std::int32_t row[Rows];   // -1: none
    std::int32_t place[Rows]; // in the order of groups
    float square[Rows];       // at least |x~|^2
    float lost[Rows];         // at least |a| = |x' - x~|
    int furthest;             // bits of the largest reach: no nearest centroid has a larger |c'|
    int widening;             // bits of the largest factor for the columns' weights
};

// The second pass: columns whose score may be the least, per row.
template <int Rows>
struct Found {
    float threshold[Rows];
    std::int32_t count[Rows];
    std::int32_t position[Rows][candidates];
};

// Rows of 16-byte pieces, permuted so that ldmatrix meets no bank twice; width in pieces, a
// multiple of 8.
__device__ inline int row_piece(int row, int piece, int width)
{
    return row * width + (piece ^ (row & 7));
}
// The same for a stage of columns, which is four pieces wide.
__device__ inline int column_piece(int column, int piece)
{
    return column * 4 + (piece ^ ((column >> 1) & 3));
}

__host__ __device__ constexpr int padded_features(int d)
{
    return (d + 63) / 64 * 64;
}

// Bounds of one row from its sums of squares.
template <int Rows>
__device__ inline void note_row(RowFacts<Rows> &facts, const Head &head, int g, int d, int at, std::int32_t row,
                                float square, float lost)
{
    widen_lengths(square, lost);
    facts.row[at] = row;
    facts.square[at] = square;
    facts.lost[at] = lost;
    const float length = sqrtf(square) + lost, distance = length + head.nearest[g];
    const float reach = (length + distance) * (1.0f + 0x1p-10f);
    if (row < 0 || !(reach < 0x1p100f))
        return;
    const int bucket = bucket_of(reach);
    const float gamma = 2.0f * static_cast<float>((d + 15) / 16 * 16) * 0x1p-22f;
    const float of_length = 2.0f * lost + gamma * length + 0x1p-22f * (head.radius[g][bucket] + 2.0f * length);
    const float of_residual = 2.0f * distance + 4.0f * lost + 2.0f * head.residual[g][bucket];
    const float widening = fmaxf(of_length, of_residual / residual_weight) * (1.0f + 0x1p-10f);
    atomicMax(&facts.furthest, __float_as_int(reach));
    atomicMax(&facts.widening, __float_as_int(widening));
}

} // namespace pgkm::cuda::tensor
