// tensor_table.cuh - for each pivot that has rows, the centroids as fp16 columns in the order of |c'|.
//
// A row at distance rho from its pivot has its nearest centroid within 2 rho + min_j |c'_j| of
// the pivot (triangle inequality), so that the filter stops after a prefix of the columns. A
// counting sort by quarter octave is order enough.
#pragma once

#include "assign/tensor_layout.cuh"

namespace pgkm::cuda::tensor {
namespace {

// Bounds of |c'| from |c~|^2 and the residual, in spite of the float32 roundings.
__device__ inline float shortest(float norm, float residual)
{
    return fmaxf((sqrtf(norm) * (1.0f - 0x1p-20f) - residual) * (1.0f - 0x1p-20f), 0.0f);
}
__device__ inline float longest(float norm, float residual)
{
    return (sqrtf(norm) * (1.0f + 0x1p-20f) + residual) * (1.0f + 0x1p-20f);
}

// How far a centroid went since the last assignment, rounded up, in the scaled unit of the columns; notes where it is.
template <typename T>
__device__ inline void note_drift(const View<T> &view, const Layout<T> &l, int j)
{
    const T scale = static_cast<T>(l.rows.facts->scale);
    float square = 0.0f;
    for (int f = static_cast<int>(threadIdx.x & 31); f < view.d; f += 32) {
        const std::int64_t at = std::int64_t{j} * view.d + f;
        const T now = view.centroids[at];
        const float away = centred(now, l.last[at], scale);
        square = fmaf(away, away, square);
        l.last[at] = now;
    }
    const float length = sqrtf(sum_lanes(square)) * (1.0f + 0x1p-10f) + 0x1p-60f;
    if ((threadIdx.x & 31) == 0)
        l.drift[j] = length < 0x1p100f ? length : infinity();
}

// One warp per centroid and pivot: norm and residual of the column to be.
template <typename T>
__global__ void facts_kernel(View<T> view, const Control *control, Layout<T> l)
{
    if (stopped(control))
        return;
    const int j = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32), g = static_cast<int>(blockIdx.y);
    if (j >= view.k || (g > 0 && l.rows.facts->count[g] == 0))
        return;
    const T scale = static_cast<T>(l.rows.facts->scale);
    const T *mine = view.centroids + std::int64_t{j} * view.d, *pivot = l.rows.pivots + g * view.d;
    const Rounded all = round_by_warp(mine, pivot, scale, view.d, view.d, [](int, __half) {});
    const double norm = all.square;
    const float lost = all.rest, length = static_cast<float>(sqrt(norm));
    // Besides what fp16 loses: the 2^-23 that centred() may be off.
    const float residual = (sqrtf(lost) * (1.0f + 0x1p-10f) + (length + sqrtf(lost)) * 0x1p-22f);
    if ((threadIdx.x & 31) == 0)
        l.facts[std::int64_t{g} * l.columns + j] = {static_cast<float>(norm), residual};
    if (l.labels != nullptr && g == 0)
        note_drift(view, l, j);
    // Prepared rows keep their scale: centroids may have moved beyond it.
    if (!(norm < 0x1p80) && (threadIdx.x & 31) == 0)
        atomicExch(&l.head->overflow, 1);
}

// Inclusive prefix over the buckets in shared memory; the whole block takes part.
template <typename V, typename Join>
__device__ inline void prefix(V (&values)[buckets], Join &&join)
{
    __syncthreads();
    for (int offset = 1; offset < buckets; offset <<= 1) {
        const int b = static_cast<int>(threadIdx.x);
        V mine = V(0);
        if (b < buckets && b >= offset)
            mine = values[b - offset];
        __syncthreads();
        if (b < buckets && b >= offset)
            values[b] = join(values[b], mine);
        __syncthreads();
    }
}

// One thread, before each assignment under a lasting order: whether it shall note gaps (tensor_limits.cuh).
__device__ inline void choose_tracking(Progress &progress)
{
    if (progress.resting > 0) {
        --progress.resting;
        progress.tracked = 0;
    } else if (progress.tracked >= 2 && 32 * progress.left_out < progress.all) {
        progress.rest = min(2 * progress.rest + 7, 63);
        progress.resting = progress.rest - 1;
        progress.tracked = 0;
    } else {
        progress.rest = progress.tracked >= 2 ? 0 : progress.rest;
        progress.tracked = min(progress.tracked + 1, 2);
    }
    progress.left_out = progress.all = 0;
}

// Block g of 1024: positions of the columns, by |c'| or as they once were ordered, and the bounds for every prefix of
// buckets.
template <typename T>
__global__ void __launch_bounds__(1024) order_kernel(const Control *control, Layout<T> l, int k)
{
    __shared__ std::int32_t end[buckets];
    __shared__ std::int32_t next[buckets];
    __shared__ float residual[buckets];
    __shared__ float radius[buckets];
    __shared__ int nearest;
    const int g = static_cast<int>(blockIdx.x), i = static_cast<int>(threadIdx.x);
    if (block_stopped(control) || (g > 0 && l.rows.facts->count[g] == 0))
        return;
    const float2 *facts = l.facts + std::int64_t{g} * l.columns;
    const bool ordered = l.labels != nullptr && l.progress->ordered;
    if (i < buckets) {
        end[i] = 0;
        residual[i] = radius[i] = 0.0f;
    }
    if (i == 0)
        nearest = __float_as_int(infinity());
    if (i == 0 && g == 0 && ordered) // gaps belong to bundles, which else hold other columns each time
        choose_tracking(*l.progress);
    __syncthreads();
    for (int j = i; j < k; j += 1024) {
        const float2 c = facts[j];
        const float far = longest(c.x, c.y);
        const int b = bucket_of(shortest(c.x, c.y));
        atomicAdd(&end[b], 1);
        // Lengths are non-negative, so that their bits compare as integers.
        atomicMax(reinterpret_cast<int *>(&residual[b]), __float_as_int(c.y));
        atomicMax(reinterpret_cast<int *>(&radius[b]), __float_as_int(far));
        atomicMin(&nearest, __float_as_int(far));
    }
    prefix(end, [](int a, int b) { return a + b; });
    prefix(residual, [](float a, float b) { return fmaxf(a, b); });
    prefix(radius, [](float a, float b) { return fmaxf(a, b); });
    if (i < buckets) {
        next[i] = i == 0 ? 0 : end[i - 1];
        l.head->bucket_end[g][i] = ordered ? k : end[i];
        l.head->residual[g][i] = residual[i];
        l.head->radius[g][i] = radius[i];
    }
    if (i == 0)
        l.head->nearest[g] = __int_as_float(nearest);
    __syncthreads();
    for (int j = i; j < l.columns; j += 1024) {
        int position = j;
        if (j < k)
            position = ordered ? l.stable[j] : atomicAdd(&next[bucket_of(shortest(facts[j].x, facts[j].y))], 1);
        l.centroid[std::int64_t{g} * l.columns + position] = j;
        l.position[std::int64_t{g} * l.columns + j] = position;
    }
}

// One warp per column: its fp16 values; columns beyond k are unreachable. A block per bundle, whose facts it notes.
template <typename T>
__global__ void __launch_bounds__(1024) fill_kernel(View<T> view, const Control *control, Layout<T> l)
{
    __shared__ Bundle parts[bundle_size];
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x & 31);
    const int position = static_cast<int>(blockIdx.x) * bundle_size + warp, g = static_cast<int>(blockIdx.y);
    if (block_stopped(control) || (g > 0 && l.rows.facts->count[g] == 0))
        return;
    const std::int64_t cell = std::int64_t{g} * l.columns + position;
    const int j = l.centroid[cell];
    const T scale = static_cast<T>(l.rows.facts->scale);
    const T *mine = view.centroids + std::int64_t{j} * view.d, *pivot = l.rows.pivots + g * view.d;
    __half *column = l.table + cell * l.d32;
    for (int f = lane; f < l.d32; f += 32)
        column[f] = __float2half_rn(j < view.k && f < view.d ? centred(mine[f], pivot[f], scale) : 0.0f);
    if (lane == 0) {
        const float2 facts = j < view.k ? l.facts[std::int64_t{g} * l.columns + j] : float2{infinity(), 0.0f};
        const float length = j < view.k ? sqrtf(facts.x) : 0.0f;
        l.column[cell] = {facts.x, (length + residual_weight * facts.y) * (1.0f + 0x1p-20f)};
        l.residual[cell] = facts.y;
        parts[warp] = {infinity(), 0.0f, 0.0f, 0.0f};
        if (l.labels != nullptr && j < view.k)
            parts[warp] = {shortest(facts.x, facts.y), longest(facts.x, facts.y), facts.y, l.drift[j]};
    }
    __syncthreads();
    if (warp != 0 || l.labels == nullptr)
        return;
    Bundle all = parts[lane];
    all = {join_lanes(all.nearest, [](float a, float b) { return fminf(a, b); }), max_lanes(all.radius),
           max_lanes(all.residual), max_lanes(all.drift)};
    if (lane == 0)
        l.bundle[std::int64_t{g} * l.bundles + blockIdx.x] = all;
}

} // namespace
} // namespace pgkm::cuda::tensor
