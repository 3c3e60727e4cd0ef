// register.cuh - the register kernel: the point in registers, centroids in shared memory.
//
// One kernel body serves two strategies: assign/register (labels out, Aggarwal 2013 section
// 4.1, Li et al. 2010 Algorithm 3) and fused/register (sums out, Lutz et al. 2018
// Single-Pass). The filter is float32; what it cannot decide is settled by exact_distance.
//
// Filter. With x' = fl(x - s), c' = fl(c - s) the score h - x'.c', h = fl(|c'|^2 / 2), is one
// FFMA per feature, and smaller for nearer centroids: D = |x'|^2 + 2 score up to rounding.
// Scores are compared in groups of eight: the least score of a group and the second least of
// the groups cost 1.5 comparisons per centroid; the winning group is then evaluated again.
//
// Margin. Let u = 2^-24, X >= |x'| (the box), R >= |c'|. A computed score differs from
// h' - x'.c' (h' exact) by at most u h + (d + 1) u (h + |x'||c'|)(1 + o(u)) <= (d + 2) u
// (R^2/2 + X R). Rounding x - s and c - s moves |x - c| by at most u (X + R), hence D by
// 2 u (X + R) |x - c| + ..., |x - c| <= X + R, and D / 2 by u (X + R)^2 (1 + o(u)). So scores
// err by at most E = u [(d + 2)(R^2/2 + X R) + (X + R)^2] and a best score that is below all
// others by more than 2 E belongs to the nearest centroid. The kernel uses d + 4 for d + 2
// and a factor of 1.02 for the o(u) terms, the comparison's own rounding and the rounding of
// the contract's D (relative (d + 2) 2^-53); 2^-100 covers underflow of products. NaN and
// infinities (squares beyond float32) fail the comparison and are settled exactly.
#pragma once

#include "device/exact.cuh"
#include "device/operands.cuh"
#include "device/load_row.cuh"

namespace pgkm::cuda {

__device__ inline float register_margin(const FilterHead &head, int d)
{
    const float x = head.box, r = head.radius;
    const float bound = static_cast<float>(d + 4) * (0.5f * r * r + x * r) + (x + r) * (x + r);
    return 2.04f * 0x1p-24f * bound + 0x1p-100f;
}

// A row with its negated centred values, 0 - 0 where d is padded.
template <int D>
__device__ inline void load_row(const float *values, std::int64_t row, int d, const float4 *factors, float (&x)[D],
                                float (&negated)[D])
{
    load_row<D>(values, row, d, x);
#pragma unroll
    for (int f = 0; f < D; ++f)
        negated[f] = factors[f].w - x[f];
}

// Scores of four centroids of a group for P points: a value is read once for all of them.
template <int D, int P>
__device__ inline void four_scores(const float *panel, const float (&negated)[P][D], float (&score)[P][4])
{
    const float4 h = *reinterpret_cast<const float4 *>(panel + D * panel_group);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        score[p][0] = h.x;
        score[p][1] = h.y;
        score[p][2] = h.z;
        score[p][3] = h.w;
    }
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float4 c = *reinterpret_cast<const float4 *>(panel + f * panel_group);
#pragma unroll
        for (int p = 0; p < P; ++p) {
            score[p][0] = __fmaf_rn(negated[p][f], c.x, score[p][0]);
            score[p][1] = __fmaf_rn(negated[p][f], c.y, score[p][1]);
            score[p][2] = __fmaf_rn(negated[p][f], c.z, score[p][2]);
            score[p][3] = __fmaf_rn(negated[p][f], c.w, score[p][3]);
        }
    }
}

// The least and second least of scores whose values are at hand.
struct Best {
    float least;
    float second;
    int   index;
};

__device__ inline float least_of(const float (&score)[4])
{
    return fminf(fminf(score[0], score[1]), fminf(score[2], score[3]));
}

// Takes four more scores, of centroids first .. first + 3, into account.
__device__ inline void take(Best &best, const float (&score)[4], int first)
{
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const bool nearer = score[j] < best.least;
        best.second = fminf(best.second, fmaxf(best.least, score[j]));
        best.least = fminf(best.least, score[j]);
        best.index = nearer ? first + j : best.index;
    }
}

// The least score of each group of eight and the second least of the groups; then the winning
// groups once more.
template <int D, int P>
__device__ inline void filter_groups(const float *panel, int groups, int stride, const float (&negated)[P][D], Best (&best)[P])
{
    const float infinity = __int_as_float(0x7f800000);
    float s[P][4];
#pragma unroll 1
    for (int g = 0; g < groups; ++g) {
        float first_half[P];
        four_scores<D, P>(panel + g * stride, negated, s);
#pragma unroll
        for (int p = 0; p < P; ++p)
            first_half[p] = least_of(s[p]);
        four_scores<D, P>(panel + g * stride + 4, negated, s);
#pragma unroll
        for (int p = 0; p < P; ++p) {
            const float least = fminf(first_half[p], least_of(s[p]));
            const bool nearer = least < best[p].least;
            best[p].second = fminf(best[p].second, fmaxf(best[p].least, least));
            best[p].least = fminf(best[p].least, least);
            best[p].index = nearer ? g : best[p].index;
        }
    }
    // The winning groups once more, now one centroid at a time.
#pragma unroll
    for (int p = 0; p < P; ++p) {
        const float(&one)[1][D] = *reinterpret_cast<const float(*)[1][D]>(&negated[p]);
        float(&score)[1][4] = *reinterpret_cast<float(*)[1][4]>(&s[p]);
        const float *group = panel + best[p].index * stride;
        Best inside = {infinity, infinity, 0};
        four_scores<D, 1>(group, one, score);
        take(inside, score[0], 0);
        four_scores<D, 1>(group + 4, one, score);
        take(inside, score[0], 4);
        best[p] = {inside.least, fminf(best[p].second, inside.second), best[p].index * panel_group + inside.index};
    }
}

// Filtered labels of P points at once. Few: all centroids (at most Few) are one group.
template <int D, int P, int Few>
__device__ inline void filter(const float *panel, int groups, int stride, const float (&negated)[P][D], Best (&best)[P])
{
    const float infinity = __int_as_float(0x7f800000);
    float s[P][4];
#pragma unroll
    for (int p = 0; p < P; ++p)
        best[p] = {infinity, infinity, 0};
    if constexpr (Few > 0) {
#pragma unroll
        for (int first = 0; first < Few; first += 4) {
            four_scores<D, P>(panel + first, negated, s);
#pragma unroll
            for (int p = 0; p < P; ++p)
                take(best[p], s[p], first);
        }
    } else {
        filter_groups<D, P>(panel, groups, stride, negated, best);
    }
}

} // namespace pgkm::cuda
