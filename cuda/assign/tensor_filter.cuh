// tensor_filter.cuh - the two passes over row tiles: find the leaders, collect the candidates.
//
// Pass 1 keeps, per row, the least score and the second least; a row whose second lies above
// the threshold (tensor.cu derives it) is done. The other rows go through pass 2, which lists
// every centroid below the row's threshold and measures those exactly.
#pragma once

#include "tensor_table.cuh"
#include "tensor_tile.cuh"

namespace pgkm::cuda::tensor {
namespace {

// A block's shared memory; the leaders of the warps take the stages' place at the end.
template <typename T, int WarpRows>
struct Block {
    char                             *tile;
    char                             *ring;
    RowFacts<Shape8<WarpRows>::rows> *facts;
    Found<Shape8<WarpRows>::rows>    *found;

    static std::size_t bytes(int d, bool collects)
    {
        constexpr int rows = Shape8<WarpRows>::rows;
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(padded_features(d)) * 2 + stages * stage_bytes +
               sizeof(RowFacts<rows>) + (collects ? sizeof(Found<rows>) : 0);
    }
    __device__ Block(char *memory, int d)
        : tile(memory), ring(tile + Shape8<WarpRows>::rows * padded_features(d) * 2),
          facts(reinterpret_cast<RowFacts<Shape8<WarpRows>::rows> *>(ring + stages * stage_bytes)),
          found(reinterpret_cast<Found<Shape8<WarpRows>::rows> *>(facts + 1))
    {
    }
};

// Streams `columns` columns of group g past the tile; calls take(first_column, acc) with the
// products of every column tile. acc[m][s] holds rows 16 m of the warp, strip s.
template <typename T, int WarpRows, typename Take>
__device__ inline void stream_columns(const View<T> &view, const Layout<T> &l, int g, int columns,
                                      const Block<T, WarpRows> &block, Take &&take)
{
    using S = Shape8<WarpRows>;
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int chunks = l.d32 / feature_chunk, total = (columns + column_tile - 1) / column_tile * chunks;
    const __half *table = l.table + std::int64_t{g} * l.columns * l.d32;
    const unsigned ring = shared_address(block.ring), tile = shared_address(block.tile);
    const int width = padded_features(view.d) / 8;
    int load_column = 0, load_chunk = 0;
    const auto load = [&](int stage) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int piece = static_cast<int>(threadIdx.x) + i * filter_threads, column = piece / 4;
            copy_async(ring + (stage % stages) * stage_bytes + column_piece(column, piece % 4) * 16,
                       table + std::int64_t{load_column + column} * l.d32 + load_chunk * feature_chunk + piece % 4 * 8);
        }
        if (++load_chunk == chunks) {
            load_chunk = 0;
            load_column += column_tile;
        }
    };
    for (int s = 0; s < stages - 1; ++s) {
        if (s < total)
            load(s);
        commit_copies();
    }
    float acc[2][S::strips][4] = {};
    const int row = warp / S::warp_columns * 32 + (lane & 15);
    const int column = warp % S::warp_columns * S::width + (lane >> 4) * 8 + (lane & 7);
    int chunk = 0, first = 0;
    for (int s = 0; s < total; ++s) {
        wait_copies<stages - 2>();
        __syncthreads();
        if (s + stages - 1 < total)
            load(s + stages - 1);
        commit_copies();
        const unsigned from = ring + (s % stages) * stage_bytes;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            unsigned a[2][4];
            for (int m = 0; m < 2; ++m)
                load_matrices(a[m], tile + row_piece(row + m * 16, chunk * 4 + half * 2 + (lane >> 4), width) * 16);
#pragma unroll
            for (int pair = 0; pair < S::strips / 2; ++pair) {
                unsigned b[4];
                load_matrices(b, from + column_piece(column + pair * 16, half * 2 + ((lane >> 3) & 1)) * 16);
                for (int m = 0; m < 2; ++m) {
                    multiply_fp16(acc[m][2 * pair], a[m], b[0], b[1]);
                    multiply_fp16(acc[m][2 * pair + 1], a[m], b[2], b[3]);
                }
            }
        }
        if (++chunk == chunks) {
            take(first, acc);
            chunk = 0;
            first += column_tile;
#pragma unroll
            for (int m = 0; m < 2; ++m)
                for (int strip = 0; strip < S::strips; ++strip)
                    for (int i = 0; i < 4; ++i)
                        acc[m][strip][i] = 0.0f;
        }
    }
    __syncthreads();
}

// Calls take(row of the warp's four in this lane, column, score) for every product in acc.
template <typename S, typename Take>
__device__ inline void each_score(const float *norm, int first, const float (&acc)[2][S::strips][4], Take &&take)
{
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
    for (int strip = 0; strip < S::strips; ++strip) {
        const int column = first + warp % S::warp_columns * S::width + strip * 8 + 2 * (lane & 3);
        const float2 square = *reinterpret_cast<const float2 *>(norm + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            take(i, column, fmaf(acc[i / 2][strip][i % 2 * 2], -2.0f, square.x));
            take(i, column + 1, fmaf(acc[i / 2][strip][i % 2 * 2 + 1], -2.0f, square.y));
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

struct Leading {
    float        best;
    float        second;
    std::int32_t column; // -1: no score was a number

    __device__ void add(int at, float score)
    {
        const bool better = score < best;
        second = fminf(second, better ? best : score);
        best = better ? score : best;
        column = better ? at : column;
    }
    __device__ void merge(const Leading &other)
    {
        const bool wins = other.best < best;
        second = fminf(fminf(second, other.second), wins ? best : other.best);
        best = wins ? other.best : best;
        column = wins ? other.column : column;
    }
};

__device__ inline Leading from_lane(const Leading &mine, int offset)
{
    return {__shfl_xor_sync(~0u, mine.best, offset), __shfl_xor_sync(~0u, mine.second, offset),
            __shfl_xor_sync(~0u, mine.column, offset)};
}

// The largest score that a nearest centroid of this row can have; NaN or infinite when the
// bounds do not hold. Terms as in tensor.cu.
template <int Rows>
__device__ inline float threshold_of(const Head &head, const RowFacts<Rows> &facts, int at, int g, const Leading &leading,
                                     const Column &winner, int d)
{
    const int bucket = bucket_of(facts.reach[at]);
    const float lost = facts.lost[at], length = sqrtf(facts.square[at]) + lost;
    const float radius = fmaxf(head.radius[g][bucket], longest(winner));
    const float residual = fmaxf(head.residual[g][bucket], winner.residual);
    const float gamma = static_cast<float>((d + 15) / 16 * 16) * 0x1p-22f;
    const float product = length * radius;
    const float e = 2.0f * gamma * product + 0x1p-22f * (radius * radius + 2.0f * product);
    const float square = fmaxf(leading.best + facts.square[at] + e, 0.0f);
    const float distance = sqrtf(square), both = lost + residual;
    const float margin = 4.0f * fminf(radius, distance + both) * lost + 4.0f * (distance + both) * residual + both * both +
                         2.0f * e + 0x1p-22f * square;
    return leading.best + (margin * (1.0f + 0x1p-10f) + 0x1p-60f);
}

} // namespace
} // namespace pgkm::cuda::tensor
