// tiled.cuh - the tiled kernels' filter: products of 128 rows and a list of centroids, by the
// block, and what of the rows it leaves open (tiled.cu says when and why).
#pragma once

#include "device/exact.cuh"
#include "device/limbs.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda::tiled {

inline constexpr int threads = 256;
inline constexpr int depth = chain_step; // features per step

template <typename T>
struct Arguments {
    View<T> view;
    PivotedRows<T> pivots;
    const Control *control;
    Accumulators sums;    // or nullptrs
    std::int32_t *labels; // or nullptr
    int held;             // clusters whose sums fit the block's memory
    std::int64_t first;   // tile of this launch
    std::int64_t tiles;   // end of its tiles
    std::int64_t share;   // tiles per block
};

struct Shared {
    float rows[depth * tile_rows]; // x', feature by feature, fours of rows swizzled
    float panel[depth * 64];
    std::int32_t row[tile_rows];   // row numbers within the view, -1 beyond the pivot's
    std::int32_t label[tile_rows]; // places in the pivot's list
    float square[tile_rows];       // |x'|^2
    std::int32_t queue[tile_rows];
    std::int32_t queued;
};

// What a block works on at a time.
template <typename T>
struct Tile {
    int listed; // centroids
    const T *shift;
    const float *panel;
    const float *half;
    const std::int32_t *list;
    float2 reach;
};

template <typename T>
__device__ Tile<T> tile_of(const Arguments<T> &a, int pivot)
{
    const PivotedRows<T> &p = a.pivots;
    return {p.listed[pivot],
            p.pivots + std::int64_t{pivot} * a.view.d,
            p.panel + std::int64_t{pivot} * p.stride * a.view.d,
            p.half + std::int64_t{pivot} * p.stride,
            p.list + std::int64_t{pivot} * a.view.k,
            p.reach[pivot]};
}

// Where four rows stand in a line of `rows`: no two lanes of a store meet in a bank.
__device__ inline int swizzled(int four, int feature)
{
    return (four ^ ((feature >> 2) & 7)) << 2;
}

// The next step's values, on their way from global to shared memory.
template <int Cols>
struct Staged {
    float rows[4][4];
    float panel[Cols == 4 ? 2 : 1][4];
};

template <typename T, int Cols>
__device__ void fetch(const Arguments<T> &a, const Tile<T> &tile, const Shared &shared, int first, int column,
                      Staged<Cols> &staged)
{
    const int d = a.view.d, feature = first + (static_cast<int>(threadIdx.x) & 7) * 4;
    T shift[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        shift[i] = feature + i < d ? tile.shift[feature + i] : T{0};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const std::int32_t row = shared.row[(threadIdx.x >> 3) + 32 * r];
        const T *from = a.view.values + std::int64_t{max(row, 0)} * d + feature;
        if (sizeof(T) == 4 && (d & 3) == 0) {
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (feature < d)
                four = *reinterpret_cast<const float4 *>(from);
            staged.rows[r][0] = four.x - static_cast<float>(shift[0]);
            staged.rows[r][1] = four.y - static_cast<float>(shift[1]);
            staged.rows[r][2] = four.z - static_cast<float>(shift[2]);
            staged.rows[r][3] = four.w - static_cast<float>(shift[3]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                staged.rows[r][i] = feature + i < d ? static_cast<float>(from[i] - shift[i]) : 0.0f;
        }
    }
    constexpr int columns = Cols == 4 ? 64 : 16, fours = columns / 4;
#pragma unroll
    for (int i = 0; i < (Cols == 4 ? 2 : 1); ++i) {
        const int place = static_cast<int>(threadIdx.x) + i * threads;
        const int f = first + place / fours;
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (place < depth * fours && f < d)
            four = *reinterpret_cast<const float4 *>(tile.panel + std::int64_t{f} * a.pivots.stride + column +
                                                     place % fours * 4);
        *reinterpret_cast<float4 *>(staged.panel[i]) = four;
    }
}

template <int Cols>
__device__ void stage(Shared &shared, const Staged<Cols> &staged)
{
    const int four = static_cast<int>(threadIdx.x) & 7;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int row = (static_cast<int>(threadIdx.x) >> 3) + 32 * r;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            shared.rows[(four * 4 + i) * tile_rows + swizzled(row >> 2, four * 4) + (row & 3)] = staged.rows[r][i];
    }
    constexpr int fours = (Cols == 4 ? 64 : 16) / 4;
#pragma unroll
    for (int i = 0; i < (Cols == 4 ? 2 : 1); ++i) {
        const int place = static_cast<int>(threadIdx.x) + i * threads;
        if (place < depth * fours)
            *reinterpret_cast<float4 *>(shared.panel + place * 4) = *reinterpret_cast<const float4 *>(staged.panel[i]);
    }
}

// |x'|^2 of the rows that a thread brings, its part of it; eight threads bring a row.
template <int Cols>
__device__ void add_squares(const Staged<Cols> &staged, float (&square)[4])
{
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            square[r] = __fmaf_rn(staged.rows[r][i], staged.rows[r][i], square[r]);
}

__device__ inline void leave_squares(float (&square)[4], Shared &shared)
{
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        for (int offset = 4; offset > 0; offset >>= 1)
            square[r] += __shfl_xor_sync(~0u, square[r], offset);
        if ((threadIdx.x & 7) == 0)
            shared.square[(threadIdx.x >> 3) + 32 * r] = square[r];
    }
}

// One step of the product: Rows x Cols per thread, `depth` features, summed by themselves first:
// the margin counts on it.
template <int Rows, int Cols>
__device__ void multiply(const Shared &shared, float (&product)[Rows][Cols])
{
    constexpr int columns = Cols == 4 ? 64 : 16, across = columns / Cols;
    const int tx = static_cast<int>(threadIdx.x) % across, ty = static_cast<int>(threadIdx.x) / across;
    float part[Rows][Cols] = {};
#pragma unroll 8
    for (int f = 0; f < depth; ++f) {
        float x[Rows], c[Cols];
#pragma unroll
        for (int r = 0; r < Rows; r += 4)
            *reinterpret_cast<float4 *>(&x[r]) =
                *reinterpret_cast<const float4 *>(shared.rows + f * tile_rows + swizzled((ty * Rows + r) >> 2, f));
        if constexpr (Cols == 4)
            *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(shared.panel + f * columns + tx * 4);
        else
            *reinterpret_cast<float2 *>(c) = *reinterpret_cast<const float2 *>(shared.panel + f * columns + tx * 2);
#pragma unroll
        for (int r = 0; r < Rows; ++r)
#pragma unroll
            for (int j = 0; j < Cols; ++j)
                part[r][j] = __fmaf_rn(x[r], c[j], part[r][j]);
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r)
#pragma unroll
        for (int j = 0; j < Cols; ++j)
            product[r][j] += part[r][j];
}

// How near to the least score that of a row's nearest centroid lies: the bound of fused/few.cuh with the row's own
// length x = |x'|, and no centroid longer than r, as fused/strips_rows.cuh shows. A product summed in steps meets
// chain_step roundings on its longest path, and one for each step.
__device__ inline float row_margin(float square, const float2 &reach, int d)
{
    const float x = sqrtf(square) * (1.0f + distance_slack(d)) + 0x1p-60f; // squares below 2^-120 are lost
    const float r = fminf(reach.y, (2.0f * x + reach.x) * (1.0f + 0x1p-8f));
    const float length = static_cast<float>(chain_step + d / chain_step + 6);
    return 2.04f * 0x1p-24f * (length * (0.5f * r * r + x * r) + (x + r) * (x + r)) + 0x1p-100f;
}

template <typename T, int Rows, int Cols>
__device__ void filter_tile(const Arguments<T> &a, const Tile<T> &tile, Shared &shared)
{
    constexpr int columns = Cols == 4 ? 64 : 16, across = columns / Cols;
    const int tx = static_cast<int>(threadIdx.x) % across, ty = static_cast<int>(threadIdx.x) / across;
    float least[Rows], second[Rows];
    int index[Rows];
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        least[r] = second[r] = INFINITY;
        index[r] = 0;
    }
    Staged<Cols> staged;
    float square[4] = {};
    for (int column = 0; column < tile.listed; column += columns) {
        float product[Rows][Cols] = {};
        fetch<T, Cols>(a, tile, shared, 0, column, staged);
        for (int first = 0; first < a.view.d; first += depth) {
            __syncthreads();
            stage<Cols>(shared, staged);
            if (column == 0)
                add_squares(staged, square);
            __syncthreads();
            if (first + depth < a.view.d)
                fetch<T, Cols>(a, tile, shared, first + depth, column, staged);
            multiply<Rows, Cols>(shared, product);
        }
#pragma unroll
        for (int j = 0; j < Cols; ++j) {
            const int c = column + tx * Cols + j;
            const float half = tile.half[c];
#pragma unroll
            for (int r = 0; r < Rows; ++r) {
                const float score = half - product[r][j];
                second[r] = fminf(second[r], fmaxf(least[r], score));
                index[r] = score < least[r] ? c : index[r];
                least[r] = fminf(least[r], score);
            }
        }
    }
    leave_squares(square, shared);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        for (int offset = across / 2; offset > 0; offset >>= 1) {
            const float other = __shfl_xor_sync(~0u, least[r], offset);
            const float other_second = __shfl_xor_sync(~0u, second[r], offset);
            const int other_index = __shfl_xor_sync(~0u, index[r], offset);
            second[r] = fminf(fminf(second[r], other_second), fmaxf(least[r], other));
            index[r] = other < least[r] ? other_index : index[r];
            least[r] = fminf(least[r], other);
        }
        // A margin of NaN or infinity, or no finite score, leaves the row open.
        const int row = ty * Rows + r;
        const float margin = row_margin(shared.square[row], tile.reach, a.view.d);
        const bool open = !(second[r] > least[r] + margin) || !(least[r] < INFINITY);
        if (tx == 0) {
            shared.label[row] = index[r];
            if (open && shared.row[row] >= 0)
                shared.queue[atomicAdd(&shared.queued, 1)] = row;
        }
    }
}

} // namespace pgkm::cuda::tiled
