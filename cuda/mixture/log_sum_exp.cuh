// log_sum_exp.cuh - exp() of the difference of a log density from its row's largest. float32 does for
// float32 rows: its error of 1e-7 is that of the rows.
#pragma once

#include <type_traits>

namespace pgkm::cuda::mixture {

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, float>, float, double>;

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
// Within 2^-20 of any value of that order.
__device__ inline double value_near(int order)
{
    return __hiloint2double(order ^ ((order >> 31) & 0x7fffffff), 0);
}

} // namespace pgkm::cuda::mixture
