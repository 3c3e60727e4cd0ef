// exponential.cuh - exp() of the difference of a log density from its row's largest. float32 does for
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

} // namespace pgkm::cuda::mixture
