// tensor_limits.cuh - the limits of rows: scores that the score of a row's nearest centroid cannot exceed (tensor.cu).
//
// aim_kernel sets a row's first limit from its last label. A block takes a tile of rows of one pivot, eight lanes a
// row: they multiply the row, as fp16, by the column of its label. Blocks share nothing.
#pragma once

#include "assign/tensor_passes.cuh"

namespace pgkm::cuda::tensor {
namespace {

// The largest widened score that a nearest centroid can have beside a column with this one: threshold_of() with the
// largest length, weight and residual of all columns wanted.
__device__ inline float limit_of(float score, const Slack &slack, float residual)
{
    const float square = fmaxf(score + slack.square, 0.0f);
    return score + ((slack.fixed + 2.0f * residual * sqrtf(square) + 0x1p-22f * square) * (1.0f + 0x1p-10f) + 0x1p-60f);
}

__device__ inline Slack slack_of(const TileFacts &tile, float square, float lost, float radius, int d)
{
    const float length = sqrtf(square) + lost, residual = tile.residual;
    const float gamma = 2.0f * static_cast<float>((d + 15) / 16 * 16) * 0x1p-22f;
    const float e = gamma * length * radius + 0x1p-22f * (radius * radius + 2.0f * length * radius);
    const float widened = tile.widening * (radius + residual_weight * residual) * (1.0f + 0x1p-18f);
    return {widened + 2.0f * lost * radius + (2.0f * lost + residual) * residual + e + 0x1p-22f * lost * lost,
            (widened + square + e) * (1.0f + 0x1p-20f)};
}

// A tile's facts and its rows' first limits; a block per tile.
template <typename T, int Rows>
__global__ void __launch_bounds__(256)
    aim_kernel(View<T> view, const Control *control, Layout<T> l, const std::int32_t *labels)
{
    __shared__ RowFacts<Rows> facts;
    if (block_stopped(control))
        return;
    const TileMap map(l.groups_at->count, l.groups_at->offset, Rows);
    const tensor::Rows rows = map.at(static_cast<int>(blockIdx.x));
    const int at = static_cast<int>(threadIdx.x), g = rows.group;
    if (g < 0) {
        if (at == 0)
            l.tiles[blockIdx.x].group = -1;
        return;
    }
    if (at == 0)
        facts.furthest = facts.widening = 0;
    __syncthreads();
    const bool there = at < Rows && at < rows.count;
    if (there) {
        const std::int32_t place = rows.first + at;
        const float2 sums = l.measures[place];
        note_row(facts, *l.head, g, view.d, at, l.order[place], sums.x, sums.y);
    }
    __syncthreads();
    const int bucket = bucket_of(__int_as_float(facts.furthest));
    const bool usable = l.groups_at->usable && !l.head->overflow;
    const TileFacts tile = {g,
                            rows.first,
                            min(rows.count, Rows),
                            usable ? l.head->bucket_end[g][bucket] : 0,
                            __int_as_float(facts.widening),
                            l.head->residual[g][bucket]};
    if (at == 0)
        l.tiles[blockIdx.x] = tile;
    if (there)
        l.slack[tile.first + at] = slack_of(tile, facts.square[at], facts.lost[at], l.head->radius[g][bucket], view.d);
    __shared__ std::int32_t position[Rows];
    if (there) {
        const std::int32_t label = labels[facts.row[at]];
        position[at] = l.position[std::int64_t{g} * l.columns + (label >= 0 && label < view.k ? label : 0)];
    }
    __syncthreads();
    // Eight lanes a row.
    const int lane = at & 7, pieces = l.d8 / 8;
    for (int r = at / 8; r < Rows; r += 32) {
        const std::int32_t place = tile.first + min(r, tile.count - 1);
        const std::int64_t cell = std::int64_t{g} * l.columns + position[min(r, tile.count - 1)];
        const uint4 *row = reinterpret_cast<const uint4 *>(l.halves + std::int64_t{place} * l.d8);
        const uint4 *column = reinterpret_cast<const uint4 *>(l.table + cell * l.d32);
        float dot = 0.0f;
#pragma unroll 4
        for (int p = lane; p < pieces; p += 8) {
            const uint4 a = row[p], b = column[p];
            const auto add = [&](unsigned x, unsigned y) {
                const float2 u = __half22float2(*reinterpret_cast<const __half2 *>(&x)),
                             v = __half22float2(*reinterpret_cast<const __half2 *>(&y));
                dot = fmaf(u.x, v.x, fmaf(u.y, v.y, dot));
            };
            add(a.x, b.x);
            add(a.y, b.y);
            add(a.z, b.z);
            add(a.w, b.w);
        }
        for (int offset = 4; offset > 0; offset >>= 1)
            dot += __shfl_xor_sync(~0u, dot, offset);
        if (lane == 0 && r < tile.count) {
            const Column winner = l.column[cell];
            const float score = fmaf(dot, -2.0f, fmaf(-tile.widening, winner.weight, winner.norm));
            const float limit = threshold_of(facts, r, score, winner, l.residual[cell], view.d);
            l.threshold[place] = limit < 0x1p100f ? limit : infinity();
        }
    }
}

} // namespace
} // namespace pgkm::cuda::tensor
