// tensor_settle.cuh - rows that a filter could not decide, settled over all centroids.
//
// Filters append row numbers to a list on the device, whose length is known to the device alone. Where there may be
// many, float32 rows go through sums of squares in float32 first, in tiles in shared memory. These err in proportion to
// the distance, not to the lengths of rows and centroids as products of fp16 do. So they decide rows far from many
// centroids that lie together. All other rows are measured by the contract's distance, a warp a row.
#pragma once

#include <type_traits>

#include "assign/tensor_leading.cuh"
#include "device/exact.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda::tensor {

struct SettleList {
    std::int32_t *count;
    std::int32_t *rows;
};

// Appends the rows of the lanes with `wanted` by one atomic per warp. All lanes take part.
__device__ inline void append_by_warp(std::int32_t *count, bool wanted, std::int32_t &position)
{
    const unsigned mask = __ballot_sync(~0u, wanted);
    const int lane = static_cast<int>(threadIdx.x & 31);
    std::int32_t base = 0;
    if (lane == 0 && mask != 0)
        base = atomicAdd(count, __popc(mask));
    position = __shfl_sync(~0u, base, 0) + __popc(mask & ((1u << lane) - 1));
}

namespace {

template <typename T>
__global__ void settle_kernel(View<T> view, const Control *control, SettleList list, std::int32_t *labels)
{
    const int warps = static_cast<int>(gridDim.x * (blockDim.x / 32));
    const int count = *list.count;
    // The flag is read again for every row: the list may be long.
    for (int i = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32); i < count; i += warps) {
        if (__any_sync(~0u, stopped(control)))
            return;
        const std::int32_t row = list.rows[i];
        const Nearest best = settle_by_warp(view.values + std::int64_t{row} * view.d, view.centroids, view.k, view.d);
        if ((threadIdx.x & 31) == 0)
            labels[row] = best.label;
    }
}

// Rows, centroids and features of a tile. Thread 16 y + x sees to rows 4 y .. 4 y + 3 and centroids 4 x .. 4 x + 3.
constexpr int settle_rows = 64, settle_columns = 64, settle_features = 32, settle_threads = 256;

struct SettleTile {
    float rows[settle_features][settle_rows + 4];
    float columns[settle_features][settle_columns + 4];
};

// Whether the contract's distances have the order of these sums. A term is rounded three times, then as often as it
// takes part in a sum: within its chunk of features, and with the chunks.
__device__ inline bool is_certain(const Leading &sums, int d)
{
    const int roundings = 3 + settle_features + (d + settle_features - 1) / settle_features;
    return sums.second > sums.best * (1.0f + static_cast<float>(2 * roundings + 12) * 0x1.02p-24f) + 0x1p-100f;
}

// Sums of squares of 64 rows and the centroids from `first` on.
__device__ inline void sum_tile(const View<float> &view, const std::int32_t (&rows)[settle_rows], int first,
                                SettleTile &tile, float (&sum)[4][4])
{
    const int x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;
    for (int base = 0; base < view.d; base += settle_features) {
        __syncthreads(); // all have read the features before
        for (int i = static_cast<int>(threadIdx.x); i < settle_rows * settle_features; i += settle_threads) {
            const int f = i % settle_features, at = i / settle_features, column = first + at;
            const bool there = base + f < view.d;
            tile.rows[f][at] = there ? view.values[std::int64_t{rows[at]} * view.d + base + f] : 0.0f;
            tile.columns[f][at] =
                there && column < view.k ? view.centroids[std::int64_t{column} * view.d + base + f] : 0.0f;
        }
        __syncthreads();
        float part[4][4] = {};
#pragma unroll 4
        for (int f = 0; f < settle_features; ++f) {
            const float4 a = *reinterpret_cast<const float4 *>(&tile.rows[f][4 * y]),
                         b = *reinterpret_cast<const float4 *>(&tile.columns[f][4 * x]);
            const float row[4] = {a.x, a.y, a.z, a.w}, column[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
            for (int m = 0; m < 4; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n) {
                    const float difference = row[m] - column[n];
                    part[m][n] = ::fmaf(difference, difference, part[m][n]);
                }
        }
#pragma unroll
        for (int m = 0; m < 4; ++m)
#pragma unroll
            for (int n = 0; n < 4; ++n)
                sum[m][n] += part[m][n];
    }
}

// Blocks take 64 rows at a time.
__global__ void __launch_bounds__(settle_threads)
    settle_tiles_kernel(View<float> view, const Control *control, SettleList list, std::int32_t *labels)
{
    static_assert(settle_rows == settle_columns);
    __shared__ __align__(16) SettleTile tile;
    __shared__ std::int32_t rows[settle_rows], open[settle_rows];
    __shared__ int open_rows;
    const int count = *list.count, self = static_cast<int>(threadIdx.x), x = self % 16, y = self / 16;
    for (int first = static_cast<int>(blockIdx.x) * settle_rows; first < count;
         first += static_cast<int>(gridDim.x) * settle_rows) {
        if (self < settle_rows)
            rows[self] = list.rows[min(first + self, count - 1)];
        if (self == 0)
            open_rows = 0;
        Leading leading[4];
        for (Leading &mine : leading)
            mine = {__int_as_float(0x7f800000), __int_as_float(0x7f800000), 0};
        for (int column = 0; column < view.k; column += settle_columns) {
            if (block_stopped(control))
                return;
            float sum[4][4] = {};
            sum_tile(view, rows, column, tile, sum);
#pragma unroll
            for (int m = 0; m < 4; ++m)
#pragma unroll
                for (int n = 0; n < 4; ++n)
                    if (column + 4 * x + n < view.k)
                        leading[m].add(column + 4 * x + n, sum[m][n]);
        }
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            for (int offset = 1; offset < 16; offset *= 2)
                leading[m].merge(from_lane(leading[m], offset));
            if (x != 0 || first + 4 * y + m >= count)
                continue;
            if (is_certain(leading[m], view.d))
                labels[rows[4 * y + m]] = leading[m].column;
            else
                open[atomicAdd(&open_rows, 1)] = rows[4 * y + m];
        }
        __syncthreads();
        for (int i = self / 32; i < open_rows && !__any_sync(~0u, stopped(control)); i += settle_threads / 32) {
            const float *row = view.values + std::int64_t{open[i]} * view.d;
            const Nearest best = settle_by_warp(row, view.centroids, view.k, view.d);
            if (self % 32 == 0)
                labels[open[i]] = best.label;
        }
        __syncthreads();
    }
}

// Enqueues the settling of all listed rows. in_tiles: there may be many of them; a few take less time a warp each.
template <typename T>
void settle(const Stage<T> &stage, const View<T> &view, const SettleList &list, bool in_tiles, std::int32_t *labels)
{
    const auto blocks = [&](int rows_of_block, int of_multiprocessor) {
        return blocks_for(view.n, rows_of_block, stage.context.facts.multiprocessors * of_multiprocessor);
    };
    if constexpr (std::is_same_v<T, float>)
        if (in_tiles) {
            settle_tiles_kernel<<<blocks(settle_rows, 4), settle_threads, 0, stage.stream>>>(view, stage.control, list,
                                                                                             labels);
            return launched("settle_tiles_kernel");
        }
    settle_kernel<<<blocks(8, 8), 256, 0, stage.stream>>>(view, stage.control, list, labels);
    launched("settle_kernel");
}

} // namespace
} // namespace pgkm::cuda::tensor
