// strips_rows.cuh - what warps do with strips of 16 rows, whichever kernel gives them to them: products with the
// centroids of the pivot's list, the candidates these leave, exact labels, and sums that follow the rows.
#pragma once

#include "fused/strips_pivot.cuh"

namespace pgkm::cuda {
namespace {

// Where rows lie.
struct RowSource {
    const float *values;
    int d;

    __device__ const float *row(std::int32_t i) const { return values + std::int64_t{i} * d; }
};

// The rows' side of the products: x1 and x2 of a strip; and the squares of x' of the lane's two rows.
template <int C>
struct Rows {
    unsigned high[C][4];
    unsigned low[C][4];
};

template <int C, int W>
__device__ void load_rows(const RowSource &source, int d, const Shared &shared, const std::int32_t (&row)[2],
                          float scale, Rows<C> &rows, float (&square)[2])
{
    float value[2][C][4];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 0; c < C; ++c)
            load_slots<W>(source.row(row[h]), c, d, value[h][c]);
    square[0] = square[1] = 0.0f;
#pragma unroll
    for (int c = 0; c < C; ++c) {
        const float4 shift = shared.shift[c * 4 + (threadIdx.x & 3)];
        const float shifts[4] = {shift.x, shift.y, shift.z, shift.w};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
#pragma unroll
            for (int w = 0; w < 4; w += 2) {
                const float first = __fmaf_rn(value[h][c][w], scale, -shifts[w]);
                const float second = __fmaf_rn(value[h][c][w + 1], scale, -shifts[w + 1]);
                square[h] = __fmaf_rn(first, first, __fmaf_rn(second, second, square[h]));
                const __half2 high = __floats2half2_rn(first, second);
                const float2 back = __half22float2(high);
                rows.high[c][w + h] = *reinterpret_cast<const unsigned *>(&high);
                rows.low[c][w + h] = tensor::pack_halves(first - back.x, second - back.y);
            }
        }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        square[h] = sum_lanes<4>(square[h]);
    }
}

// What a row's scores start from, and how near to the least one its nearest centroid's lies, by the row's own length
// x = |x'| and not by its pivot's radius, which one far row makes large.
//
// A centroid p is `least` from the pivot, so D_j <= (x + least)^2 for a nearest centroid j, and |c_j| <= q = 2 x +
// least. The centroid m of the least score is not much longer: m's score is at most p's, so (D_m - D_p) / 2 is at
// most both errors; D_m - D_p >= (|c_m| - q)(|c_m| + least), x <= |c_m| / 2, and an error is at most 2^-15 (x + r)^2 +
// grain (x + r). Hence |c_m| <= (q + 12 grain)(1 + 2^-11) < r, and both errors are those at r. The bias keeps scores
// positive: it is above x^2 / 2 by more than the error at r. A centroid beyond r has D >= |c|^2 / 4 and, as r is above
// 4,096 grain, an error below 2^-8 D / 2.
struct RowBound {
    float x, r, bias, margin; // in scaled units
};

template <int C>
__device__ RowBound bound_row(const PivotList &list, float square)
{
    float x;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(x) : "f"(square)); // within 2^-22 of itself
    x = x * (1.0f + 0x1p-17f) + 0x1p-50f;
    const float r = fminf(list.reach, (2.0f * x + list.least) * (1.0f + 0x1p-8f) + 4096.0f * list.grain);
    const float bias = 0.5f * (1.0f + 0x1p-8f) * x * x + 0x1p-8f * r * r + 0x1p-30f;
    return {x, r, bias, 2.04f * parts_error(x, r, bias, list.grain, C)};
}

// Scores of the strip against T tiles from `first` on; the large products, the small ones with the bias and the
// constant add up apart, which keeps the error small.
template <int C, int T>
__device__ void multiply(const Shared &shared, const Rows<C> &rows, const RowBound (&bound)[2], int first,
                         float (&score)[T][4])
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    float small[T][4];
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
        for (int t = 0; t < T; ++t) {
            const uint4 b = shared.operands[((first + t) * C + c) * 32 + lane];
            if (c == 0) {
                tensor::multiply_fp16_from(score[t], rows.high[c], b.x, b.y, {});
                tensor::multiply_fp16_from(small[t], rows.low[c], b.x, b.y,
                                           {bound[0].bias, bound[0].bias, bound[1].bias, bound[1].bias});
            } else {
                tensor::multiply_fp16(score[t], rows.high[c], b.x, b.y);
                tensor::multiply_fp16(small[t], rows.low[c], b.x, b.y);
            }
            tensor::multiply_fp16(small[t], rows.high[c], b.z, b.w);
        }
#pragma unroll
    for (int t = 0; t < T; ++t) {
        const float2 constant = *reinterpret_cast<const float2 *>(shared.constant + (first + t) * 8 + 2 * (lane & 3));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            score[t][i] += small[t][i] + (i % 2 == 0 ? constant.x : constant.y);
    }
}

// The lane's own candidates among `tiles` tiles, T at a time; T tiles are multiplied once.
template <int C, int T>
__device__ void filter(const Shared &shared, const Rows<C> &rows, const RowBound (&bound)[2], int tiles,
                       unsigned (&own)[2])
{
    float score[T][4];
    int least[2] = {INT_MAX, INT_MAX}; // scores as bits
    for (int first = 0; first < tiles; first += T) {
        multiply<C, T>(shared, rows, bound, first, score);
#pragma unroll
        for (int t = 0; t < T; ++t)
            for (int h = 0; h < 2; ++h)
                least[h] = least_bits(least[h], score[t][2 * h], score[t][2 * h + 1]);
    }
    float threshold[2];
    for (int h = 0; h < 2; ++h) {
        least[h] = join_lanes<4>(least[h], [](int a, int b) { return min(a, b); }); // of the row's lanes
        threshold[h] = __int_as_float(least[h]) + bound[h].margin;
        own[h] = 0;
    }
    for (int first = tiles - T; first >= 0; first -= T) { // the last tiles' scores are still there
        if (first < tiles - T)
            multiply<C, T>(shared, rows, bound, first, score);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            own[h] |= mark_candidates<T>(score, h, threshold[h]) << (2 * first);
    }
}

// The same for a pivot's list, however long.
template <int C>
__device__ void filter_list(const Shared &shared, const Rows<C> &rows, const RowBound (&bound)[2],
                            const PivotList &list, unsigned (&own)[2])
{
    if (tiles_of(list.listed) == 1)
        filter<C, 1>(shared, rows, bound, 1, own);
    else if (tiles_of(list.listed) == 2)
        filter<C, 2>(shared, rows, bound, 2, own);
    else
        filter<C, 4>(shared, rows, bound, tiles_of(list.listed), own);
}

// The label of the row that a lane sees to, its first for even lanes, its second for odd ones: the only candidate's, or
// -1.
__device__ inline int sole_label(const Shared &shared, const PivotList &list, const unsigned (&own)[2])
{
    const int odd = static_cast<int>(threadIdx.x & 1), sums[2] = {candidates_of(own[0]), candidates_of(own[1])};
    int sum = (odd ? sums[1] : sums[0]) + __shfl_xor_sync(~0u, odd ? sums[0] : sums[1], 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int sole = list.listed == 1 ? 0 : list.usable ? sole_candidate(sum) : -1;
    return sole < 0 ? -1 : shared.list[sole];
}

// The squared distance of the quad's row from a centroid, in an order of its own; float64.
__device__ inline double rough_distance(const float *x, const float *c, int d)
{
    double sum = 0.0;
#pragma unroll 4
    for (int f = static_cast<int>(threadIdx.x & 3); f < d; f += 4)
        add_term(sum, x[f], c[f]);
    sum += __shfl_xor_sync(~0u, sum, 1);
    return sum + __shfl_xor_sync(~0u, sum, 2);
}

// The label of the quad's row among its candidates by the contract's distances; each lane measures its own.
__device__ inline int exact_among(const float *x, const Centroids &centroids, const std::int32_t *listed, unsigned mask)
{
    Nearest mine = {INFINITY, INT_MAX};
    for (; mask != 0; mask &= mask - 1) {
        const int j = listed[column_of(__ffs(static_cast<int>(mask)) - 1, static_cast<int>(threadIdx.x & 3))];
        const Nearest candidate = {exact_distance(x, centroids[j], centroids.d), j};
        mine = before(candidate, mine) ? candidate : mine;
    }
    __syncwarp();
    return nearest_in_lanes<4>(mine).label;
}

// Labels of the warp's open rows, a quad each: float64 distances to the candidates, and the contract's own where those
// are too near to each other. Without usable scores, the contract's distances to all centroids.
__device__ __noinline__ int settle(RowSource source, Centroids centroids, const std::int32_t *listed, std::int32_t row,
                                   int label, unsigned candidates, bool usable)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = centroids.d;
    // Both sums are of the same rounded differences, in at most d + 5 roundings of 2^-53.
    const double slack = 1.0 + 4.0 * static_cast<double>(d + 8) * 0x1p-53;
    const float *x = source.row(row);
    double best = INFINITY, second = INFINITY;
    int nearest = 0;
    const bool open = label < 0;
    for (int q = 0; q < 4; ++q) {
        unsigned mask = __shfl_sync(~0u, open && usable ? candidates : 0u, (lane & ~3) + q);
        while (__any_sync(~0u, mask != 0)) {
            const int j = listed[mask == 0 ? 0 : column_of(__ffs(static_cast<int>(mask)) - 1, q)];
            const double measured = rough_distance(x, centroids[j], d);
            const double distance = mask == 0 ? INFINITY : measured;
            second = fmin(second, fmax(best, distance));
            nearest = distance < best ? j : nearest;
            best = fmin(best, distance);
            mask &= mask - 1;
        }
    }
    if (open)
        label = second > best * slack + 0x1p-1000 ? nearest : -1; // below that, underflow counts
    if (!__any_sync(~0u, label < 0))
        return label;
    if (usable) {
        const int exact = exact_among(x, centroids, listed, label < 0 ? candidates : 0u);
        return label < 0 ? exact : label;
    }
    for (unsigned left = __ballot_sync(~0u, label < 0); left != 0;) {
        const int owner = __ffs(static_cast<int>(left)) - 1;
        const std::int32_t open_row = __shfl_sync(~0u, row, owner);
        const std::int32_t exact =
            settle_by_warp(source.row(open_row), centroids.values, centroids.k, centroids.d).label;
        if (row == open_row)
            label = exact;
        left &= ~__ballot_sync(~0u, row == open_row);
    }
    return label;
}

// The same of a strip's two rows, for the lanes that see to them.
__device__ inline int settle_strip(const RowSource &source, const Centroids &centroids, const Shared &shared,
                                   const PivotList &list, const std::int32_t (&row)[2], const unsigned (&own)[2],
                                   int label)
{
    if (!__any_sync(~0u, label < 0))
        return label;
    const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int mine = __shfl_sync(~0u, label, (lane & ~3) + h);
        if (!__any_sync(~0u, mine < 0))
            continue;
        mine = settle(source, centroids, shared.list, row[h], mine, own[h], list.usable);
        label = h == (lane & 1) ? mine : label;
    }
    return label;
}

// A row's values of the features that a lane sees to, `lane` and `lane` + 32.
__device__ inline float2 load_pair(const RowSource &source, int d, std::int32_t row)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const float *values = source.row(row) + lane;
    return {lane < d ? values[0] : 0.0f, lane + 32 < d ? values[32] : 0.0f};
}

__device__ inline void add_limbs(Limbs15 &sum, const Limbs15 &limbs)
{
    sum.high += limbs.high;
    sum.middle += limbs.middle;
    sum.low += limbs.low;
}

// Moves the rows of a warp whose label changed, lanes over the features. Those that take the same way
// are added up in registers first: neighbours in the pivots' order mostly do. A sum's limbs stay
// within those of as many additions as rows.
__device__ __noinline__ void move_rows(const MoveArguments &a, RowSource rows, MoveCounters counters, std::int32_t row,
                                       int from, int to, unsigned moved)
{
    const int lane = static_cast<int>(threadIdx.x & 31), d = a.view.d, none = a.last.none();
    const FloatScaling scale = float_scaling(a.view, min(lane, d - 1), a.floats);
    const FloatScaling upper_scale = float_scaling(a.view, min(lane + 32, d - 1), a.floats);
    while (moved != 0) {
        int member = __ffs(static_cast<int>(moved)) - 1;
        const int source = __shfl_sync(~0u, from, member), target = __shfl_sync(~0u, to, member);
        unsigned alike = moved & __ballot_sync(~0u, from == source && to == target);
        moved &= ~alike;
        const int count = __popc(alike);
        Limbs15 lower = {}, upper = {};
        std::int32_t next = __shfl_sync(~0u, row, member);
        float2 ahead = load_pair(rows, d, next);
        do {
            const float2 x = ahead;
            alike &= alike - 1;
            if (alike != 0) {
                next = __shfl_sync(~0u, row, __ffs(static_cast<int>(alike)) - 1);
                ahead = load_pair(rows, d, next);
            }
            add_limbs(lower, feature_limbs15(a.view, min(lane, d - 1), x.x, scale, a.floats));
            if (d > 32)
                add_limbs(upper, feature_limbs15(a.view, min(lane + 32, d - 1), x.y, upper_scale, a.floats));
        } while (alike != 0);
        if (lane < d)
            counters.move(source, target, none, lane, lower, 0);
        if (lane + 32 < d)
            counters.move(source, target, none, lane + 32, upper, 0);
        if (lane == 0)
            counters.move(source, target, none, d, {0, 0, count}, 0);
    }
}

} // namespace
} // namespace pgkm::cuda
