// exact.cuh - the contract's distance and the nearest centroid by it, by a thread or a warp: what settles labels.
//
// Reference: exact_distance() of src/numeric/contract.hpp, whose operations and order all of these keep.
#pragma once

#include <cstdint>

#include "device/view.cuh"
#include "device/warp.cuh"

namespace pgkm::cuda {

// Adds a feature's term to the contract's distance, whose terms come in the order of the features.
template <typename A, typename B>
__device__ inline void add_term(double &sum, A a, B b)
{
    const double difference = static_cast<double>(a) - static_cast<double>(b);
    sum = ::fma(difference, difference, sum);
}

// The values of one load of 16 bytes.
template <typename T>
struct Piece {
    static constexpr int width = 16 / sizeof(T);
    T value[width];
};

// Volatile, for the compiler to leave the load whole and where it is.
__device__ inline void load_piece(const float *from, Piece<float> &to)
{
    asm volatile("ld.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to.value[0]), "=f"(to.value[1]), "=f"(to.value[2]), "=f"(to.value[3])
                 : "l"(from)
                 : "memory");
}
__device__ inline void load_piece(const double *from, Piece<double> &to)
{
    asm volatile("ld.v2.f64 {%0, %1}, [%2];" : "=d"(to.value[0]), "=d"(to.value[1]) : "l"(from) : "memory");
}

// exact_distance() with four pieces of each row under way, where both allow such loads: the same operations in the same
// order.
template <typename T>
__device__ inline double distance_ahead(const T *x, const T *c, int d)
{
    constexpr int width = Piece<T>::width, ahead = 4;
    const auto places = reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(c);
    double sum = 0.0;
    int f = 0;
    if (places % 16 == 0)
        for (; f + ahead * width <= d; f += ahead * width) {
            Piece<T> a[ahead], b[ahead];
#pragma unroll
            for (int i = 0; i < ahead; ++i) {
                load_piece(x + f + i * width, a[i]);
                load_piece(c + f + i * width, b[i]);
            }
#pragma unroll
            for (int i = 0; i < ahead; ++i)
#pragma unroll
                for (int j = 0; j < width; ++j)
                    add_term(sum, a[i].value[j], b[i].value[j]);
        }
#pragma unroll 8
    for (; f < d; ++f)
        add_term(sum, x[f], c[f]);
    return sum;
}

// The squared distance of two rows in float32, by a warp, where a rough one will do; at most far_away, NaN too.
inline constexpr float far_away = 3e38f;
template <typename T>
__device__ inline float rough_square_by_warp(const T *a, const T *b, int d)
{
    float sum = 0.0f;
    for (int f = static_cast<int>(threadIdx.x & 31); f < d; f += 32) {
        const auto difference = static_cast<float>(a[f] - b[f]);
        sum = fmaf(difference, difference, sum);
    }
    return fminf(sum_lanes(sum), far_away);
}

// A centroid and its distance, ordered as the contract orders them: nearer first, lowest
// index on a tie. label -1 stands for none.
struct Nearest {
    double distance;
    std::int32_t label;
};

__device__ inline bool before(const Nearest &a, const Nearest &b)
{
    return a.distance < b.distance || (a.distance == b.distance && a.label < b.label);
}

// The nearest of what `Lanes` neighbouring lanes of a warp have, a power of two, for all of them; by all lanes.
template <int Lanes = 32>
__device__ inline Nearest nearest_in_lanes(Nearest mine)
{
    for (int offset = Lanes / 2; offset > 0; offset >>= 1) {
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
    return nearest_in_lanes(mine);
}

// body(f) for the features 0 .. d - 1: unrolled to D of them, or a loop where D is 0.
template <int D, typename Body>
__device__ inline void each_feature(int d, Body &&body)
{
    if constexpr (D == 0) {
        for (int f = 0; f < d; ++f)
            body(f);
    } else {
#pragma unroll
        for (int f = 0; f < D; ++f)
            if (f < d)
                body(f);
    }
}

// The nearer of `best` and `count` centroids whose labels begin at `first` (above that of `best`, so that ties stay
// with the lowest), by one thread: eight partial distances at a time, so that a value of the row is read once for eight
// centroids (Aggarwal 2013, section 4.2). row(f) and centroid(j, b, f), feature f of centroid j + b, are float64.
template <int D, typename Row, typename Centroid>
__device__ inline Nearest nearer(const Row &row, const Centroid &centroid, int count, int d, int first, Nearest best)
{
    constexpr int batch = 8;
    int j = 0;
    for (; j + batch <= count; j += batch) {
        double partial[batch] = {};
        each_feature<D>(d, [&](int f) {
            const double value = row(f);
#pragma unroll
            for (int b = 0; b < batch; ++b)
                add_term(partial[b], value, centroid(j, b, f));
        });
#pragma unroll
        for (int b = 0; b < batch; ++b)
            if (partial[b] < best.distance)
                best = {partial[b], first + j + b};
    }
    for (; j < count; ++j) {
        double sum = 0.0;
        each_feature<D>(d, [&](int f) { add_term(sum, row(f), centroid(j, 0, f)); });
        if (sum < best.distance)
            best = {sum, first + j};
    }
    return best;
}

// The nearest of all centroids to one row, by one thread.
template <typename T>
__device__ inline Nearest nearest_by_thread(const T *row, const T *centroids, int k, int d)
{
    const auto value = [=](int f) { return static_cast<double>(row[f]); };
    const auto centroid = [=](int j, int b, int f) {
        return static_cast<double>(centroids[std::int64_t{j + b} * d + f]);
    };
    return nearer<0>(value, centroid, k, d, 0, {__longlong_as_double(0x7ff0000000000000LL), 0});
}

} // namespace pgkm::cuda
