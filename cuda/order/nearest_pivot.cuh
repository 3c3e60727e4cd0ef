// nearest_pivot.cuh - the nearest pivot of each row, and a counting sort that brings the rows of a pivot together.
//
// nearest_kernel: a warp takes 16 rows; lane (r, t) feeds rows r and r + 8 with features 4 t to 4 t + 3 of each
// sixteen: the k index of a product may be permuted at will, and so a lane's share is 16 bytes in memory. Products with
// the pivots, all less the mean of some rows, are taken by the tensor cores in bfloat16: that rounding may send a row
// to a pivot that is not quite the nearest, which is right, too. A radius is a bound, so that a row's distance from its
// pivot is then computed in float32 from the values themselves. scatter_kernel: a block writes its rows' numbers to
// places that it reserves for each pivot.
#pragma once

#include "device/exact.cuh"
#include "device/load_row.cuh"
#include "device/quad.cuh"
#include "device/tensor_mma.cuh"
#include "order/ordered_rows.hpp"

namespace pgkm::cuda {
namespace {

constexpr int nearest_threads = 256; // 8 warps of 16 rows

// Four values of a row from feature f on, less those of `from`; zeros beyond d.
template <typename T>
__device__ inline void load_apart(const T *row, const T *from, int f, int d, bool aligned, T (&v)[4])
{
    T c[4];
    load_four(row, f, d, aligned, v);
    load_four(from, f, d, aligned, c);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] -= c[i];
}

template <typename T>
__device__ inline void pack_four(const T (&v)[4], unsigned &low, unsigned &high, T &most)
{
    low = tensor::pack_bf16(static_cast<float>(v[0]), static_cast<float>(v[1]));
    high = tensor::pack_bf16(static_cast<float>(v[2]), static_cast<float>(v[3]));
#pragma unroll
    for (int i = 0; i < 4; ++i)
        most = max(most, v[i] < 0 ? -v[i] : v[i]);
}

// Nearest pivot from the products of one row: this lane holds four of the sixteen.
__device__ inline int nearest_pivot(const float (&half_norm)[4], float a, float b, float c, float d)
{
    const int t = static_cast<int>(threadIdx.x & 3);
    const float score[4] = {half_norm[0] - a, half_norm[1] - b, half_norm[2] - c, half_norm[3] - d};
    const int index[4] = {2 * t, 2 * t + 1, 8 + 2 * t, 9 + 2 * t};
    float best = INFINITY;
    int pivot = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (score[i] < best) {
            best = score[i];
            pivot = index[i];
        }
    return least_in_quad(best, pivot);
}

// The squared distance of a row from its pivot, for all lanes of its quad; features as above.
template <typename T>
__device__ inline float square_by_quad(const T *row, const T *pivot, int d, bool aligned)
{
    float square = 0.0f;
    for (int f = 4 * static_cast<int>(threadIdx.x & 3); f < d; f += 16) {
        T v[4];
        load_apart(row, pivot, f, d, aligned, v);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            square = fmaf(static_cast<float>(v[i]), static_cast<float>(v[i]), square);
    }
    return sum_lanes<4>(square);
}

template <typename T>
__global__ void __launch_bounds__(nearest_threads) nearest_kernel(OrderedRows<T> rows)
{
    __shared__ std::int32_t histogram[most_pivots];
    __shared__ std::uint32_t squares[most_pivots];
    if (threadIdx.x < most_pivots)
        histogram[threadIdx.x] = squares[threadIdx.x] = 0;
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x & 31), r = lane / 4, t = lane & 3, d = rows.d;
    const bool aligned = loads_aligned(rows.values, d);
    float half_norm[4];
    for (int i = 0; i < 4; ++i)
        half_norm[i] = rows.facts->half_norm[(i / 2) * 8 + 2 * t + i % 2];
    const uint2 *pivots = reinterpret_cast<const uint2 *>(rows.tile);
    T most = 0;
    const std::int64_t tiles = (rows.n + 15) / 16, stride = std::int64_t{gridDim.x} * (nearest_threads / 32);
    for (std::int64_t w = std::int64_t{blockIdx.x} * (nearest_threads / 32) + threadIdx.x / 32; w < tiles;
         w += stride) {
        const std::int64_t row = w * 16 + r;
        const T *first = rows.values + min(row, rows.n - 1) * d, *second = rows.values + min(row + 8, rows.n - 1) * d;
        float acc[2][4] = {};
#pragma unroll 4
        for (int f = 0; f < d; f += 16) {
            T a[4], b[4];
            load_apart(first, rows.mean, f + 4 * t, d, aligned, a);
            load_apart(second, rows.mean, f + 4 * t, d, aligned, b);
            unsigned x[4];
            pack_four(a, x[0], x[2], most);
            pack_four(b, x[1], x[3], most);
            const uint2 near = pivots[(f / 16 * most_pivots + r) * 4 + t];
            const uint2 far = pivots[(f / 16 * most_pivots + 8 + r) * 4 + t];
            tensor::multiply_bf16(acc[0], x, near.x, near.y);
            tensor::multiply_bf16(acc[1], x, far.x, far.y);
        }
        const int one = nearest_pivot(half_norm, acc[0][0], acc[0][1], acc[1][0], acc[1][1]);
        const int two = nearest_pivot(half_norm, acc[0][2], acc[0][3], acc[1][2], acc[1][3]);
        float square[2] = {};
        if (d <= radius_d) {
            square[0] = square_by_quad(first, rows.pivots + one * d, d, aligned);
            square[1] = square_by_quad(second, rows.pivots + two * d, d, aligned);
        }
        if (t < 2 && row + 8 * t < rows.n) {
            const int mine = t == 0 ? one : two;
            rows.of_row[row + 8 * t] = static_cast<std::uint8_t>(mine);
            atomicAdd(&histogram[mine], 1);
            const std::uint32_t bits = __float_as_uint(t == 0 ? square[0] : square[1]);
            if (bits > squares[mine])
                atomicMax(&squares[mine], bits);
        }
    }
    // A NaN's bits lie above infinity's: it makes the box unusable, as it should.
    const double box = static_cast<double>(max_lanes(most));
    if (lane == 0)
        atomicMax(&rows.facts->box, static_cast<unsigned long long>(__double_as_longlong(box)));
    __syncthreads();
    if (threadIdx.x < most_pivots && histogram[threadIdx.x] != 0) {
        atomicAdd(&rows.facts->count[threadIdx.x], histogram[threadIdx.x]);
        atomicMax(&rows.facts->square[threadIdx.x], squares[threadIdx.x]);
    }
}

// One thread: where each pivot's rows begin, radii and the scale.
template <typename T>
__global__ void lay_out_kernel(OrderedRows<T> rows)
{
    OrderFacts &facts = *rows.facts;
    // Far above the error (d + 4) 2^-24 of a distance computed in float32 from d terms.
    const float slack = 1e-5f + static_cast<float>(rows.d) * 0x1p-22f;
    std::int32_t place = 0;
    for (int p = 0; p < most_pivots; ++p) {
        facts.offset[p] = place;
        place += facts.count[p];
        // 2^-60: squares of distances below it are lost in float32.
        facts.radius[p] = sqrtf(__uint_as_float(facts.square[p])) * (1.0f + 2.0f * slack) + 0x1p-60f;
    }
    facts.offset[most_pivots] = place;
    // |x - p| <= |x - mean| + |p - mean|, and a pivot is a mean of rows.
    const double box = 2.0 * __longlong_as_double(static_cast<long long>(facts.box)) * 1.001;
    facts.usable = box < (sizeof(T) == 4 ? 0x1p126 : 0x1p600);
    const int exponent = facts.usable ? 14 - upper_exponent(box) : 0;
    facts.scale = power_of_two(sizeof(T) == 4 ? min(max(exponent, -120), 120) : min(max(exponent, -900), 400));
}

// Row numbers, pivot by pivot; the order within a pivot is near that of the rows.
template <typename T>
__global__ void __launch_bounds__(1024) scatter_kernel(OrderedRows<T> rows)
{
    __shared__ std::int32_t histogram[most_pivots];
    __shared__ std::int32_t base[most_pivots];
    constexpr int each = 4;
    const std::int64_t first = std::int64_t{blockIdx.x} * 1024 * each + threadIdx.x;
    if (rows.facts->pivots == 1) {
        for (int i = 0; i < each; ++i)
            if (const std::int64_t row = first + i * 1024; row < rows.n)
                rows.order[row] = static_cast<std::int32_t>(row);
        return;
    }
    if (threadIdx.x < most_pivots)
        histogram[threadIdx.x] = 0;
    __syncthreads();
    int pivot[each], rank[each];
    for (int i = 0; i < each; ++i) {
        const std::int64_t row = first + i * 1024;
        pivot[i] = row < rows.n ? rows.of_row[row] : 0;
        rank[i] = row < rows.n ? atomicAdd(&histogram[pivot[i]], 1) : 0;
    }
    __syncthreads();
    if (threadIdx.x < most_pivots) {
        const int mine = histogram[threadIdx.x];
        base[threadIdx.x] =
            rows.facts->offset[threadIdx.x] + (mine == 0 ? 0 : atomicAdd(&rows.facts->cursor[threadIdx.x], mine));
    }
    __syncthreads();
    for (int i = 0; i < each; ++i)
        if (const std::int64_t row = first + i * 1024; row < rows.n)
            rows.order[base[pivot[i]] + rank[i]] = static_cast<std::int32_t>(row);
}

} // namespace
} // namespace pgkm::cuda
