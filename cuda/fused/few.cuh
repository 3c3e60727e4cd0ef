// few.cuh - the filter of few.cu: scores of rows in registers against octets of centroids in shared memory, in
// float32.
//
// Scores. With x' = fl(x - s), c' = fl(c - s) the score h - x'.c', h = fl(|c'|^2 / 2), is one FFMA per feature, and
// smaller for nearer centroids: D = |x'|^2 + 2 score up to rounding.
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

#include "device/best.cuh"
#include "device/exact.cuh"
#include "plan/choose.hpp"

namespace pgkm::cuda {

// 2 E for rows with |x'| <= x and centroids with |c'| <= r, of d features.
__device__ inline float filter_margin(float x, float r, int d)
{
    const float bound = static_cast<float>(d + 4) * (0.5f * r * r + x * r) + (x + r) * (x + r);
    return 2.04f * 0x1p-24f * bound + 0x1p-100f;
}

// Scores of four centroids of an octet for P rows: a value is read once for all of them.
// octet: D x 8 values of c', feature by feature, and behind them 8 of h.
template <int D, int P>
__device__ inline void four_scores(const float *octet, const float (&negated)[P][D], float (&score)[P][4])
{
    const float4 h = *reinterpret_cast<const float4 *>(octet + D * octet_size);
#pragma unroll
    for (int p = 0; p < P; ++p) {
        score[p][0] = h.x;
        score[p][1] = h.y;
        score[p][2] = h.z;
        score[p][3] = h.w;
    }
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float4 c = *reinterpret_cast<const float4 *>(octet + f * octet_size);
#pragma unroll
        for (int p = 0; p < P; ++p) {
            score[p][0] = __fmaf_rn(negated[p][f], c.x, score[p][0]);
            score[p][1] = __fmaf_rn(negated[p][f], c.y, score[p][1]);
            score[p][2] = __fmaf_rn(negated[p][f], c.z, score[p][2]);
            score[p][3] = __fmaf_rn(negated[p][f], c.w, score[p][3]);
        }
    }
}

// Takes an octet's first K centroids into account, for P rows at once; they are centroids from `base` on. negated:
// s - x, zeros where d is padded. zero: unknown_zero(). Where the margin is finite no score is NaN.
template <int D, int P, int K>
__device__ inline void filter(const float *octet, int base, const float (&negated)[P][D], float zero, Best (&best)[P])
{
    float score[P][4];
#pragma unroll
    for (int first = 0; first < K; first += 4) {
        four_scores<D, P>(octet + first, negated, score);
#pragma unroll
        for (int p = 0; p < P; ++p)
#pragma unroll
            for (int j = 0; j < 4; ++j)
                best[p].take(score[p][j], base + first + j, zero);
    }
}

// The same of all octets, one by one.
template <int D, int P>
__device__ inline void filter_each(const float *octets, int count, const float (&negated)[P][D], float zero,
                                   Best (&best)[P])
{
#pragma unroll 1
    for (int octet = 0; octet < count; ++octet)
        filter<D, P, octet_size>(octets + octet * (D + 1) * octet_size, octet * octet_size, negated, zero, best);
}

// The same where there are few features, so that most instructions compare: octets are compared by their least scores,
// which takes half of them. The best one is looked into again, with the same scores; the second least of all is its
// own or the least of another.
template <int D, int P>
__device__ inline void filter_by_least(const float *octets, int count, const float (&negated)[P][D], float zero,
                                       Best (&best)[P])
{
    constexpr int words = (D + 1) * octet_size;
    float score[P][4], least[P];
#pragma unroll 1
    for (int octet = 0; octet < count; ++octet) {
#pragma unroll
        for (int first = 0; first < octet_size; first += 4) {
            four_scores<D, P>(octets + octet * words + first, negated, score);
#pragma unroll
            for (int p = 0; p < P; ++p) {
                const float four = fminf(fminf(score[p][0], score[p][1]), fminf(score[p][2], score[p][3]));
                least[p] = first == 0 ? four : fminf(least[p], four);
            }
        }
#pragma unroll
        for (int p = 0; p < P; ++p)
            best[p].take(least[p], octet, zero);
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
        float one[1][D];
        Best inner[1] = {Best::none()};
#pragma unroll
        for (int f = 0; f < D; ++f)
            one[0][f] = negated[p][f];
        filter<D, 1, octet_size>(octets + best[p].index * words, best[p].index * octet_size, one, zero, inner);
        inner[0].second = fminf(inner[0].second, best[p].second);
        best[p] = inner[0];
    }
}

} // namespace pgkm::cuda
