// point.cuh - rows held in registers, for the kernels whose names begin with register_: each compares
// them with centroids that lie in another kind of memory (Aggarwal 2013, section 4.1; Li, Zhao, Chu,
// Liu 2010, Algorithm 3).
//
// Distances are the contract's own, in float64 and in its order: labels need no settling.
#pragma once

#include <type_traits>

#include "plan/choose.hpp"
#include "device/exact.cuh"

namespace pgkm::cuda {

// Calls body(std::integral_constant<int, D>{}) with the least D >= d that kernels are built for;
// false where a point of d features does not fit the registers.
template <typename Body>
bool with_register_size(int d, Body &&body)
{
    switch (register_size(d)) {
    case 1: body(std::integral_constant<int, 1>{}); return true;
    case 2: body(std::integral_constant<int, 2>{}); return true;
    case 3: body(std::integral_constant<int, 3>{}); return true;
    case 4: body(std::integral_constant<int, 4>{}); return true;
    case 6: body(std::integral_constant<int, 6>{}); return true;
    case 8: body(std::integral_constant<int, 8>{}); return true;
    case 12: body(std::integral_constant<int, 12>{}); return true;
    case 16: body(std::integral_constant<int, 16>{}); return true;
    default: return false;
    }
}

template <int D>
struct Point {
    double x[D];
};

template <int D, typename T>
__device__ inline Point<D> load_point(const View<T> &view, std::int64_t row)
{
    Point<D> point;
#pragma unroll
    for (int f = 0; f < D; ++f)
        point.x[f] = f < view.d ? static_cast<double>(view.values[row * view.d + f]) : 0.0;
    return point;
}

template <int D, typename T>
__device__ inline double distance_to(const Point<D> &point, const T *centroid, int d)
{
    double sum = 0.0;
#pragma unroll
    for (int f = 0; f < D; ++f)
        if (f < d) {
            const double difference = point.x[f] - static_cast<double>(centroid[f]);
            sum = ::fma(difference, difference, sum);
        }
    return sum;
}

// The nearer of `best` and the `count` centroids at `centroids`, whose indices begin at `first`
// (above that of `best`, so that ties stay with the lowest).
template <int D, typename T>
__device__ inline Nearest nearer(const Point<D> &point, const T *centroids, int count, int d, int first, Nearest best)
{
    for (int j = 0; j < count; ++j) {
        const double distance = distance_to(point, centroids + std::int64_t{j} * d, d);
        if (distance < best.distance)
            best = {distance, first + j};
    }
    return best;
}

__device__ inline Nearest none_yet() { return {__longlong_as_double(0x7ff0000000000000LL), 0}; }

} // namespace pgkm::cuda
