// tensor_group.cuh - each row joins its nearest pivot; a counting sort brings groups together.
#pragma once

#include "assign/tensor_layout.cuh"
#include "device/quad.cuh"
#include "device/tensor_mma.cuh"

namespace pgkm::cuda::tensor {
namespace {

constexpr int group_threads = 256; // 8 warps of 16 rows

// Four values of a row from feature f on, less the reference; zeros beyond d.
template <typename T>
__device__ inline void load_four(const T *row, const T *reference, int f, int d, bool aligned, T (&v)[4])
{
    if constexpr (sizeof(T) == 4) {
        if (aligned && f + 4 <= d) {
            const float4 x = *reinterpret_cast<const float4 *>(row + f);
            const float4 c = *reinterpret_cast<const float4 *>(reference + f);
            v[0] = x.x - c.x;
            v[1] = x.y - c.y;
            v[2] = x.z - c.z;
            v[3] = x.w - c.w;
            return;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = f + i < d ? row[f + i] - reference[f + i] : T(0);
}

template <typename T>
__device__ inline void pack_four(const T (&v)[4], unsigned &low, unsigned &high, T &most)
{
    low = pack_bf16(static_cast<float>(v[0]), static_cast<float>(v[1]));
    high = pack_bf16(static_cast<float>(v[2]), static_cast<float>(v[3]));
#pragma unroll
    for (int i = 0; i < 4; ++i)
        most = max(most, v[i] < 0 ? -v[i] : v[i]);
}

// Nearest pivot from the products of one row: acc holds four of the sixteen in this lane.
__device__ inline int nearest_pivot(const float (&half_norm)[4], float a, float b, float c, float d)
{
    const int t = static_cast<int>(threadIdx.x & 3);
    const float score[4] = {half_norm[0] - a, half_norm[1] - b, half_norm[2] - c, half_norm[3] - d};
    const int index[4] = {2 * t, 2 * t + 1, 8 + 2 * t, 9 + 2 * t};
    float best = infinity();
    int group = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (score[i] < best) {
            best = score[i];
            group = index[i];
        }
    return least_in_quad(best, group);
}

// Lane (r, t) of a warp feeds rows r and r + 8 with features 4t to 4t + 3 of each sixteen: the
// k index of a product may be permuted at will, and so a lane's share is 16 bytes in memory.
template <typename T>
__global__ void __launch_bounds__(group_threads) group_kernel(View<T> view, const Control *control, Layout<T> l)
{
    __shared__ std::int32_t histogram[max_groups];
    if (block_stopped(control))
        return;
    if (threadIdx.x < max_groups)
        histogram[threadIdx.x] = 0;
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x & 31), r = lane / 4, t = lane & 3;
    const bool aligned = view.d % 4 == 0 && (reinterpret_cast<std::uintptr_t>(view.values) & 15) == 0;
    float half_norm[4];
    for (int i = 0; i < 4; ++i)
        half_norm[i] = l.groups_at->half_norm[(i / 2) * 8 + 2 * t + i % 2];
    const uint2 *pivots = reinterpret_cast<const uint2 *>(l.pivot_tile);
    T most = 0;
    const std::int64_t tiles = (view.n + 15) / 16, stride = std::int64_t{gridDim.x} * (group_threads / 32);
    for (std::int64_t w = std::int64_t{blockIdx.x} * (group_threads / 32) + threadIdx.x / 32; w < tiles; w += stride) {
        const std::int64_t row = w * 16 + r;
        const T *first = view.values + min(row, view.n - 1) * view.d;
        const T *second = view.values + min(row + 8, view.n - 1) * view.d;
        float acc[2][4] = {};
#pragma unroll 4
        for (int f = 0; f < view.d; f += 16) {
            T a[4], b[4];
            load_four(first, view.centroids, f + 4 * t, view.d, aligned, a);
            load_four(second, view.centroids, f + 4 * t, view.d, aligned, b);
            unsigned x[4];
            pack_four(a, x[0], x[2], most);
            pack_four(b, x[1], x[3], most);
            const uint2 near = pivots[(f / 16 * max_groups + r) * 4 + t];
            const uint2 far = pivots[(f / 16 * max_groups + 8 + r) * 4 + t];
            multiply_bf16(acc[0], x, near.x, near.y);
            multiply_bf16(acc[1], x, far.x, far.y);
        }
        const int one = nearest_pivot(half_norm, acc[0][0], acc[0][1], acc[1][0], acc[1][1]);
        const int two = nearest_pivot(half_norm, acc[0][2], acc[0][3], acc[1][2], acc[1][3]);
        if (t < 2 && row + 8 * t < view.n) {
            l.group[row + 8 * t] = static_cast<std::uint8_t>(t == 0 ? one : two);
            atomicAdd(&histogram[t == 0 ? one : two], 1);
        }
    }
    most = max_lanes(most);
    if (lane == 0)
        raise(&l.groups_at->box, static_cast<double>(most));
    __syncthreads();
    if (threadIdx.x < max_groups && histogram[threadIdx.x] != 0)
        atomicAdd(&l.groups_at->count[threadIdx.x], histogram[threadIdx.x]);
}

// One thread: where each group starts, and the power of two that brings all centred values
// below 2^14, so that no fp16 overflows.
template <typename T>
__global__ void scale_kernel(const Control *control, Layout<T> l)
{
    if (stopped(control))
        return;
    Groups *groups = l.groups_at;
    std::int32_t sum = 0;
    for (int g = 0; g < max_groups; ++g) {
        groups->offset[g] = sum;
        sum += groups->count[g];
    }
    groups->offset[max_groups] = sum;
    // |x - p| <= |x - c0| + |p - c0|, and a pivot is a mean of centroids.
    const double box = (__longlong_as_double(static_cast<long long>(groups->box)) +
                        2 * __longlong_as_double(static_cast<long long>(groups->reach))) *
                       1.001;
    groups->usable = box < (sizeof(T) == 4 ? 0x1p126 : 0x1p600);
    const int exponent = groups->usable ? 14 - upper_exponent(box) : 0;
    groups->scale = power_of_two(sizeof(T) == 4 ? min(max(exponent, -120), 120) : min(max(exponent, -900), 400));
}

// Writes row numbers group by group; the order inside a group does not matter.
template <typename T>
__global__ void __launch_bounds__(1024) scatter_kernel(const Control *control, Layout<T> l, std::int32_t n)
{
    __shared__ std::int32_t histogram[max_groups];
    __shared__ std::int32_t base[max_groups];
    if (block_stopped(control))
        return;
    constexpr int each = 4;
    if (threadIdx.x < max_groups)
        histogram[threadIdx.x] = 0;
    __syncthreads();
    const std::int32_t first =
        static_cast<std::int32_t>(blockIdx.x) * 1024 * each + static_cast<std::int32_t>(threadIdx.x);
    int group[each], rank[each];
    for (int i = 0; i < each; ++i) {
        const std::int32_t row = first + i * 1024;
        group[i] = row < n ? l.group[row] : 0;
        rank[i] = row < n ? atomicAdd(&histogram[group[i]], 1) : 0;
    }
    __syncthreads();
    if (threadIdx.x < max_groups) {
        const int mine = histogram[threadIdx.x];
        base[threadIdx.x] =
            l.groups_at->offset[threadIdx.x] + (mine == 0 ? 0 : atomicAdd(&l.groups_at->cursor[threadIdx.x], mine));
    }
    __syncthreads();
    for (int i = 0; i < each; ++i)
        if (first + i * 1024 < n)
            l.order[base[group[i]] + rank[i]] = first + i * 1024;
}

} // namespace
} // namespace pgkm::cuda::tensor
