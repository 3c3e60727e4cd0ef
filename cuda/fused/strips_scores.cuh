// strips_scores.cuh - float32 products on the tensor cores: values split into two fp16 each, scores
// with a proven bound, and the candidates that the bound leaves.
//
// Scores. With x' = fl(x - s), c' = fl(c - s), both times a power of two that brings the larger
// of X >= |x'| and R >= |c'| into [64, 128), a value is x' = x1 + x2 + e: x1 = fp16(x'), x2 =
// fp16(x' - x1), |x2| <= 2^-11 |x'|, |e| <= 2^-22 |x'| + 2^-25 per value. The score of c is
//     h + b - (x1 c1 + x2 c1 + x1 c2),   h = |c'|^2 / 2,   b = X^2 / 2 and a little more,
// so that scores, half the squared distance and a constant per row, are positive and their
// bits order like integers.
//
// Margin. Left out are x2 c2 and e's products, at most (3 + 2^-8) 2^-22 X R and what fp16 cannot
// hold of a value, however small that is: 2^-25, which by Cauchy-Schwarz makes `grain` (X + R) and
// grain^2, grain = sqrt(d) 2^-25. Rounding x - s and c - s moves D / 2 by u (X + R)^2 (1 + o(u)),
// u = 2^-24 (fused/few.cuh); h and b are rounded once, u S with S = R^2 / 2 + b + X R. A tensor core
// adds the 16 products and the accumulator after cutting them at 2^-23 of the largest or finer, then
// rounds: at most 2^-23 (17 A + S) for each product, A the largest addend (fixed_products.cuh sees
// to it). Parts add up apart, which keeps A small: x1 c1 in `steps` products from zero, where no
// addend is above X R; x2 c1 and x1 c2 in twice as many from the bias; and the constant at the end.
// E is the sum of it all, a score within 2 E of the least may be the nearest; the factor covers the
// comparison's own rounding and that of the contract's D.
#pragma once

#include <climits>

#include "device/tensor_mma.cuh"
#include "device/exact.cuh"

namespace pgkm::cuda {

// E above, in scaled units, of rows with |x'| <= x and centroids with |c'| <= r.
__device__ inline float parts_error(float x, float r, float bias, float grain, int steps)
{
    const float sum = x + r, product = x * r, s = 0.5f * r * r + bias + product;
    return static_cast<float>(steps) * (18.2f * 0x1p-23f) * (product + 2.0f * bias) + 3.1f * 0x1p-22f * product +
           1.01f * grain * (sum + grain) + 0x1p-24f * sum * sum + 0x1p-22f * s;
}

// Scale and bias of scores; usable: the values' range allows them.
struct HalfScale {
    float scale; // a power of two
    float bias;  // in scaled units
    bool usable;
};

// x, r: upper bounds of |x'| and |c'|.
__device__ inline HalfScale half_scale(float x, float r)
{
    const float most = fmaxf(x, r);
    if (!(most > 0x1p-60f && x < 0x1p60f && r < 0x1p60f)) // NaN too
        return {1.0f, 0.0f, false};
    const int exponent = 6 - (static_cast<int>(__float_as_uint(most) >> 23) - 127);
    const float scale = __int_as_float((exponent + 127) << 23);
    const float reach = x * scale, bias = 0.5f * reach * reach + 16.0f; // 2^-10 of 128^2: more than any error
    return {scale, bias, true};
}

__device__ inline float upper_half(float value)
{
    return __half2float(__float2half_rn(value));
}

// The least of a and two scores, all positive, as bits.
__device__ inline int least_bits(int a, float b, float c)
{
    return __vimin3_s32(a, __float_as_int(b), __float_as_int(c));
}

// Candidates are counted and named at once, by sums over the lanes that share a row: a one above
// column_bits for each, and its column below. The sum names the column if there is but one.
inline constexpr int column_bits = 20;
inline constexpr int one_candidate = 1 << column_bits;

// The only candidate that a sum names, or -1.
__device__ inline int sole_candidate(int sum)
{
    return sum >> column_bits == 1 ? sum & (one_candidate - 1) : -1;
}

// The same as a mask, for up to eight tiles: bit 2 t + c for column c of the lane's two in tile t.
template <int T>
__device__ inline unsigned mark_candidates(const float (&score)[T][4], int h, float threshold)
{
    static_assert(T <= 8);
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < T; ++t)
#pragma unroll
        for (int c = 0; c < 2; ++c)
            asm("{ .reg .pred p; setp.lt.f32 p, %1, %2; @p add.rn.f32 %0, %0, %3; }"
                : "+f"(sum)
                : "f"(score[t][2 * h + c]), "f"(threshold), "f"(static_cast<float>(1 << (2 * t + c))));
    return static_cast<unsigned>(__float_as_int(sum + 0x1p23f)) & ((1u << (2 * T)) - 1);
}

// The column of a mask's bit, for lane q of its quad.
__device__ inline int column_of(int bit, int q)
{
    return bit / 2 * 8 + bit % 2 + 2 * q;
}

// A mask as a sum of candidates.
__device__ inline int candidates_of(unsigned mask)
{
    const int bit = 31 - __clz(static_cast<int>(mask));
    return mask == 0 ? 0 : __popc(mask) * one_candidate + column_of(bit, static_cast<int>(threadIdx.x & 3));
}

} // namespace pgkm::cuda
