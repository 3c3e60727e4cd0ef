// tensor_tile.cuh - a block's row tile: fp16 rows in shared memory and what bounds need of them.
#pragma once

#include <climits>

#include "assign/tensor_layout.cuh"
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

// Four features of a lane, of 4 x Lanes: neighbours where 16-byte loads are possible, else Lanes apart.
template <int Lanes = 32>
__device__ inline int feature_of(int first, int i, bool aligned)
{
    const int lane = static_cast<int>(threadIdx.x) % Lanes;
    return aligned ? first + lane * 4 + i : first + i * Lanes + lane;
}

template <typename T>
__device__ inline bool loads_aligned(const View<T> &view)
{
    return sizeof(T) == 4 && view.d % 4 == 0 && (reinterpret_cast<std::uintptr_t>(view.values) & 15) == 0;
}

template <int Lanes = 32, typename T>
__device__ inline void load_values(const T *from, int first, int d, bool aligned, T (&v)[4])
{
    if constexpr (sizeof(T) == 4) {
        if (aligned) {
            const int f = feature_of<Lanes>(first, 0, true);
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
        const int f = feature_of<Lanes>(first, i, false);
        v[i] = f < d ? from[f] : T(0);
    }
}

// Rounds four values to fp16, adds to the row's sums, and calls store(feature, half).
template <int Lanes = 32, typename T, typename Store>
__device__ inline void round_values(const T (&v)[4], const T (&pivot)[4], T scale, int first, bool aligned,
                                    float &square, float &lost, Store &&store)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float value = centred(v[i], pivot[i], scale);
        const __half half = __float2half_rn(value);
        const float rounded = __half2float(half);
        square = fmaf(rounded, rounded, square);
        lost = fmaf(value - rounded, value - rounded, lost);
        store(feature_of<Lanes>(first, i, aligned), half);
    }
}

// From a row's sums of squares: at least |x~|^2 and at least |a|.
__device__ inline void widen_lengths(float &square, float &lost)
{
    square *= 1.0f + 0x1p-12f;
    lost = sqrtf(lost) * (1.0f + 0x1p-10f);
    lost += (sqrtf(square) + lost) * 0x1p-22f; // centred() may be off by 2^-23
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

namespace {

constexpr int halves_rows = 4; // of a lane

// Rows in the order of groups as fp16, once for many assignments. Lanes of a warp share a row, and take four rows whose
// loads overlap.
template <typename T, int Lanes>
__global__ void __launch_bounds__(256, sizeof(T) == 4 ? 4 : 2)
    halves_kernel(View<T> view, const Control *control, Layout<T> l)
{
    if (stopped(control))
        return;
    constexpr int abreast = 32 / Lanes; // rows
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32 * (halves_rows * abreast);
    if (first >= view.n)
        return;
    const bool aligned = loads_aligned(view);
    const T scale = static_cast<T>(l.groups_at->scale);
    const std::int32_t end = lane + 1 < max_groups ? l.groups_at->offset[lane + 1] : INT_MAX; // of group `lane`
    std::int64_t place[halves_rows];
    const T *row[halves_rows], *pivot[halves_rows];
#pragma unroll
    for (int r = 0; r < halves_rows; ++r) {
        int group = 0;
#pragma unroll
        for (int i = 0; i < abreast; ++i) {
            const std::int64_t at = min(first + r * abreast + i, view.n - 1);
            const int its = __popc(__ballot_sync(~0u, at >= end));
            place[r] = i == lane / Lanes ? at : place[r];
            group = i == lane / Lanes ? its : group;
        }
        row[r] = view.values + std::int64_t{l.order[place[r]]} * view.d;
        pivot[r] = l.pivots + group * view.d;
    }
    float square[halves_rows] = {}, lost[halves_rows] = {};
#pragma unroll 1
    for (int f = 0; f < l.d8; f += 4 * Lanes) {
        T v[halves_rows][4];
#pragma unroll
        for (int r = 0; r < halves_rows; ++r)
            load_values<Lanes>(row[r], f, view.d, aligned, v[r]);
#pragma unroll
        for (int r = 0; r < halves_rows; ++r) {
            T p[4];
            load_values<Lanes>(pivot[r], f, view.d, aligned, p);
            __half *to = l.halves + place[r] * l.d8, four[4];
            int slot = 0;
            round_values<Lanes>(v[r], p, scale, f, aligned, square[r], lost[r], [&](int feature, __half half) {
                four[slot++] = half;
                if (!aligned && feature < l.d8)
                    to[feature] = half;
            });
            const int feature = feature_of<Lanes>(f, 0, true);
            if (aligned && feature < l.d8)
                *reinterpret_cast<uint2 *>(to + feature) =
                    make_uint2(__half_as_ushort(four[0]) | static_cast<unsigned>(__half_as_ushort(four[1])) << 16,
                               __half_as_ushort(four[2]) | static_cast<unsigned>(__half_as_ushort(four[3])) << 16);
        }
    }
#pragma unroll
    for (int r = 0; r < halves_rows; ++r) {
        square[r] = sum_lanes<Lanes>(square[r]);
        lost[r] = sum_lanes<Lanes>(lost[r]);
        if (lane % Lanes == 0)
            l.measures[place[r]] = {square[r], lost[r]};
    }
}

template <typename T>
void make_halves(const Stage<T> &stage, const View<T> &view, const Layout<T> &l)
{
    const auto launch = [&](auto kernel, int lanes) {
        const int rows = 256 / lanes * halves_rows; // of a block
        kernel<<<blocks_for(view.n, rows, INT_MAX), 256, 0, stage.stream>>>(view, stage.control, l);
        launched("halves_kernel");
    };
    if (l.d8 <= 32)
        launch(halves_kernel<T, 8>, 8);
    else
        launch(halves_kernel<T, 32>, 32);
}

} // namespace
} // namespace pgkm::cuda::tensor
