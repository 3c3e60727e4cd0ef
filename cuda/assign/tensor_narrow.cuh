// tensor_narrow.cuh - the first pass over prepared rows of few features, whose columns a block holds in shared memory.
//
// Shape: d <= 32; a product is one or two sixteens deep. A block takes a chunk of rows of one pivot after the other,
// brings the columns in their reach to shared memory, and its warps take tiles of 64 rows, whose fp16 are in registers.
// Barriers part chunks; within one, warps share nothing.
//
// A product starts from |c~|^2 / 2 and takes x~ c~ off: its results are halved scores. Per row the least and second
// least of octets (device/best.cuh) are kept. An octet: the eight columns that a lane has of four tiles of a
// product; its number is 4 x that of the four tiles + the lane of the quad. The winning octet is looked into again in
// float32. A row whose second least score, there or of another octet, lies above the limit has its label; the others go
// through the second pass (tensor_passes.cuh).
//
// The bound is that of tensor.cu without weights: with |c~_m|, |c~_j| <= r, |b_m|, |b_j| <= R and |u_m| <= v, where
// v^2 = |x~|^2 + S_m + e and |u_j| <= v + 2 |a| + 2 R,
//   S_j <= S_m + M + N,   M = 2 |a| r + (2 (v + |a|) + R) R + e,   N = 2 |a| r + 2 (v + 3 |a| + 2 R) R + e;
// S_m + M is the row's threshold for the second pass. In M + N the terms 4 |a| r stand for 2 |a| |c~_j - c~_m|, which
// is 2 |a| (|u_j| + |u_m|) <= 4 |a| (v + |a| + R) at most: the lesser of both serves. r is at most |x~| + v + 2 |a| + 2
// R. Halved scores that start from the constant err by 18 x 2^-23 s at most for each sixteen (fused/strips_scores.cuh),
// s = r^2 / 2 + |x~| r, the constant by 2^-23 s, a limit by as much; those in float32 err by less.
#pragma once

#include "assign/tensor_passes.cuh"
#include "device/best.cuh"

namespace pgkm::cuda::tensor {
namespace {

constexpr int narrow_threads = 512;
constexpr int narrow_strips = 4; // of 16 rows, that a warp takes at a time
constexpr int narrow_tile = 16 * narrow_strips;
constexpr int narrow_unit = narrow_threads / 32 * narrow_tile; // a chunk is a multiple of it
constexpr int octet_tiles = 4;

// The column of an octet's score i.
__device__ inline int octet_column(int octet, int i)
{
    return octet / 4 * 32 + i / 2 * 8 + 2 * (octet & 3) + i % 2;
}

// Field by field: the structures stay in registers.
__device__ inline Best pick(bool first, const Best &a, const Best &b)
{
    return {first ? a.least : b.least, first ? a.second : b.second, first ? a.index : b.index};
}

// Of two strips of 16 rows, whose row l / 4 + 8 h value[m][h] is of in lane l: the best of the lane's own row, in strip
// l / 2 % 2 and half l % 2.
__device__ inline Best own_best(const Best (&value)[2][2])
{
    const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
    Best pair[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
        pair[m] = pick(odd, value[m][1], value[m][0]);
        pair[m].join(pick(odd, value[m][0], value[m][1]).of_lane(1));
    }
    Best own = pick(upper, pair[1], pair[0]);
    own.join(pick(upper, pair[0], pair[1]).of_lane(2));
    return own;
}

// Columns in shared memory, S sixteens of features: tiles of eight as the lanes of a product hold them, negated, and
// what products start from, twice for the rows of both halves of a strip. A tile's words are turned by 16 bytes for
// each four tiles before it: lanes that look into octets of their own would meet in a quarter of the banks, or fewer.
template <int S>
struct NarrowTable {
    uint2 *slots;   // columns / 8 x 32 x S
    float4 *starts; // columns / 8 x 4

    static_assert(narrow_column_bytes(S * 16) == 4 * (S * sizeof(uint2)) + sizeof(float4) / 2);
    __device__ NarrowTable(char *memory, int columns)
        : slots(reinterpret_cast<uint2 *>(memory)), starts(reinterpret_cast<float4 *>(slots + columns * 4 * S))
    {
    }
    // Where a tile has this slot of its 32 S.
    __device__ static int turned(int slot, int tile) { return (slot + tile / octet_tiles * 2) & (32 * S - 1); }
    // A slot of a column: for lane q of a quad slot q * S + s has features 2 q, 2 q + 1, 2 q + 8, 2 q + 9 of sixteen s.
    __device__ uint2 *slot_of(int column, int slot) const
    {
        return slots + column / 8 * 32 * S + turned(column % 8 * 4 * S + slot, column / 8);
    }
    // Of a column whose number is even, and of the next one.
    __device__ float2 starts_of(int column) const { return *reinterpret_cast<const float2 *>(starts + column / 2); }
    // Columns from `first` to `end`, by the whole block.
    __device__ void load(const __half *from, int d32, int first, int end) const
    {
        for (int i = first * 2 * S + static_cast<int>(threadIdx.x); i < end * 2 * S; i += narrow_threads) {
            const int column = i / (2 * S), piece = i % (2 * S);
            const uint4 v = *reinterpret_cast<const uint4 *>(from + std::int64_t{column} * d32 + piece * 8);
            const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int q = 0; q < 4; ++q)
                reinterpret_cast<unsigned *>(slot_of(column, q * S + piece / 2))[piece % 2] = words[q] ^ 0x80008000u;
        }
    }
    // Starts of the first `wanted` columns; those up to `end` are never the least.
    __device__ void start(const Column *columns, int wanted, int end) const
    {
        for (int j = static_cast<int>(threadIdx.x); j < end; j += narrow_threads) {
            const float value = j < wanted ? 0.5f * columns[j].norm : infinity();
            float *at = reinterpret_cast<float *>(starts) + j / 2 * 4 + j % 2;
            at[0] = at[2] = value;
        }
    }
};

// What a chunk's rows have in common.
struct Chunk {
    float radius, residual; // of the columns wanted, the largest
    int wanted;             // columns
};

// Limits of one row, from the least halved score.
struct NarrowLimits {
    float limit;     // halved: what lies above it is no nearest centroid
    float threshold; // for the second pass

    template <int S>
    __device__ static NarrowLimits of(float best, float2 sums, const Chunk &chunk, int d)
    {
        widen_lengths(sums.x, sums.y);
        const float square = sums.x, lost = sums.y, length = sqrtf(square) * (1.0f + 0x1p-20f) + lost;
        const auto error = [&](float r) {
            return 2.0f * static_cast<float>(18 * S + 2) * 0x1p-23f * (0.5f * r + length) * r;
        };
        const auto root_of = [&](float r) {
            return sqrtf(fmaxf(2.0f * best + square + error(r), 0.0f)) * (1.0f + 0x1p-20f);
        };
        const float far = root_of(chunk.radius) + 2.0f * (lost + chunk.residual);
        const float r = fminf(chunk.radius, (length + far) * (1.0f + 0x1p-18f));
        const float root = root_of(r), speck = sqrtf(static_cast<float>(d)) * 0x1.01p-24f;
        const float residual = fminf(chunk.residual, fmaf(0x1.02p-11f, r, speck)), e = error(r);
        const float of_best = (2.0f * (root + lost) + residual) * residual + e + 0x1p-22f * (root * root + lost * lost);
        const float of_other = 2.0f * (root + 3.0f * lost + 2.0f * residual) * residual + e;
        const float turned = 2.0f * lost * r, both = fminf(2.0f * turned, 4.0f * lost * (root + lost + residual));
        constexpr float wider = 1.0f + 0x1p-10f;
        return {best + 0.5f * ((of_best + of_other + both) * wider + 0x1p-60f),
                2.0f * best + ((of_best + turned) * wider + 0x1p-60f)};
    }
};

// The best octets of a warp's rows, given as fp16, over `columns` columns, a multiple of 32.
template <int S>
__device__ inline void sweep(const NarrowTable<S> &table, const unsigned (&rows)[narrow_strips][S][4], int columns,
                             Best (&best)[narrow_strips][2])
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const float4 *starts = table.starts + (lane & 3);
    int octet = lane & 3;
    const float zero = unknown_zero(columns);
#pragma unroll 1
    for (int tile = 0; tile < columns / 8; tile += octet_tiles, octet += 4) {
        const uint2 *slots = table.slots + tile * 32 * S + table.turned(lane * S, tile);
        float least[narrow_strips][2];
#pragma unroll
        for (int t = 0; t < octet_tiles; ++t) {
            uint2 b[S];
#pragma unroll
            for (int s = 0; s < S; ++s)
                b[s] = slots[t * 32 * S + s];
            const float4 four = starts[(tile + t) * 4];
            const float start[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int m = 0; m < narrow_strips; ++m) {
                float acc[4];
                multiply_fp16_from(acc, rows[m][0], b[0].x, b[0].y, start);
#pragma unroll
                for (int s = 1; s < S; ++s)
                    multiply_fp16(acc, rows[m][s], b[s].x, b[s].y);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const float lesser = fminf(acc[2 * h], acc[2 * h + 1]);
                    least[m][h] = t == 0 ? lesser : fminf(least[m][h], lesser);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < narrow_strips; ++m)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                best[m][h].take(least[m][h], octet, zero);
    }
}

// A second look into an octet, for the lane's own row.
template <int S>
__device__ inline Best look(const NarrowTable<S> &table, const unsigned *row, int words, int octet)
{
    float x[16 * S];
#pragma unroll
    for (int q = 0; q < 4; ++q)
#pragma unroll
        for (int i = 0; i < 2 * S; ++i) {
            const unsigned word = 4 * i + q < words ? row[4 * i + q] : 0u;
            const float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&word));
            x[(q * 2 * S + i) * 2] = pair.x;
            x[(q * 2 * S + i) * 2 + 1] = pair.y;
        }
    Best found = {infinity(), infinity(), octet_column(octet, 0)};
#pragma unroll 1
    for (int t = 0; t < octet_tiles; ++t) {
        const int pair = octet_column(octet, 2 * t);
        const float2 starts = table.starts_of(pair);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float score = i == 0 ? starts.x : starts.y;
#pragma unroll
            for (int u = 0; u < 2 * S; ++u) {
                const uint4 v = *reinterpret_cast<const uint4 *>(table.slot_of(pair + i, 2 * u));
                const unsigned words_of[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
                for (int w = 0; w < 4; ++w) {
                    const float2 both = __half22float2(*reinterpret_cast<const __half2 *>(&words_of[w]));
                    score = fmaf(x[u * 8 + 2 * w], both.x, score);
                    score = fmaf(x[u * 8 + 2 * w + 1], both.y, score);
                }
            }
            found.take(score, pair + i);
        }
    }
    return found;
}

// The lane's own row: its label, or a place on a list of what is open.
template <typename T, int S>
__device__ inline void decide_narrow(const View<T> &view, const Layout<T> &l, const NarrowTable<S> &table,
                                     const Rows &rows, const Chunk &chunk, int at, const Best &own,
                                     std::int32_t *labels)
{
    const bool there = at < rows.count;
    const std::int32_t place = rows.first + (there ? at : 0), row = l.rows.order[place];
    Best found = Best::none();
    NarrowLimits limits = {infinity(), infinity()};
    if (chunk.wanted > 0) {
        found = look<S>(table, reinterpret_cast<const unsigned *>(l.rows.halves + std::int64_t{place} * l.rows.d8),
                        l.rows.d8 / 2, own.index);
        limits = NarrowLimits::of<S>(fmaxf(found.least, own.least), l.rows.measures[place], chunk, view.d);
    }
    const bool bounded = limits.threshold < 0x1p100f; // false for NaN, too
    const bool sole = found.second > limits.limit && own.second > limits.limit;
    if (there && bounded && sole)
        labels[row] = l.centroid[std::int64_t{rows.group} * l.columns + found.index];
    const bool open = there && bounded && !sole, left = there && !bounded;
    std::int32_t position = append_by_warp(&l.head->ambiguous[rows.group], open);
    if (open) {
        l.ambiguous[l.rows.facts->offset[rows.group] + position] = place;
        l.threshold[l.rows.facts->offset[rows.group] + position] = limits.threshold;
    }
    position = append_by_warp(&l.head->settle, left);
    if (left)
        l.settle[position] = row;
}

// What the chunk's rows have in common; by the whole block, with a barrier at either end.
template <typename T>
__device__ inline Chunk measure_chunk(const Layout<T> &l, const Rows &rows)
{
    __shared__ int furthest; // bits of the largest reach
    if (threadIdx.x == 0)
        furthest = 0;
    __syncthreads();
    int own = 0;
    for (int at = static_cast<int>(threadIdx.x); at < rows.count; at += narrow_threads) {
        float2 sums = l.rows.measures[rows.first + at];
        widen_lengths(sums.x, sums.y);
        const float length = sqrtf(sums.x) + sums.y;
        const float reach = (2.0f * length + l.head->nearest[rows.group]) * (1.0f + 0x1p-10f);
        own = max(own, reach < 0x1p100f ? __float_as_int(reach) : 0); // others have no bounds
    }
    own = __reduce_max_sync(~0u, own);
    if ((threadIdx.x & 31) == 0)
        atomicMax(&furthest, own);
    __syncthreads();
    const int bucket = bucket_of(__int_as_float(furthest));
    const bool usable = l.rows.facts->usable && !l.head->overflow;
    return {l.head->radius[rows.group][bucket], l.head->residual[rows.group][bucket],
            usable ? l.head->bucket_end[rows.group][bucket] : 0};
}

template <typename T, int S>
__global__ void __launch_bounds__(narrow_threads, 1)
    narrow_kernel(View<T> view, const Control *control, Layout<T> l, int chunk_rows, std::int32_t *labels)
{
    extern __shared__ __align__(16) char memory[];
    const NarrowTable<S> table(memory, l.columns);
    const TileMap map(l.rows.facts->count, l.rows.facts->offset, chunk_rows);
    const int lane = static_cast<int>(threadIdx.x & 31), words = l.rows.d8 / 2;
    int group = -1, loaded = 0;
    for (int t = static_cast<int>(blockIdx.x);; t += static_cast<int>(gridDim.x)) {
        Rows rows = map.at(t);
        if (__syncthreads_or(rows.group < 0 || stopped(control)))
            return;
        rows.count = min(rows.count, chunk_rows);
        const Chunk chunk = measure_chunk(l, rows);
        const int columns = (chunk.wanted + 8 * octet_tiles - 1) / (8 * octet_tiles) * (8 * octet_tiles);
        const std::int64_t cells = std::int64_t{rows.group} * l.columns;
        loaded = rows.group == group ? loaded : 0;
        group = rows.group;
        table.load(l.table + cells * l.d32, l.d32, loaded, columns);
        table.start(l.column + cells, chunk.wanted, columns);
        loaded = max(loaded, columns);
        __syncthreads();
        for (int first = static_cast<int>(threadIdx.x / 32) * narrow_tile; first < rows.count; first += narrow_unit) {
            unsigned x[narrow_strips][S][4];
            Best best[narrow_strips][2];
#pragma unroll
            for (int m = 0; m < narrow_strips; ++m)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int at = min(first + m * 16 + h * 8 + lane / 4, rows.count - 1);
                    const auto *row =
                        reinterpret_cast<const unsigned *>(l.rows.halves + (std::int64_t{rows.first} + at) * l.rows.d8);
#pragma unroll
                    for (int s = 0; s < S; ++s)
#pragma unroll
                        for (int half = 0; half < 2; ++half) {
                            const int word = 8 * s + 4 * half + (lane & 3);
                            x[m][s][h + 2 * half] = word < words ? row[word] : 0u;
                        }
                    best[m][h] = Best::none();
                }
            sweep<S>(table, x, columns, best);
#pragma unroll
            for (int m = 0; m < narrow_strips; m += 2) {
                const Best pair[2][2] = {{best[m][0], best[m][1]}, {best[m + 1][0], best[m + 1][1]}};
                const int at = first + (m + (lane >> 1 & 1)) * 16 + (lane & 1) * 8 + lane / 4;
                decide_narrow<T, S>(view, l, table, rows, chunk, at, own_best(pair), labels);
            }
        }
    }
}

template <typename T>
void narrow_filter(const Stage<T> &stage, const View<T> &view, const Layout<T> &l, std::int32_t *labels)
{
    const int units = stage.context.facts.multiprocessors;
    const int chunk = static_cast<int>(std::clamp<std::int64_t>(view.n / (16 * units), narrow_unit, 8 * narrow_unit)) /
                      narrow_unit * narrow_unit;
    const auto bytes = static_cast<std::size_t>(l.columns * narrow_column_bytes(view.d));
    const auto launch = [&](auto kernel) {
        enqueue(kernel, units, narrow_threads, bytes, stage.stream, view, stage.control, l, chunk, labels);
    };
    view.d <= 16 ? launch(narrow_kernel<T, 1>) : launch(narrow_kernel<T, 2>);
}

} // namespace
} // namespace pgkm::cuda::tensor
