// tensor_filter.cuh - scores, and the threshold of what may be nearest.
#pragma once

#include "assign/tensor_stream.cuh"
#include "assign/tensor_table.cuh"

namespace pgkm::cuda::tensor {
namespace {

// A block's shared memory; the leaders of the warps take the stages' place at the end.
template <typename S>
struct Block {
    static constexpr int rows = S::rows;
    char *tile;
    char *ring;
    RowFacts<rows> *facts;
    Found<rows> *found;

    static constexpr std::size_t bytes(int d, bool collects)
    {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(padded_features(d)) * 2 +
               stages * S::stage_bytes + sizeof(RowFacts<rows>) + (collects ? sizeof(Found<rows>) : 0);
    }
    __device__ Block(char *memory, int d)
        : tile(memory), ring(tile + rows * padded_features(d) * 2),
          facts(reinterpret_cast<RowFacts<rows> *>(ring + stages * S::stage_bytes)),
          found(reinterpret_cast<Found<rows> *>(facts + 1))
    {
    }
};

// Calls take(which of the lane's four rows, column, low) for every product in acc: the score
// |c~|^2 - 2 acc less the column's weight times the tile's widening. Strips from column
// `wanted` on are left out.
template <typename S, typename Take>
__device__ inline void each_score(const Column *columns, int first, int wanted, float widening,
                                  const float (&acc)[2][S::strips][4], Take &&take)
{
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
    for (int strip = 0; strip < S::strips; ++strip) {
        if (first + warp % S::warp_columns * S::width + strip * 8 >= wanted)
            return;
        const int column = first + warp % S::warp_columns * S::width + strip * 8 + 2 * (lane & 3);
        const float4 pair = *reinterpret_cast<const float4 *>(columns + column);
        const float left = fmaf(-widening, pair.y, pair.x), right = fmaf(-widening, pair.w, pair.z);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            take(i, column, fmaf(acc[i / 2][strip][i % 2 * 2], -2.0f, left));
            take(i, column + 1, fmaf(acc[i / 2][strip][i % 2 * 2 + 1], -2.0f, right));
        }
    }
}

// Row of the tile that score i of this lane belongs to.
template <typename S>
__device__ inline int tile_row(int i)
{
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    return warp / S::warp_columns * 32 + i / 2 * 16 + i % 2 * 8 + lane / 4;
}

// The largest widened score that a nearest centroid of this row can have, from the leading
// column; NaN or infinite where the bounds do not hold. Terms as in tensor.cu.
template <int Rows>
__device__ inline float threshold_of(const RowFacts<Rows> &facts, int at, float best, const Column &winner,
                                     float residual, int d)
{
    const float lost = facts.lost[at], length = sqrtf(facts.square[at]) + lost;
    const float radius = sqrtf(winner.norm) * (1.0f + 0x1p-20f);
    const float gamma = 2.0f * static_cast<float>((d + 15) / 16 * 16) * 0x1p-22f;
    const float e = gamma * length * radius + 0x1p-22f * (radius * radius + 2.0f * length * radius);
    const float widened = __int_as_float(facts.widening) * winner.weight;
    const float square = fmaxf(best + widened + facts.square[at] + e, 0.0f);
    const float margin = widened + 2.0f * lost * radius + (2.0f * (sqrtf(square) + lost) + residual) * residual + e +
                         0x1p-22f * (square + lost * lost);
    return best + (margin * (1.0f + 0x1p-10f) + 0x1p-60f);
}

} // namespace
} // namespace pgkm::cuda::tensor
