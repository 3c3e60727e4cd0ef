// tensor_layout.cuh - the scratch memory of assign_tensor and the helpers all its kernels share.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "assign/tensor_settle.cuh"

namespace pgkm::cuda::tensor {

inline constexpr int max_groups = 16;    // pivots; a multiple of 8 and at most 16
inline constexpr int column_tile = 128;  // centroids per step of the filter
inline constexpr int feature_chunk = 32; // features per step of the filter
inline constexpr int buckets = 256;      // classes of |c'|, four to an octave
inline constexpr int candidates = 16;    // per row, in the second pass

// Facts of the grouping, valid as long as the rows are. The first part starts as zero.
struct Groups {
    std::int32_t count[max_groups];
    std::int32_t cursor[max_groups];
    std::int32_t members[max_groups]; // centroids nearest to the seed of each group
    unsigned long long box;           // bits of the largest |x_i - c0_i|, as double
    unsigned long long reach;         // bits of the largest |c_i - c0_i|
    // Written before they are read; not zeroed.
    double scale;
    std::int32_t usable; // 0: values too large for the element type's differences
    std::int32_t offset[max_groups + 1];
    std::int32_t seed[max_groups];
    float half_norm[max_groups]; // of the pivots, for grouping
};

// Facts of one assignment. The first part starts as zero.
struct Head {
    std::int32_t ambiguous[max_groups];
    std::int32_t settle;   // rows left to the exact kernel
    std::int32_t found;    // rows with a short list of candidates
    std::int32_t overflow; // a centroid is outside of what the scale was made for
    // Written before they are read; not zeroed.
    float nearest[max_groups];                    // at least min_j |c'_j|
    std::int32_t bucket_end[max_groups][buckets]; // columns whose |c'| lies in bucket <= b
    float residual[max_groups][buckets];          // at least the largest |b_j| among them
    float radius[max_groups][buckets];            // at least the largest |c'_j| among them
};

// What a column brings to the filter: |c~|^2 to the nearest, and a weight of at least
// |c~| + residual_weight |b| that widens its scores.
struct Column {
    float norm;
    float weight;
};
inline constexpr float residual_weight = 4096.0f;

// A row and the centroids of which one is its nearest.
inline constexpr int found_most = 8;
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
    std::int32_t wanted; // columns that they can reach
    float widening;
    float residual; // of the columns wanted, the largest
};

// Terms of a row's limit that do not depend on the column: see limit_of().
struct Slack {
    float fixed;
    float square;
};

template <typename T>
struct Layout {
    Groups *groups_at;
    Head *head;
    float *pairs;              // sample x sample: distances between sampled centroids
    T *sums;                   // max_groups x d: of c - c0 over each group's centroids; zeroed
    T *pivots;                 // max_groups x d
    __nv_bfloat16 *pivot_tile; // d32 / 16 x 16 x 16: pivots - c0, chunk by chunk
    __half *table;             // groups x columns x d32: c~ in the order of |c'|
    Column *column;            // groups x columns, by position
    float2 *facts;             // groups x columns, by centroid: |c~|^2, at least |b|
    float *residual;           // groups x columns, by position: at least |b|
    std::int32_t *centroid;    // groups x columns: which centroid a position holds
    std::int32_t *position;    // groups x columns: the position of a centroid
    std::uint8_t *group;       // rows
    std::int32_t *order;       // rows, sorted by group
    std::int32_t *ambiguous;   // places in `order`, each group's from its offset on
    float *threshold;          // of the ambiguous rows
    std::int32_t *settle;      // rows
    // Of the filter on a Hopper (tensor_hopper.cuh).
    TileFacts *tiles;
    Slack *slack;    // rows
    FoundRow *found; // found_room
    std::int32_t found_room;
    // Rows prepared once for many assignments, in `order`; nullptr: converted on every load.
    __half *halves;   // rows x d8
    float2 *measures; // rows: sums of squares of x~ and of a
    std::int32_t groups;
    std::int32_t sample;
    std::int32_t columns; // k padded to column_tile
    std::int32_t d32;     // d padded to 32
    std::int32_t d8;      // d padded to 8
};

// Hands out aligned pieces of one allocation; with a null base it only measures.
class Carver {
  public:
    explicit Carver(char *base) : base_(base) {}
    template <typename U>
    U *take(std::size_t count)
    {
        U *piece = reinterpret_cast<U *>(base_ + used_);
        used_ += (count * sizeof(U) + 255) / 256 * 256;
        return piece;
    }
    std::size_t used() const { return used_; }

  private:
    char *base_;
    std::size_t used_ = 0;
};

inline int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

// What outlives a call when rows are prepared comes from `lasting`, the rest from `passing`.
// groups_at and sums are neighbours: one memset clears both.
template <typename T>
Layout<T> carve(Carver &lasting, Carver &passing, std::int64_t rows, int d, int k, int groups, bool prepared)
{
    Layout<T> l;
    l.groups = groups;
    l.sample = std::min(k, 256);
    l.columns = round_up(k, column_tile);
    l.d32 = round_up(d, feature_chunk);
    l.d8 = round_up(d, 8);
    const auto n = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(d);
    const std::size_t cells = static_cast<std::size_t>(groups) * static_cast<std::size_t>(l.columns);
    l.groups_at = lasting.take<Groups>(1);
    l.sums = lasting.take<T>(max_groups * width);
    l.pivots = lasting.take<T>(max_groups * width);
    l.order = lasting.take<std::int32_t>(n);
    l.halves = prepared ? lasting.take<__half>(n * static_cast<std::size_t>(l.d8)) : nullptr;
    l.measures = prepared ? lasting.take<float2>(n) : nullptr;
    l.head = passing.take<Head>(1);
    l.pairs = passing.take<float>(static_cast<std::size_t>(l.sample) * static_cast<std::size_t>(l.sample));
    l.pivot_tile = passing.take<__nv_bfloat16>(max_groups * static_cast<std::size_t>(l.d32));
    l.table = passing.take<__half>(cells * static_cast<std::size_t>(l.d32));
    l.column = passing.take<Column>(cells);
    l.facts = passing.take<float2>(cells);
    l.residual = passing.take<float>(cells);
    l.centroid = passing.take<std::int32_t>(cells);
    l.position = passing.take<std::int32_t>(cells);
    l.group = passing.take<std::uint8_t>(n);
    l.ambiguous = passing.take<std::int32_t>(n);
    l.threshold = passing.take<float>(n);
    l.settle = passing.take<std::int32_t>(n);
    l.found_room = prepared ? static_cast<std::int32_t>(n / 4) : 0;
    l.tiles = prepared ? passing.take<TileFacts>(n / 128 + 2 * max_groups) : nullptr;
    l.slack = prepared ? passing.take<Slack>(n) : nullptr;
    l.found = prepared ? passing.take<FoundRow>(n / 4) : nullptr;
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

// A centred and scaled value; within 2^-23 of itself (and 2^-149) of the exact one.
template <typename T>
__device__ inline float centred(T value, T pivot, T scale)
{
    return static_cast<float>((value - pivot) * scale);
}

template <typename V>
__device__ inline V sum_over_warp(V value)
{
    for (int offset = 16; offset > 0; offset >>= 1)
        value += __shfl_xor_sync(~0u, value, offset);
    return value;
}

__device__ inline void raise(unsigned long long *target, double value)
{
    // A NaN's bits lie above infinity's: it makes the box unusable, as it should.
    atomicMax(target, static_cast<unsigned long long>(__double_as_longlong(value)));
}

} // namespace pgkm::cuda::tensor
