// score_bound.hpp - what separates a float32 score (score_kernels.hpp) from its exact value.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace pgkm::cpu {

// Features per chain of fused operations: long enough to keep the sums in registers, short enough
// that the error bound, which grows with it, stays small.
inline constexpr std::int32_t score_chain = 32;

// The bound. With the shift m let X = x - m and C = c - m, exactly; the score stands for
// t = |C|^2 / 2 - X.C, which orders centroids as |x - c|^2 does. u = 2^-24.
//
//   1. Centring rounds each coordinate once (for float64 input the subtraction in float64 adds
//      less than 2^-28 u): |X' - X| <= 1.0001 u |X| per coordinate, and so for C', plus 2^-149
//      where the result is subnormal.
//   2. X'.C' is summed in chains of L = 32 features from 0, one rounding per feature (two
//      without a fused operation: read 2 L for L), and the p = ceil(d / L) chains are added to
//      the score one by one. By the usual analysis the rounding error is at most
//      (L + p) u (1 + small) sum |X'_i C'_i|, and p u (1 + small) |C|^2 / 2 for what the start
//      contributes to the partial sums; subnormal products add d 2^-149.
//   3. The start is |C|^2 / 2, summed in float64 and rounded once: u |C|^2 / 2 (1 + small).
//
// By Cauchy and Schwarz sum |X_i C_i| <= |X| |C|. So with r = |X| and R the longest |C|
//      |score - t| <= (L + p + 4) u r R + (p + 2) u R^2 / 2 + (subnormals),
// where "small", below 0.001, is covered by a factor of 1.01.
//
class ScoreBound {
  public:
    ScoreBound() = default;
    // Of points of d features, and centroids no longer than largest_centroid (infinity: there is no bound).
    ScoreBound(std::int32_t d, double largest_centroid, bool fused) : d_(d), largest_(largest_centroid)
    {
        const double chains = std::ceil(d_ / score_chain);
        const double roundings = (fused ? 1.0 : 2.0) * std::fmin(d_, score_chain);
        product_ = 1.01 * unit * (roundings + chains + 4.0);
        half_square_ = 1.01 * unit * (chains + 2.0);
    }

    // The length of a point, at most and at least, from the sum of its squares by d float32 operations; squares below
    // 2^-149 were lost.
    double length_above(double squares) const
    {
        return std::sqrt(squares * (1.0 + sum_error()) + d_ * 0x1p-147) * more;
    }
    double square_below(double squares) const { return squares * (1.0 - sum_error()) - d_ * 0x1p-147; }

    // Most that a score of a point of length r is off. Infinite where float32 cannot hold the scores.
    double of(double r) const
    {
        const double scale = r + largest_;
        if (!(scale * scale < largest_score) || d_ * unit > 0.01)
            return std::numeric_limits<double>::infinity();
        return (product_ * r * largest_ + half_square_ * largest_ * largest_ / 2.0 + d_ * 0x1p-147 * (1.0 + scale)) *
               more;
    }

    double largest() const { return largest_; }

  private:
    static constexpr double unit = 0x1p-24; // of float32 rounding
    static constexpr double more = 1.0 + 4.0 * unit;
    static constexpr double largest_score = 0x1p120; // beyond this, scores could meet infinity on the way

    double sum_error() const { return 2.0 * 1.01 * unit * (d_ + 4.0); }

    double d_ = 0.0;
    double largest_ = 0.0;
    double product_ = 0.0; // relative error of a product x.c, in terms of the lengths
    double half_square_ = 0.0;
};

} // namespace pgkm::cpu
