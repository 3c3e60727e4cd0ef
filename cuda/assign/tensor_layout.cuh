// tensor_layout.cuh - the scratch memory of assign_tensor and the helpers all its kernels share.
#pragma once

#include <cuda_fp16.h>

#include "assign/tensor_settle.cuh"
#include "device/warp.cuh"
#include "order/halves.cuh"
#include "order/ordered_rows.hpp"

namespace pgkm::cuda::tensor {

inline constexpr int column_tile = 128;  // centroids per step of the filter
inline constexpr int feature_chunk = 32; // features per step of the filter
inline constexpr int buckets = 256;      // classes of |c'|, four to an octave
inline constexpr int candidates = 16;    // per row, in the second pass
inline constexpr int bundle_size = 32;   // columns that the filter on a Hopper multiplies or leaves out together

// What the filter on a Hopper learns from one assignment to the next. Zero at first.
struct Progress {
    std::int32_t ordered;        // columns have their lasting order (tensor_order.cuh)
    std::int32_t tracked;        // assignments in a row that noted gaps (tensor_limits.cuh)
    std::int32_t resting;        // assignments to come that do not
    std::int32_t rest;           // how many the next rest takes, less one
    unsigned long long left_out; // bundles that the last assignment left out by their gaps, over all tiles
    unsigned long long all;      // of so many
};

// Facts of one assignment. The first part starts as zero.
struct Head {
    std::int32_t ambiguous[most_pivots];
    std::int32_t settle;   // rows left to the exact kernel
    std::int32_t found;    // rows with a short list of candidates
    std::int32_t overflow; // a centroid is outside of what the scale was made for
    // Written before they are read; not zeroed.
    float nearest[most_pivots];                    // at least min_j |c'_j|
    std::int32_t bucket_end[most_pivots][buckets]; // columns whose |c'| lies in bucket <= b
    float residual[most_pivots][buckets];          // at least the largest |b_j| among them
    float radius[most_pivots][buckets];            // at least the largest |c'_j| among them
};

// What a column brings to the filter: |c~|^2 to the nearest, and a weight of at least
// |c~| + residual_weight |b| that widens its scores.
struct Column {
    float norm;
    float weight;
};
inline constexpr float residual_weight = 4096.0f;

// A row and the centroids of which one is its nearest.
inline constexpr int found_most = 10; // more are rare
struct FoundRow {
    std::int32_t row;
    std::int32_t count;
    std::int32_t centroid[found_most];
};

// What a block must know of a tile of rows.
struct TileFacts {
    std::int32_t group;  // -1: there is no such tile
    std::int32_t first;  // place of its first row
    std::int32_t count;  // of its rows
    std::int32_t wanted; // bundles of columns to multiply
    float widening;
    float radius;   // of the columns wanted, the largest
    float residual; // the same
};

// What limits and gaps need of a row: tensor_limits.cuh.
struct alignas(16) Slack {
    float square; // at least |x~|^2
    float length; // at least |x~| + |a|
    float lost;   // at least |a|
    float low;    // at most |x~|^2, less 2^-22 of the columns' largest square
};

// The columns of a bundle, relative to a pivot.
struct alignas(16) Bundle {
    float nearest;  // at most the least |c'_j|
    float radius;   // at least the largest
    float residual; // at least the largest |b_j|
    float drift;    // at least the farthest that one of them went since the last assignment
};

template <typename T>
struct Layout {
    OrderedRows<T> rows;
    Head *head;
    float *pairs;            // sample x sample: distances between sampled centroids
    __half *table;           // groups x columns x d32: c~ in the order of |c'|
    Column *column;          // groups x columns, by position
    float2 *facts;           // groups x columns, by centroid: |c~|^2, at least |b|
    float *residual;         // groups x columns, by position: at least |b|
    std::int32_t *centroid;  // groups x columns: which centroid a position holds
    std::int32_t *position;  // groups x columns: the position of a centroid
    std::int32_t *ambiguous; // places in the rows' order, each group's from its offset on
    float *threshold;        // of the ambiguous rows
    std::int32_t *settle;    // rows
    // Of the filter on a Hopper (tensor_hopper.cuh); nullptr elsewhere. Lasting:
    Progress *progress;
    std::int32_t *labels; // rows: of the last assignment
    T *last;              // k x d: its centroids
    std::int32_t *stable; // k: the lasting position of a centroid
    float *gaps;          // tiles x bundles: tensor_limits.cuh; nullptr: there would be too many
    // Passing:
    TileFacts *tiles;
    std::int32_t *wanted; // tiles x bundles: of each tile, the bundles to multiply
    Slack *slack;         // rows
    float *drift;         // k
    Bundle *bundle;       // groups x bundles
    std::int32_t *near;   // k: the nearest sample
    std::int32_t *rank;   // sample: its place in the chain of samples
    std::int32_t *bins;   // order_bins
    FoundRow *found;      // n
    bool second_pass;     // tensor_passes.cuh has room for a tile of rows
    std::int32_t bundles;
    std::int32_t tile_room; // tiles at most
    std::int32_t groups;    // at most; without rows those beyond the pivots
    std::int32_t sample;
    std::int32_t columns; // k padded to column_tile
    std::int32_t d32;     // d padded to 32
};

inline constexpr int order_bins = 65536; // a multiple of 1,024

inline int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

// What outlives a call where rows are kept comes from `lasting`, the rest from `passing`.
template <typename T>
Layout<T> carve(Carver &lasting, Carver &passing, std::int64_t rows, int d, int k, int groups, bool hopper)
{
    Layout<T> l;
    l.groups = groups;
    l.sample = std::min(k, 256);
    l.columns = round_up(k, column_tile);
    l.d32 = round_up(d, feature_chunk);
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(d);
    const std::size_t cells = static_cast<std::size_t>(groups) * static_cast<std::size_t>(l.columns);
    l.head = passing.take<Head>(1);
    l.pairs = passing.take<float>(static_cast<std::size_t>(l.sample) * static_cast<std::size_t>(l.sample));
    l.table = passing.take<__half>(cells * static_cast<std::size_t>(l.d32));
    l.column = passing.take<Column>(cells);
    l.facts = passing.take<float2>(cells);
    l.residual = passing.take<float>(cells);
    l.centroid = passing.take<std::int32_t>(cells);
    l.position = passing.take<std::int32_t>(cells);
    l.ambiguous = passing.take<std::int32_t>(n);
    l.threshold = passing.take<float>(n);
    l.settle = passing.take<std::int32_t>(n);
    l.labels = nullptr;
    l.progress = nullptr;
    l.gaps = nullptr;
    if (!hopper)
        return l;
    l.bundles = l.columns / bundle_size;
    l.tile_room = static_cast<std::int32_t>(n / 128) + 2 * most_pivots;
    const std::size_t pairs = static_cast<std::size_t>(l.tile_room) * static_cast<std::size_t>(l.bundles);
    const auto clusters = static_cast<std::size_t>(k);
    l.progress = lasting.take<Progress>(1);
    l.labels = lasting.take<std::int32_t>(n);
    l.last = lasting.take<T>(clusters * width);
    l.stable = lasting.take<std::int32_t>(clusters);
    if (pairs <= n * width)
        l.gaps = lasting.take<float>(pairs);
    l.tiles = passing.take<TileFacts>(static_cast<std::size_t>(l.tile_room));
    l.wanted = passing.take<std::int32_t>(pairs);
    l.slack = passing.take<Slack>(n);
    l.drift = passing.take<float>(clusters);
    l.bundle = passing.take<Bundle>(static_cast<std::size_t>(groups) * static_cast<std::size_t>(l.bundles));
    l.near = passing.take<std::int32_t>(clusters);
    l.rank = passing.take<std::int32_t>(static_cast<std::size_t>(l.sample));
    l.bins = passing.take<std::int32_t>(order_bins);
    l.found = passing.take<FoundRow>(n); // all rows may have a short list, where centroids share clusters
    return l;
}

__device__ inline float infinity()
{
    return __int_as_float(0x7f800000);
}

// Class of a length >= 0: monotone, four classes to an octave from 2^-40 to 2^24.
__device__ inline int bucket_of(float length)
{
    const int bucket = static_cast<int>(__float_as_uint(length) >> 21) - ((127 - 40) << 2);
    return min(max(bucket, 0), buckets - 1);
}

} // namespace pgkm::cuda::tensor
