// strips_pivot.cuh - what the strips kernel makes of a pivot: the list of the centroids that can be nearest to one of
// its rows, their side of the products, and the scale of both (strips.cu says why).
#pragma once

#include "device/quad.cuh"
#include "device/warp.cuh"
#include "fused/moves.hpp"
#include "fused/strips_scores.cuh"
#include "plan/choose.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int strip_rows = 16;
constexpr float unreachable = 1e9f; // above every score

// Tiles of eight centroids: 1, 2, or a multiple of 4, as many as are multiplied at a time.
__host__ __device__ inline int tiles_of(int k)
{
    return k <= 8 ? 1 : k <= 16 ? 2 : (k + 31) / 32 * 4;
}

struct Shared {
    uint4 *operands;    // tiles x C x lanes: c1 and c2
    float4 *shift;      // C x 4: the pivot, scaled, as the lanes of a quad need it
    double *squares;    // tiles x 8: |c'|^2
    float *constant;    // tiles x 8: h
    std::int32_t *list; // tiles x 8
    std::int32_t *counters;
};

template <int C>
__host__ __device__ inline std::size_t operand_bytes(int k)
{
    return static_cast<std::size_t>(tiles_of(k)) * (C * 512 + 8 * 16) + C * 64;
}

template <int C>
__device__ Shared carve(const MoveArguments &a)
{
    std::int32_t *memory = shared_words(0);
    const int tiles = tiles_of(a.view.k);
    Shared s;
    s.operands = reinterpret_cast<uint4 *>(memory);
    s.shift = reinterpret_cast<float4 *>(s.operands + tiles * C * 32);
    s.squares = reinterpret_cast<double *>(s.shift + C * 4);
    s.constant = reinterpret_cast<float *>(s.squares + tiles * 8);
    s.list = reinterpret_cast<std::int32_t *>(s.constant + tiles * 8);
    s.counters = s.list + tiles * 8;
    return s;
}

template <int C>
std::size_t shared_bytes(const MoveArguments &a)
{
    return operand_bytes<C>(a.view.k) + MoveCounters::bytes(a.view.k, a.view.d, 1);
}

// The set that rows are compared with.
struct Centroids {
    const float *values; // k x d
    int k, d;

    __device__ const float *operator[](int j) const { return values + j * d; }
};

struct PivotList {
    int listed;  // centroids
    float scale; // a power of two
    float reach; // at least |c'| of all on the list, in scaled units, as below
    float least; // at least |c'| of the one nearest to the pivot
    float grain; // parts_error() explains it
    bool usable; // the values' range allows scores
};

// How large a list's centroids are.
struct Reach {
    float least, most; // at least |c - s| of the nearest to the pivot, and of all
};

// Squared distances of all centroids from the pivot: eight lanes each, by the whole block.
__device__ void measure_centroids(const Centroids &centroids, const float *shift, double *squares)
{
    const int self = static_cast<int>(threadIdx.x), d = centroids.d;
    for (int j = self / 8; j < (centroids.k + 3) / 4 * 4; j += threads / 8) {
        double square = 0.0;
        for (int f = self & 7; j < centroids.k && f < d; f += 8) {
            const double centred = static_cast<double>(centroids[j][f] - shift[f]);
            square += centred * centred;
        }
        square = sum_lanes<8>(square);
        if ((self & 7) == 0 && j < centroids.k)
            squares[j] = square;
    }
}

// Takes centroids off that have the values of one of lower index, which wins every tie; by the whole block, four
// threads a centroid. Rows that occur often, chosen as first centroids, make such ones.
__device__ void drop_repeated(const Centroids &centroids, const Shared &shared)
{
    static_assert(threads >= 4 * strips_k);
    const int j = static_cast<int>(threadIdx.x / 4);
    bool repeated = false;
    for (int i = static_cast<int>(threadIdx.x & 3); i < j && j < centroids.k; i += 4) {
        if (shared.squares[i] != shared.squares[j])
            continue;
        int f = 0;
        while (f < centroids.d && centroids[i][f] == centroids[j][f])
            ++f;
        repeated |= f == centroids.d;
    }
    __syncthreads();
    if (repeated)
        shared.squares[j] = INFINITY;
    __syncthreads();
}

// The list of one pivot, ascending, by one warp; returns its length and upper bounds of the
// distances. Float32 will do: its roundings are far below the slack.
__device__ int list_centroids(const Shared &shared, int k, float radius, Reach &reach)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    float least = INFINITY, largest = 0.0f;
    for (int j = lane; j < k; j += 32)
        least = fminf(least, static_cast<float>(shared.squares[j]));
    least = join_lanes(least, [](float a, float b) { return fminf(a, b); });
    // Nearer to some row x than the centroid nearest to the pivot s is: |c - s| <= least + 2 |x - s|.
    const float limit = (sqrtf(least) + 2.0f * radius) * (1.0f + 0x1p-16f), square_limit = limit * limit;
    int listed = 0;
    for (int first = 0; first < k; first += 32) {
        const int j = first + lane;
        const float square = j < k ? static_cast<float>(shared.squares[j]) : 0.0f;
        const bool taken = j < k && !(square > square_limit); // NaN is taken
        const unsigned ballot = __ballot_sync(~0u, taken);
        if (taken) {
            shared.list[listed + lanes_below(ballot)] = j;
            largest = square > largest || isnan(square) ? square : largest;
        }
        listed += __popc(ballot);
    }
    largest = join_lanes(largest, [](float own, float other) { return other > own || isnan(other) ? other : own; });
    reach = {sqrtf(least) * (1.0f + 0x1p-20f), sqrtf(largest) * (1.0f + 0x1p-20f)};
    return listed;
}

// The scale of a pivot with this list and the operands of its centroids, by the whole block.
template <int C, int W>
__device__ PivotList fill_list(const Centroids &centroids, const Shared &shared, const float *shift, float radius,
                               int listed, const Reach &reach)
{
    const int d = centroids.d;
    const HalfScale range = half_scale(radius * (1.0f + 0x1p-20f), reach.most);
    const float scale = range.scale;
    const PivotList list = {
        listed, scale, reach.most * scale, reach.least * scale, 0x1p-25f * sqrtf(static_cast<float>(d)), range.usable};
    const double factor = static_cast<double>(scale) * static_cast<double>(scale) / 2;
    for (int i = static_cast<int>(threadIdx.x); i < tiles_of(listed) * 8; i += threads)
        shared.constant[i] = i < listed ? static_cast<float>(shared.squares[shared.list[i]] * factor) : unreachable;
    for (int i = static_cast<int>(threadIdx.x); i < C * 16; i += threads) {
        const int f = slot_feature<W>(i / 16, i / 4 % 4, i % 4);
        reinterpret_cast<float *>(shared.shift)[i] = f < d ? shift[f] * scale : 0.0f;
    }
    for (int i = static_cast<int>(threadIdx.x); i < tiles_of(listed) * C * 32; i += threads) {
        const int lane = i & 31, c = (i >> 5) % C, place = (i >> 5) / C * 8 + lane / 4;
        const int j = place < listed ? shared.list[place] : 0;
        float high[4], low[4];
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            const int f = slot_feature<W>(c, lane & 3, w);
            const float value = f < d ? (shift[f] - centroids[j][f]) * scale : 0.0f; // negated
            high[w] = upper_half(value);
            low[w] = value - high[w];
        }
        shared.operands[i] = {tensor::pack_halves(high[0], high[1]), tensor::pack_halves(high[2], high[3]),
                              tensor::pack_halves(low[0], low[1]), tensor::pack_halves(low[2], low[3])};
    }
    __syncthreads();
    return list;
}

// Prepares pivot p for the block's warps.
template <int C, int W>
__device__ PivotList open_pivot(const MoveArguments &a, const Shared &shared, int p)
{
    __shared__ int listed;
    __shared__ Reach reach;
    const Centroids centroids = {a.view.centroids, a.view.k, a.view.d};
    const float *shift = a.ordered.pivots + std::int64_t{p} * a.view.d;
    const float radius = a.ordered.facts->radius[p];
    measure_centroids(centroids, shift, shared.squares);
    __syncthreads();
    drop_repeated(centroids, shared);
    if (threadIdx.x < 32) {
        Reach found;
        const int count = list_centroids(shared, a.view.k, radius, found);
        if (threadIdx.x == 0) {
            listed = count;
            reach = found;
        }
    }
    __syncthreads();
    return fill_list<C, W>(centroids, shared, shift, radius, listed, reach);
}

} // namespace
} // namespace pgkm::cuda
