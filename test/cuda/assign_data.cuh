// assign_data.cuh - rows for the assignment checks, made on the device: value (i, f) of a set
// is a pure function of the seed, so that any program can make the same rows again.
#pragma once

#include <cstdint>

namespace assign_check {

enum class Kind { blobs, uniform, grid, offset, mixed, huge, tiny, far, clumps };

inline constexpr int clump_rows = 48; // one after the other

__host__ __device__ inline std::uint64_t hash(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Uniform in [0, 1).
__device__ inline double uniform(std::uint64_t seed, std::uint64_t index)
{
    return static_cast<double>(hash(seed ^ hash(index)) >> 11) * 0x1p-53;
}

__device__ inline double normal(std::uint64_t seed, std::uint64_t index)
{
    const double u = uniform(seed, 2 * index) + 0x1p-54, v = uniform(seed, 2 * index + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

__device__ inline double value_of(Kind kind, bool wide, std::uint64_t i, int f, int d)
{
    const std::uint64_t at = i * static_cast<std::uint64_t>(d) + static_cast<std::uint64_t>(f);
    const double blob = 200 * uniform(1, (hash(i) % 10) * 100003 + static_cast<std::uint64_t>(f)) - 100 +
                        normal(2, at) * 10 / sqrt(static_cast<double>(d));
    switch (kind) {
    case Kind::uniform:
        return uniform(3, at);
    case Kind::grid:
        return static_cast<double>(hash(at) % 3);
    case Kind::offset:
        return 1e6 + normal(4, at);
    // One feature from 1e-3 to 1e9, each row of another magnitude.
    case Kind::mixed:
        return exp10(12 * uniform(5, i) - 3) * (uniform(6, at) - 0.5);
    case Kind::huge:
        return (uniform(7, at) - 0.5) * (wide ? 1e150 : 6e38);
    case Kind::tiny:
        return (uniform(8, at) - 0.5) * (wide ? 1e-160 : 1e-38);
    // Most rows close together, a few far away: what a common scale has to span.
    case Kind::far:
        return normal(9, at) * (i % 97 == 0 ? 1e8 : 1.0);
    case Kind::clumps:
        return 200 * uniform(10, i / clump_rows * 100003 + static_cast<std::uint64_t>(f)) + normal(11, at);
    default:
        return blob;
    }
}

template <typename T>
__global__ void make_rows(T *values, std::int64_t n, int d, Kind kind)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n * d; i += stride)
        values[i] = static_cast<T>(
            value_of(kind, sizeof(T) == 8, static_cast<std::uint64_t>(i / d), static_cast<int>(i % d), d));
}

// Centroid j is a row drawn at random (so some are drawn twice), or the first of clump j.
template <typename T>
__global__ void draw_centroids(const T *values, std::int64_t n, int d, int k, Kind kind, T *centroids)
{
    for (int j = static_cast<int>(blockIdx.x); j < k; j += static_cast<int>(gridDim.x)) {
        const std::uint64_t drawn = kind == Kind::clumps ? static_cast<std::uint64_t>(j) * clump_rows
                                                         : hash(static_cast<std::uint64_t>(j) + 77);
        const auto row = static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(n));
        for (int f = static_cast<int>(threadIdx.x); f < d; f += static_cast<int>(blockDim.x))
            centroids[std::int64_t{j} * d + f] = values[row * d + f];
    }
}

// One plain step of Lloyd's method, for centroids as they are in mid-fit.
template <typename T>
__global__ void add_rows(const T *values, const std::int32_t *labels, std::int64_t n, int d, float *sums, float *counts)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n * d; i += stride) {
        atomicAdd(sums + std::int64_t{labels[i / d]} * d + i % d, static_cast<float>(values[i]));
        if (i % d == 0)
            atomicAdd(counts + labels[i / d], 1.0f);
    }
}

template <typename T>
__global__ void take_means(const float *sums, const float *counts, int d, int k, T *centroids)
{
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < k * d;
         i += static_cast<int>(gridDim.x * blockDim.x))
        if (counts[i / d] > 0)
            centroids[i] = static_cast<T>(sums[i] / counts[i / d]);
}

__global__ void count_differences(const std::int32_t *a, const std::int32_t *b, std::int64_t n,
                                  unsigned long long *count)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    unsigned long long mine = 0;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
        mine += a[i] != b[i];
    if (mine != 0)
        atomicAdd(count, mine);
}

} // namespace assign_check
