// exact.cuh - device pieces that settle labels by the contract's distance, shared by kernels.
#pragma once

#include <cstdint>

#include "device/view.cuh"

namespace pgkm::cuda {

// exact_distance() with sixteen loads under way: the same operations in the same order.
template <typename T>
__device__ inline double distance_ahead(const T *x, const T *c, int d)
{
    constexpr int ahead = 16;
    double sum = 0.0;
    int f = 0;
    for (; f + ahead <= d; f += ahead) {
        T a[ahead], b[ahead];
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            a[i] = x[f + i];
            b[i] = c[f + i];
        }
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
            const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
            sum = ::fma(difference, difference, sum);
        }
    }
    for (; f < d; ++f) {
        const double difference = static_cast<double>(x[f]) - static_cast<double>(c[f]);
        sum = ::fma(difference, difference, sum);
    }
    return sum;
}

// A centroid and its distance, ordered as the contract orders them: nearer first, lowest
// index on a tie. label -1 stands for none.
struct Nearest {
    double       distance;
    std::int32_t label;
};

__device__ inline bool before(const Nearest &a, const Nearest &b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.label < b.label);
}

__device__ inline Nearest nearest_in_warp(Nearest mine)
{
    for (int offset = 16; offset > 0; offset >>= 1) {
        const Nearest other = {__shfl_xor_sync(~0u, mine.distance, offset), __shfl_xor_sync(~0u, mine.label, offset)};
        if (before(other, mine))
            mine = other;
    }
    return mine;
}

// The nearest of all centroids to one row, by a whole warp: lanes share out the centroids.
template <typename T>
__device__ inline Nearest settle_by_warp(const T *row, const T *centroids, int k, int d)
{
    Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
    for (int j = static_cast<int>(threadIdx.x & 31); j < k; j += 32) {
        const Nearest candidate = {exact_distance(row, centroids + std::int64_t{j} * d, d), j};
        if (before(candidate, mine))
            mine = candidate;
    }
    return nearest_in_warp(mine);
}

// The nearest of all centroids to one row, by one thread: eight partial distances at a time,
// so that a value of the row is read once for eight centroids (Aggarwal 2013, section 4.2).
template <typename T>
__device__ inline Nearest nearest_by_thread(const T *row, const T *centroids, int k, int d)
{
    constexpr int batch = 8;
    Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
    int j = 0;
    for (; j + batch <= k; j += batch) {
        double partial[batch] = {};
        for (int f = 0; f < d; ++f) {
            const double value = static_cast<double>(row[f]);
#pragma unroll
            for (int b = 0; b < batch; ++b) {
                const double difference = value - static_cast<double>(centroids[std::int64_t{j + b} * d + f]);
                partial[b] = ::fma(difference, difference, partial[b]);
            }
        }
#pragma unroll
        for (int b = 0; b < batch; ++b)
            if (partial[b] < best.distance)
                best = {partial[b], j + b};
    }
    for (; j < k; ++j) {
        const double distance = exact_distance(row, centroids + std::int64_t{j} * d, d);
        if (distance < best.distance)
            best = {distance, j};
    }
    return best;
}

// Sums one double per lane-held difference in the order of the features: lane l of the warp
// holds the value of feature first + l. Every lane returns the running sum.
__device__ inline double chain_squares(double mine, int count, double sum)
{
    for (int i = 0; i < count; ++i) {
        const double value = __shfl_sync(~0u, mine, i);
        sum = ::fma(value, value, sum);
    }
    return sum;
}

} // namespace pgkm::cuda
