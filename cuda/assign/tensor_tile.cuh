// tensor_tile.cuh - a block's tile: rows as fp16 in shared memory, columns streamed past them.
#pragma once

#include "tensor_mma.cuh"

namespace pgkm::cuda::tensor {

inline constexpr int filter_threads = 256;
inline constexpr int stages = 4; // column tiles x feature chunks in flight
inline constexpr int stage_bytes = column_tile * feature_chunk * 2;

// 8 warps: WarpRows of them along the rows, the others along the columns; 32 rows each.
template <int WarpRows>
struct Shape8 {
    static constexpr int rows = 32 * WarpRows;
    static constexpr int warp_columns = 8 / WarpRows;
    static constexpr int width = column_tile / warp_columns; // columns of a warp
    static constexpr int strips = width / 8;                 // of eight columns
};

// What is known of the tile's rows.
template <int Rows>
struct RowFacts {
    std::int32_t row[Rows];    // -1: none
    float        square[Rows]; // at least |x~|^2
    float        lost[Rows];   // at least |x' - x~|
    float        reach[Rows];  // no nearest centroid has a larger |c'|
    int          furthest;     // bits of the largest finite reach
};

// The second pass: centroids below each row's threshold.
template <int Rows>
struct Found {
    float        threshold[Rows];
    std::int32_t count[Rows];
    std::int32_t position[Rows][candidates];
};

// Rows of 16-byte pieces, permuted so that ldmatrix meets no bank twice; width in pieces, a
// multiple of 8.
__device__ inline int row_piece(int row, int piece, int width) { return row * width + (piece ^ (row & 7)); }
// The same for a stage of columns, which is four pieces wide.
__device__ inline int column_piece(int column, int piece) { return column * 4 + (piece ^ ((column >> 1) & 3)); }

__host__ __device__ inline int padded_features(int d) { return (d + 63) / 64 * 64; }

// Four values of a row: neighbours where 16-byte loads are possible, else 32 apart.
template <typename T>
__device__ inline int feature_of(int first, int i, bool aligned)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    return aligned ? first + lane * 4 + i : first + i * 32 + lane;
}

template <typename T>
__device__ inline void load_values(const T *from, int first, int d, bool aligned, T (&v)[4])
{
    if constexpr (sizeof(T) == 4) {
        if (aligned) {
            const int f = feature_of<T>(first, 0, true);
            const float4 x = f < d ? *reinterpret_cast<const float4 *>(from + f) : float4{0, 0, 0, 0};
            v[0] = x.x;
            v[1] = x.y;
            v[2] = x.z;
            v[3] = x.w;
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int f = feature_of<T>(first, i, false);
        v[i] = f < d ? from[f] : T(0);
    }
}

// Rounds four values into the tile and adds to the row's sums.
template <typename T>
__device__ inline void store_values(const T (&v)[4], const T (&pivot)[4], T scale, int row, int first, int width, bool aligned,
                                    char *tile, float &square, float &lost)
{
    __half half[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float value = centred(v[i], pivot[i], scale);
        half[i] = __float2half_rn(value);
        const float rounded = __half2float(half[i]);
        square = fmaf(rounded, rounded, square);
        lost = fmaf(value - rounded, value - rounded, lost);
    }
    if (aligned) {
        const int f = feature_of<T>(first, 0, true);
        if (f < width * 8) {
            const __half2 low = __halves2half2(half[0], half[1]), high = __halves2half2(half[2], half[3]);
            uint2 packed;
            __builtin_memcpy(&packed.x, &low, 4);
            __builtin_memcpy(&packed.y, &high, 4);
            *reinterpret_cast<uint2 *>(tile + row_piece(row, f / 8, width) * 16 + f % 8 * 2) = packed;
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int f = feature_of<T>(first, i, false);
        if (f < width * 8)
            *reinterpret_cast<__half *>(tile + row_piece(row, f / 8, width) * 16 + f % 8 * 2) = half[i];
    }
}

// Bounds of a row from its sums; one lane per row.
template <int Rows>
__device__ inline void note_row(RowFacts<Rows> &facts, int at, std::int32_t row, float square, float lost, float nearest)
{
    square *= 1.0f + 0x1p-12f;
    lost = sqrtf(lost) * (1.0f + 0x1p-10f);
    const float length = sqrtf(square);
    lost += (length + lost) * 0x1p-22f; // centred() may be off by 2^-23
    const float reach = (2.0f * (length + lost) + nearest) * (1.0f + 0x1p-10f);
    facts.row[at] = row;
    facts.square[at] = square;
    facts.lost[at] = lost;
    facts.reach[at] = reach;
    if (row >= 0 && reach < 0x1p100f)
        atomicMax(&facts.furthest, __float_as_int(reach));
}

// Loads the tile's rows, four per warp at a time so that their loads overlap.
template <typename T, int Rows>
__device__ inline void load_rows(const View<T> &view, const Layout<T> &l, int g, const std::int32_t *list, int count,
                                 char *tile, RowFacts<Rows> &facts)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const bool aligned = sizeof(T) == 4 && view.d % 4 == 0 && (reinterpret_cast<std::uintptr_t>(view.values) & 15) == 0;
    const int width = padded_features(view.d) / 8;
    const T *pivot = l.pivots + g * view.d;
    const T scale = static_cast<T>(l.head->scale);
    for (int first = static_cast<int>(threadIdx.x / 32) * 4; first < Rows; first += filter_threads / 32 * 4) {
        std::int32_t row[4];
        float square[4] = {}, lost[4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i)
            row[i] = first + i < count ? list[first + i] : -1;
        for (int f = 0; f < width * 8; f += 128) {
            T p[4], v[4][4];
            load_values(pivot, f, view.d, aligned, p);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                load_values(row[i] < 0 ? pivot : view.values + std::int64_t{row[i]} * view.d, f, view.d, aligned, v[i]);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                store_values(v[i], p, scale, first + i, f, width, aligned, tile, square[i], lost[i]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            square[i] = sum_over_warp(square[i]);
            lost[i] = sum_over_warp(lost[i]);
            if (lane == 0)
                note_row(facts, first + i, row[i], square[i], lost[i], l.head->nearest[g]);
        }
    }
}

} // namespace pgkm::cuda::tensor
