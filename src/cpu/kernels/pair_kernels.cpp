// pair_kernels.cpp - exact distances of eight pairs at a time.
//
// Differences are taken by vectors, sums one feature after the other.
#include "cpu/kernels/pair_kernels.hpp"

#include <algorithm>
#include <cmath>

#define HWY_TARGET_INCLUDE "cpu/kernels/pair_kernels.cpp"
#include "cpu/kernels/per_target.hpp"

HWY_BEFORE_NAMESPACE();
namespace pgkm::cpu::HWY_NAMESPACE {
inline constexpr int pairs = 8;

// The differences of one pair's features come as vectors; the sum must take them one by one.
template <typename T>
HWY_INLINE void eight_pairs(const T *const *x, const T *const *c, int d, double *out)
{
    HWY_ALIGN_MAX double difference[pairs][lanes];
    double sum[pairs] = {};
    int f = 0;
    for (; f + lanes <= d; f += lanes) {
        HWY_UNROLL(8)
        for (int p = 0; p < pairs; ++p)
            hn::Store(hn::Sub(load_wide(x[p] + f), load_wide(c[p] + f)), tag, difference[p]);
        for (int i = 0; i < lanes; ++i) {
            HWY_UNROLL(8)
            for (int p = 0; p < pairs; ++p)
                sum[p] = std::fma(difference[p][i], difference[p][i], sum[p]);
        }
    }
    for (; f < d; ++f) {
        for (int p = 0; p < pairs; ++p) {
            const double rest = static_cast<double>(x[p][f]) - static_cast<double>(c[p][f]);
            sum[p] = std::fma(rest, rest, sum[p]);
        }
    }
    std::copy_n(sum, pairs, out);
}

template <typename T>
void distances(const T *const *x, const T *const *c, std::int64_t count, int d, double *out)
{
    std::int64_t i = 0;
    for (; i + pairs <= count; i += pairs)
        eight_pairs(x + i, c + i, d, out + i);
    if (i == count)
        return;
    // The rest, filled up with its first pair.
    const T *last_x[pairs], *last_c[pairs];
    double last[pairs];
    for (int p = 0; p < pairs; ++p) {
        last_x[p] = x[i + p < count ? i + p : i];
        last_c[p] = c[i + p < count ? i + p : i];
    }
    eight_pairs(last_x, last_c, d, last);
    std::copy_n(last, count - i, out + i);
}

// Distances of x to C points by S sums for each.
template <int C, int S, typename T>
HWY_INLINE void estimate(const T *x, const T *const *c, int d, T *out)
{
    const hn::ScalableTag<T> tag;
    const int width = static_cast<int>(hn::Lanes(tag));
    hn::Vec<decltype(tag)> sum[C][S];
    HWY_UNROLL(4)
    for (int i = 0; i < C; ++i) {
        HWY_UNROLL(4)
        for (int s = 0; s < S; ++s)
            sum[i][s] = hn::Zero(tag);
    }
    int f = 0;
    for (; f + S * width <= d; f += S * width) {
        HWY_UNROLL(4)
        for (int s = 0; s < S; ++s) {
            const auto own = hn::LoadU(tag, x + f + s * width);
            HWY_UNROLL(4)
            for (int i = 0; i < C; ++i) {
                const auto difference = hn::Sub(own, hn::LoadU(tag, c[i] + f + s * width));
                sum[i][s] = hn::MulAdd(difference, difference, sum[i][s]);
            }
        }
    }
    for (int i = 0; i < C; ++i) {
        auto whole = sum[i][0];
        for (int s = 1; s < S; ++s)
            whole = hn::Add(whole, sum[i][s]);
        T rest = hn::GetLane(hn::SumOfLanes(tag, whole));
        for (int g = f; g < d; ++g)
            rest += (x[g] - c[i][g]) * (x[g] - c[i][g]);
        out[i] = rest;
    }
}

template <typename T>
void estimates(const T *x, const T *const *c, int count, int d, T *out)
{
    int i = 0;
    for (; i + 4 <= count; i += 4)
        estimate<4, 2>(x, c + i, d, out + i);
    for (; i + 2 <= count; i += 2)
        estimate<2, 4>(x, c + i, d, out + i);
    for (; i < count; ++i)
        estimate<1, 4>(x, c + i, d, out + i);
}

} // namespace pgkm::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

PGKM_KERNELS(PairKernels, pair_kernels, {distances<float>, distances<double>}, {estimates<float>, estimates<double>})
