// products.cuh - what the kernels of the moments share: how rows come in and how a warp finds its tile.
#pragma once

#include "device/tensor_mma.cuh"
#include "moments/plan.hpp"
#include "moments/products.hpp"

namespace pgkm::cuda::moments {

inline constexpr int side = 32; // of the tile of one warp

// The place of a warp: its tile of a square, and which of the stage's rows it takes.
struct Place {
    int  row, column; // of the tile, in tiles
    int  group;
    bool diagonal; // only the lower triangle of the tile counts
};

// Squares on the diagonal: the tiles of the lower triangle. The four tiles on the diagonal of a square
// of 4 x 4 have three quarters of the work of the others: two schedulers get two of those and one
// other each, the other two schedulers two full ones.
template <int Columns>
__device__ inline Place place_on_diagonal(int warp)
{
    constexpr int tiles = Columns * (Columns + 1) / 2;
    constexpr unsigned long long order = Columns == 4 ? 0x9587206431ULL : 0x543210ULL;
    const int number = static_cast<int>(order >> (4 * (warp % tiles))) & 15;
    const int row = number >= 6 ? 3 : number >= 3 ? 2 : number >= 1 ? 1 : 0;
    const int column = number - row * (row + 1) / 2;
    return {row, column, warp / tiles, row == column};
}

__device__ inline Place place_below(int warp) { return {warp / 4, warp % 4, 0, false}; }

// The square below the diagonal of number `number`.
__device__ inline int2 square_below(int number)
{
    int row = 1;
    while ((row + 1) * row / 2 <= number)
        ++row;
    return {row, number - row * (row - 1) / 2};
}

__device__ inline void copy_async_small(unsigned to, const float *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(there ? 4 : 0) : "memory");
}
__device__ inline void copy_async_small(unsigned to, const double *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(there ? 8 : 0) : "memory");
}

// Starts to copy features [feature, feature + Width) of `there` of Rows rows to shared memory, rows
// `Stride` values apart; zeros where there is nothing.
template <typename T, int Rows, int Width, int Stride, int Threads>
__device__ inline void start_copy(T *to, const T *from, int there, int d, int feature, bool wide)
{
    constexpr int values = 16 / static_cast<int>(sizeof(T));
    if (wide) {
        for (int i = static_cast<int>(threadIdx.x); i < Rows * Width / values; i += Threads) {
            const int row = i / (Width / values), column = i % (Width / values) * values;
            const bool inside = row < there && feature + column < d;
            tensor::copy_async_or_zero(tensor::shared_address(to + row * Stride + column),
                                       inside ? from + std::int64_t{row} * d + feature + column : from, inside);
        }
        return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < Rows * Width; i += Threads) {
        const int row = i / Width, column = i % Width;
        const bool inside = row < there && feature + column < d;
        copy_async_small(tensor::shared_address(to + row * Stride + column),
                         inside ? from + std::int64_t{row} * d + feature + column : from, inside);
    }
}

// Whether rows can be copied 16 bytes at a time.
template <typename T>
__device__ inline bool copies_wide(const T *values, int d)
{
    return reinterpret_cast<std::uintptr_t>(values) % 16 == 0 && d * static_cast<int>(sizeof(T)) % 16 == 0;
}

// The rows of a segment that are at hand, and the first of their stages that is the segment's.
struct Run {
    std::int64_t first_row, n_rows, stage;
};

__device__ inline Run run_of(const Segment &segment, const Chunk &chunk, int stage_rows)
{
    if (chunk.n_rows == 0)
        return {segment.first_row, segment.n_rows, segment.index};
    const std::int64_t passed = chunk.first_row / stage_rows % segment.count;
    return {0, chunk.n_rows, segment.index - passed + (segment.index < passed ? segment.count : 0)};
}

} // namespace pgkm::cuda::moments
