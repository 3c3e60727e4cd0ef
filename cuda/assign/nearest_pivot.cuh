// nearest_pivot.cuh - the kernels that bring rows into the order of their nearest pivots (pivots.hpp says what for).
//
// nearest_pivot_kernel: a warp takes 16 rows; a quad of lanes has two of them, a lane the same features of both, which
// it loads at once and straight from global memory. Products with the pivots, all relative to the first one, are taken
// by the tensor cores in TF32: that rounding may send a row to a pivot that is not quite the nearest, which is right,
// too. The radius is a bound, so each row's distance from its pivot is then computed in float32 from the values
// themselves. Blocks count in shared memory.
// lay_out_kernel: one thread makes places and radii of the counts. scatter_kernel: a block writes its rows' numbers to
// places that it reserves for each pivot.
#pragma once

#include <cstdint>

#include "device/pivots.hpp"
#include "device/quad.cuh"

namespace pgkm::cuda {
namespace {

constexpr int order_threads = 256;
constexpr int strip_of_rows = 16; // that a warp takes at a time

// Pivots as the products want them, less the first pivot. Each begins with what all of its features make.
struct PivotTable {
    const float4 *columns; // sixteens of features x most_pivots x lanes of a quad; zeros beyond d
    const float *half;     // most_pivots: half of the squared length; infinity where there is no pivot
    int tiles;             // of eight pivots
};

// What is found out about each pivot; zero at first.
struct PivotTally {
    unsigned long long count[most_pivots];
    unsigned long long cursor[most_pivots];
    std::uint32_t square[most_pivots]; // bits of the largest squared distance
};

// acc (16 x 8) += a (16 x 8) * b (8 x 8), of float32 cut to TF32.
__device__ inline void multiply_tf32(float (&acc)[4], float a0, float a1, float a2, float a3, float b0, float b1)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
          "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

constexpr int pivot_tiles = most_pivots / 8;

// Products of two rows' sixteen features with all pivots; which feature takes which slot does not matter as long as
// both sides agree.
__device__ inline void multiply_pivots(const PivotTable &table, int c, const float (&value)[2][4],
                                       const float (&reference)[4], float (&product)[pivot_tiles][4])
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    float x[2][4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        x[0][w] = value[0][w] - reference[w];
        x[1][w] = value[1][w] - reference[w];
    }
#pragma unroll
    for (int t = 0; t < pivot_tiles; ++t)
        if (t < table.tiles) {
            const float4 p = table.columns[(c * most_pivots + t * 8) * 4 + lane];
            multiply_tf32(product[t], x[0][0], x[1][0], x[0][1], x[1][1], p.x, p.y);
            multiply_tf32(product[t], x[0][2], x[1][2], x[0][3], x[1][3], p.z, p.w);
        }
}

// The pivot of the row whose products stand at 2 h and 2 h + 1, for all lanes of the quad.
__device__ inline int least_pivot(const float (&half)[pivot_tiles][2], const float (&product)[pivot_tiles][4], int h,
                                  int tiles)
{
    float best = INFINITY;
    int nearest = 0;
#pragma unroll
    for (int t = 0; t < pivot_tiles; ++t)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const float score = half[t][i] - product[t][2 * h + i];
            if (t < tiles && score < best) {
                best = score;
                nearest = t * 8 + 2 * static_cast<int>(threadIdx.x & 3) + i;
            }
        }
    return least_in_quad(best, nearest);
}

// A near pivot of each row; counts and squared radii of the pivots. C: sixteens of features. of_row: nullptr where
// there is one pivot.
template <int W, int C>
__global__ void __launch_bounds__(order_threads)
    nearest_pivot_kernel(const float *values, std::int64_t n, int d, const float *pivots, PivotTable table,
                         std::uint8_t *of_row, PivotTally *tally)
{
    __shared__ unsigned own_count[most_pivots];
    __shared__ std::uint32_t own_square[most_pivots];
    if (threadIdx.x < most_pivots) {
        own_count[threadIdx.x] = 0;
        own_square[threadIdx.x] = 0;
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x & 31), q = lane & 3;
    float half[pivot_tiles][2];
#pragma unroll
    for (int t = 0; t < pivot_tiles; ++t)
#pragma unroll
        for (int i = 0; i < 2; ++i)
            half[t][i] = table.half[t * 8 + 2 * q + i];
    const std::int64_t strips = (n + strip_of_rows - 1) / strip_of_rows;
    const std::int64_t step = std::int64_t{gridDim.x} * (order_threads / 32);
    for (std::int64_t strip = std::int64_t{blockIdx.x} * (order_threads / 32) + threadIdx.x / 32; strip < strips;
         strip += step) {
        const std::int64_t first = strip * strip_of_rows + lane / 4;
        const float *row[2] = {values + min(first, n - 1) * d, values + min(first + 8, n - 1) * d};
        float value[C][2][4];
        float product[pivot_tiles][4] = {};
#pragma unroll
        for (int c = 0; c < C; ++c) {
            load_slots<W>(row[0], c, d, value[c][0]);
            load_slots<W>(row[1], c, d, value[c][1]);
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            float reference[4];
            load_slots<W>(pivots, c, d, reference);
            multiply_pivots(table, c, value[c], reference, product);
        }
        int pivot[2];
        float square[2] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h)
            pivot[h] = least_pivot(half, product, h, table.tiles);
#pragma unroll
        for (int c = 0; c < C; ++c)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float from[4];
                load_slots<W>(pivots + std::int64_t{pivot[h]} * d, c, d, from);
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    const float difference = value[c][h][w] - from[w];
                    square[h] = __fmaf_rn(difference, difference, square[h]);
                }
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            square[h] = sum_lanes<4>(square[h]);
        }
        // The first two lanes of a quad see to a row each.
        const int mine = q == 0 ? pivot[0] : pivot[1];
        const std::int64_t its_row = first + 8 * q;
        const bool counts = q < 2 && its_row < n;
        const unsigned all = __ballot_sync(~0u, counts);
        if (counts) {
            const unsigned alike = __match_any_sync(all, mine);
            if (__ffs(static_cast<int>(alike)) - 1 == lane)
                atomicAdd(own_count + mine, static_cast<unsigned>(__popc(alike)));
            const std::uint32_t bits = __float_as_uint(q == 0 ? square[0] : square[1]);
            if (bits > own_square[mine])
                atomicMax(own_square + mine, bits);
            if (of_row != nullptr)
                of_row[its_row] = static_cast<std::uint8_t>(mine);
        }
    }
    __syncthreads();
    if (threadIdx.x < most_pivots && own_count[threadIdx.x] != 0) {
        atomicAdd(tally->count + threadIdx.x, static_cast<unsigned long long>(own_count[threadIdx.x]));
        atomicMax(tally->square + threadIdx.x, own_square[threadIdx.x]);
    }
}

// Where each pivot's rows begin, and its radius: at least |x - s| of its rows.
__global__ void lay_out_kernel(PivotTally *tally, int count, int d, std::int64_t *first_row, float *radius)
{
    // Far above the error (d + 4) 2^-24 of a distance computed in float32 from d terms.
    const float slack = 1e-5f + static_cast<float>(d) * 0x1p-22f;
    std::int64_t row = 0;
    for (int a = 0; a < count; ++a) {
        first_row[a] = row;
        tally->cursor[a] = static_cast<unsigned long long>(row);
        // 2^-60: squares of distances below it are lost in float32.
        radius[a] = sqrtf(__uint_as_float(tally->square[a])) * (1.0f + 2.0f * slack) + 0x1p-60f;
        row += static_cast<std::int64_t>(tally->count[a]);
    }
    first_row[count] = row;
}

// Writes row numbers pivot by pivot.
__global__ void __launch_bounds__(order_threads)
    scatter_kernel(const std::uint8_t *of_row, std::int64_t n, PivotTally *tally, std::int32_t *order)
{
    constexpr int each = 8; // rows of a thread at a time
    __shared__ unsigned counts[most_pivots];
    __shared__ unsigned long long base[most_pivots];
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (std::int64_t start = std::int64_t{blockIdx.x} * (order_threads * each); start < n;
         start += std::int64_t{gridDim.x} * (order_threads * each)) {
        if (threadIdx.x < most_pivots)
            counts[threadIdx.x] = 0;
        __syncthreads();
        int pivot[each], rank[each];
#pragma unroll
        for (int i = 0; i < each; ++i) {
            const std::int64_t row = start + i * order_threads + threadIdx.x;
            pivot[i] = row < n ? of_row[row] : most_pivots;
        }
#pragma unroll
        for (int i = 0; i < each; ++i) { // a warp's rows stay in their order
            const unsigned alike = __match_any_sync(~0u, pivot[i]);
            const int leader = __ffs(static_cast<int>(alike)) - 1;
            unsigned place = 0;
            if (lane == leader && pivot[i] < most_pivots)
                place = atomicAdd(counts + pivot[i], static_cast<unsigned>(__popc(alike)));
            rank[i] = static_cast<int>(__shfl_sync(~0u, place, leader)) + __popc(alike & ((1u << lane) - 1));
        }
        __syncthreads();
        if (threadIdx.x < most_pivots && counts[threadIdx.x] != 0)
            base[threadIdx.x] =
                atomicAdd(tally->cursor + threadIdx.x, static_cast<unsigned long long>(counts[threadIdx.x]));
        __syncthreads();
#pragma unroll
        for (int i = 0; i < each; ++i)
            if (pivot[i] < most_pivots)
                order[base[pivot[i]] + static_cast<unsigned>(rank[i])] =
                    static_cast<std::int32_t>(start + i * order_threads + threadIdx.x);
        __syncthreads();
    }
}

// Rows first, first + step, ... of n, side by side.
__global__ void __launch_bounds__(order_threads)
    sample_kernel(const float *values, std::int64_t step, int d, std::int64_t count, float *to)
{
    const std::int64_t total = count * d, stride = std::int64_t{gridDim.x} * order_threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * order_threads + threadIdx.x; i < total; i += stride)
        to[i] = values[i / d * step * d + i % d];
}

} // namespace
} // namespace pgkm::cuda
