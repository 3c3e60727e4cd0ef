// log_sum_exp.cuh (mixture) - log densities to responsibilities: exp() of the difference of a log density from its
// row's largest. float32 does for float32 rows: its error of 1e-7 is that of the rows. The lanes that share a row
// exchange what they have by shuffles; all lanes of a warp take part.
#pragma once

#include <cmath>
#include <type_traits>

namespace pgkm::cuda::mixture {

__device__ inline float exponential(float x)
{
    return expf(x);
}
__device__ inline double exponential(double x)
{
    return exp(x);
}

// Log-sum-exp needs a value near the largest, not the largest: the comparison of the upper halves of
// float64 values as integers costs less than that of the values, which would wait for the unit that
// the tensor cores' float64 products go through.
__device__ inline int order_of(double x)
{
    const int high = __double2hiint(x);
    return high ^ ((high >> 31) & 0x7fffffff);
}
// Within 2^-20 of any value of that order, relative to it.
__device__ inline double value_near(int order)
{
    return __hiloint2double(order ^ ((order >> 31) & 0x7fffffff), 0);
}
// Whether such a value is too far from the largest for exp() of the difference: farther than 1. Log
// densities as large as that and positive there are none.
__device__ inline bool is_far_down(int order)
{
    return order < order_of(-0x1p20);
}

// A value of each of the lanes whose numbers differ by First to Last, joined: each gets the result.
template <int First, int Last, typename V, typename Join>
__device__ inline V over_lanes(V value, Join &&join)
{
#pragma unroll
    for (int distance = First; distance <= Last; distance *= 2)
        value = join(value, __shfl_xor_sync(~0u, value, distance));
    return value;
}

// The largest of a row's log densities, or a value within 1 of it. The row lies in the lanes whose numbers
// differ by First to Last; all lanes of the warp call it.
template <int First, int Last, int Own>
__device__ inline double about_largest(const double (&density)[Own])
{
    int order = order_of(density[0]);
#pragma unroll
    for (int i = 1; i < Own; ++i)
        order = max(order, order_of(density[i]));
    order = over_lanes<First, Last>(order, [](int a, int b) { return max(a, b); });
    if (!__any_sync(~0u, is_far_down(order)))
        return value_near(order);
    double largest = density[0];
#pragma unroll
    for (int i = 1; i < Own; ++i)
        largest = fmax(largest, density[i]);
    return over_lanes<First, Last>(largest, [](double a, double b) { return fmax(a, b); });
}

// Responsibilities of a row from its log densities, of which this lane has `own`; the row lies in the lanes whose
// numbers differ by First to Last. Calls use(i, r) with the responsibility of own[i], 0 for a row that is not `inside`.
// Adds the largest log density to log_likelihood, and returns the factor of the row's likelihood that is left beside
// exp() of it.
template <typename Exponential, int First, int Last, int Own, typename Use>
__device__ inline double row_shares(const double (&own)[Own], bool inside, double &log_likelihood, Use &&use)
{
    const double largest = about_largest<First, Last>(own);
    Exponential part[Own], sum = 0;
#pragma unroll
    for (int i = 0; i < Own; ++i)
        sum += part[i] = exponential(static_cast<Exponential>(own[i] - largest));
    sum = over_lanes<First, Last>(sum, [](Exponential a, Exponential b) { return a + b; });
    const Exponential inverse = inside ? 1 / sum : 0;
#pragma unroll
    for (int i = 0; i < Own; ++i)
        use(i, part[i] * inverse);
    if (!inside)
        return 1.0;
    log_likelihood += largest;
    return static_cast<double>(sum);
}

// The same of two rows from the fragments of a product, components by rows (mma.cuh): a lane has elements 0 and 2 of
// the first row in each, 1 and 3 of the second. Calls use(m, element, r); rows_left: how many of the two there are.
template <typename Exponential, int Components, typename Use>
__device__ inline double responsibilities(const double (&density)[Components][4], int rows_left, double &log_likelihood,
                                          Use &&use)
{
    double factor = 1.0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        double own[2 * Components];
#pragma unroll
        for (int m = 0; m < 2 * Components; ++m)
            own[m] = density[m / 2][i + m % 2 * 2];
        factor *= row_shares<Exponential, 4, 16>(own, i < rows_left, log_likelihood,
                                                 [&](int m, Exponential r) { use(m / 2, i + m % 2 * 2, r); });
    }
    return factor;
}

} // namespace pgkm::cuda::mixture
