// tensor_limits.cuh - what the filter on a Hopper may leave out: limits of rows, and gaps of tiles.
//
// The limit of a row is a score that the score of its nearest centroid cannot exceed (tensor.cu).
//
// The gap of a tile of rows and a bundle of columns is a lower bound of |x - c_m| - |x - c_x| over the tile's rows x,
// with their labels' centroids c_x, and over the bundle's centroids m (the bound of Hamerly 2010 with the groups of
// Ding et al. 2015, for tiles). Where it is positive the bundle holds no nearest centroid, and is left out. The filter
// notes the gaps of the bundles that it multiplies. Then centroids move: the distances to one change by at most as much
// as it went, so a gap loses the farthest way of a centroid of the bundle and the farthest of the tile's labels'
// centroids. Lengths are in the scaled unit of the columns, in which they only differ by a factor. A gap is noted as
//   |x' - c'_m| >= |u_m| - |a| - |b_m|,   |u_m|^2 >= |x~|^2 + (S_m - w L_m) - 2^-22 |c~_m|^2:
// S_m is less than s_m - |x~|^2 by e_m at most, of which w L_m covers all but what a radius beyond C adds. With any
// column n of which the score is known,
//   |x' - c'_x| <= |x' - c'_n| <= |u_n| + |a| + |b_n|,   |u_n|^2 <= |x~|^2 + S_n + e_n;
// c_x is nearest by the contract's distance, which a factor of 1 + 2^-18 covers, as it does the roundings of both
// roots; their difference, and all that gaps lose, are rounded down. The bundles of the tile's own labels have no
// positive gap: they are multiplied, or out of reach.
//
// Gaps are noted once the columns have their lasting order (tensor_order.cuh), under which a bundle keeps its
// centroids. Until then all of them are 0, which leaves nothing out: in the first assignment, and throughout a fit
// whose rows another one uses too, so that they were not ordered.
//
// aim_kernel lists the bundles that each tile must multiply, those of its rows' labels first, for the limits to be low
// from the start. A block takes a tile of rows; blocks share nothing. Assignments that note gaps cost a little more
// than others: where less than a thirty-second is left out, the next 7, 21, 49, and then 63 do not.
#pragma once

#include "assign/tensor_passes.cuh"

namespace pgkm::cuda::tensor {
namespace {

// Bounds from the least score of a row's columns, whichever column n has it. They are those of threshold_of(), with
// |c~_n| <= r: the radius of all columns wanted, and by the score itself at most |x~| + |u_n|. fp16 loses 2^-11 of a
// value or, where it is subnormal, 2^-25: |b_n| as facts_kernel() has it is at most B(r) = 2^-11 (1 + 2^-8) r + sqrt(d)
// 2^-24.
struct Limit {
    float score; // of the nearest centroid at most
    float own;   // what gaps lose: the row's distance to its label's centroid at most, and |a|
};

struct Margins {
    float widening, radius, residual; // of the tile, and of its columns
    float gamma, speck;               // 2 d 2^-22, sqrt(d) 2^-24

    __device__ Margins(const TileFacts &tile, int d)
        : widening(tile.widening * (1.0f + 0x1p-18f)), radius(tile.radius), residual(tile.residual),
          gamma(2.0f * static_cast<float>((d + 15) / 16 * 16) * 0x1p-22f),
          speck(sqrtf(static_cast<float>(d)) * 0x1.01p-24f)
    {
    }
    __device__ float lost_of(float r) const { return fminf(residual, fmaf(0x1.02p-11f, r, speck)); }
    // e_n and w L_n.
    __device__ float error(float length, float r) const
    {
        return gamma * length * r + 0x1p-22f * (r * r + 2.0f * length * r);
    }
    __device__ float widened(float r) const { return widening * (r + residual_weight * lost_of(r)); }
    __device__ float square(float score, const Slack &row, float r) const
    {
        return fmaxf(score + (row.square + widened(r) + error(row.length, r)) * (1.0f + 0x1p-20f), 0.0f);
    }
    __device__ Limit limit(float score, const Slack &row) const
    {
        const float r = fminf(radius, (row.length + sqrtf(square(score, row, radius))) * (1.0f + 0x1p-18f));
        const float far = square(score, row, r), root = sqrtf(far), residual = lost_of(r);
        const float margin = widened(r) + 2.0f * row.lost * r + (2.0f * (root + row.lost) + residual) * residual +
                             error(row.length, r) + 0x1p-22f * (far + row.lost * row.lost);
        return {score + (margin * (1.0f + 0x1p-10f) + 0x1p-60f),
                (root * (1.0f + 0x1p-17f) + (2.0f * row.lost + residual)) * (1.0f + 0x1p-20f)};
    }
    // Bits of a gap, not below 0; `least` is the least widened score of the bundle. |b_m| <= B(|x~| + |u_m|). The root
    // is off by 2^-22 at most.
    __device__ int gap_bits(float least, float own, const Slack &row) const
    {
        float root;
        asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaxf(least + row.low, 0.0f)));
        const float lost = fmaf(0x1.03p-11f, root + row.length, speck * (1.0f + 0x1p-10f));
        return __float_as_int(fmaxf(__fsub_rd(__fsub_rd(root * (1.0f - 0x1p-18f), lost), own), 0.0f));
    }
};

__device__ inline Slack slack_of(float square, float lost, float radius)
{
    // The lengths were widened by 2^-12 of themselves.
    return {square, sqrtf(square) * (1.0f + 0x1p-20f) + lost, lost,
            square * (1.0f - 0x1p-11f) - 0x1.01p-22f * radius * radius};
}

// A tile's facts, its rows' slack, and the list of its bundles; a block per tile.
template <typename T, int Rows>
__global__ void __launch_bounds__(256) aim_kernel(View<T> view, const Control *control, Layout<T> l)
{
    constexpr int own_words = 2048;
    __shared__ RowFacts<Rows> facts;
    __shared__ unsigned own[own_words]; // bundles of the rows' labels, as bits
    __shared__ int drift, radius, residual, count, left_out;
    if (block_stopped(control))
        return;
    const TileMap map(l.rows.facts->count, l.rows.facts->offset, Rows);
    const tensor::Rows rows = map.at(static_cast<int>(blockIdx.x));
    const int at = static_cast<int>(threadIdx.x), g = rows.group;
    if (g < 0) {
        if (at == 0)
            l.tiles[blockIdx.x].group = -1;
        return;
    }
    if (at == 0)
        facts.furthest = facts.widening = drift = radius = residual = count = left_out = 0;
    for (int i = at; i < min((l.bundles + 31) / 32, own_words); i += 256)
        own[i] = 0;
    __syncthreads();
    const bool there = at < Rows && at < rows.count;
    if (there) {
        const std::int32_t place = rows.first + at, row = l.rows.order[place], label = l.labels[row];
        const float2 sums = l.rows.measures[place];
        note_row(facts, *l.head, g, view.d, at, row, sums.x, sums.y);
        const bool known = label >= 0 && label < view.k;
        atomicMax(&drift, __float_as_int(known ? l.drift[label] : infinity()));
        const int bundle = known ? l.position[std::int64_t{g} * l.columns + label] / bundle_size : 0;
        if (known && bundle / 32 < own_words)
            atomicOr(&own[bundle / 32], 1u << bundle % 32);
    }
    __syncthreads();
    const bool usable = l.rows.facts->usable && !l.head->overflow, tracks = l.progress->tracked > 0;
    const float reach = __int_as_float(facts.furthest), way = __int_as_float(drift);
    const std::int64_t cells = std::int64_t{blockIdx.x} * l.bundles;
    for (int pass = 0; pass < 2; ++pass) {
        for (int b = at; b < l.bundles; b += 256) {
            const bool first = b / 32 < own_words && (own[b / 32] >> b % 32 & 1) != 0;
            if (first != (pass == 0))
                continue;
            const Bundle bundle = l.bundle[std::int64_t{g} * l.bundles + b];
            float gap = 0.0f;
            if (l.gaps != nullptr)
                gap = __fsub_rd(l.gaps[cells + b], __fadd_ru(bundle.drift, way));
            const bool apart = usable && gap > 0x1p-60f; // false for NaN, too
            const bool wanted = usable && !apart && bundle.nearest <= reach;
            if (l.gaps != nullptr)
                l.gaps[cells + b] = wanted && tracks ? infinity() : apart ? gap : 0.0f;
            if (apart)
                atomicAdd(&left_out, 1);
            if (!wanted)
                continue;
            l.wanted[cells + atomicAdd(&count, 1)] = b;
            atomicMax(&radius, __float_as_int(bundle.radius));
            atomicMax(&residual, __float_as_int(bundle.residual));
        }
        __syncthreads();
    }
    const TileFacts tile = {g,
                            rows.first,
                            min(rows.count, Rows),
                            count,
                            __int_as_float(facts.widening),
                            __int_as_float(radius),
                            __int_as_float(residual)};
    if (at == 0) {
        l.tiles[blockIdx.x] = tile;
        atomicAdd(&l.progress->left_out, static_cast<unsigned long long>(left_out));
        atomicAdd(&l.progress->all, static_cast<unsigned long long>(l.bundles));
    }
    if (there)
        l.slack[tile.first + at] = slack_of(facts.square[at], facts.lost[at], tile.radius);
}

} // namespace
} // namespace pgkm::cuda::tensor
