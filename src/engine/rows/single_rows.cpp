// single_rows.cpp - single rows against a model: what kmeans_predict and its siblings call.
#include <algorithm>
#include <limits>

#include "engine/api.h"
#include "numeric/contract.hpp"
#include "engine/rows/prepare.hpp"

namespace {

// Centroids side by side: each sum is a chain of dependent fmas, several chains hide its latency.
constexpr int chains = 8;

// exact_distance(row, centroid) for all centroids, the same operations in the same order.
__attribute__((always_inline)) inline void all_distances(const double *row, const double *centroids, int32_t k,
                                                         int32_t d, double *distances)
{
    int32_t j = 0;
    for (; j + chains <= k; j += chains) {
        double sums[chains] = {};
        for (int32_t f = 0; f < d; ++f)
            for (int c = 0; c < chains; ++c) {
                const double difference = row[f] - centroids[std::int64_t{j + c} * d + f];
                sums[c] = __builtin_fma(difference, difference, sums[c]);
            }
        std::copy(sums, sums + chains, distances + j);
    }
    for (; j < k; ++j)
        distances[j] = pgkm::exact_distance(row, centroids + std::int64_t{j} * d, d);
}

// Lanes go over centroids.
__attribute__((always_inline)) inline void nearest_of_octets(const double *row, const double *octets, int32_t k,
                                                             int32_t d, int32_t *label, double *distance)
{
    *label = 0;
    *distance = std::numeric_limits<double>::infinity();
    for (int32_t first = 0; first < k; first += chains, octets += std::int64_t{chains} * d) {
        double sums[chains] = {};
        for (int32_t f = 0; f < d; ++f)
            for (int c = 0; c < chains; ++c) {
                const double difference = row[f] - octets[std::int64_t{f} * chains + c];
                sums[c] = __builtin_fma(difference, difference, sums[c]);
            }
        for (int c = 0; c < chains; ++c)
            if (sums[c] < *distance) {
                *distance = sums[c];
                *label = first + c;
            }
    }
}

void nearest_of_octets_portable(const double *row, const double *octets, int32_t k, int32_t d, int32_t *label,
                                double *distance)
{
    nearest_of_octets(row, octets, k, d, label, distance);
}

void distances_portable(const double *row, const double *centroids, int32_t k, int32_t d, double *distances)
{
    all_distances(row, centroids, k, d, distances);
}

#if defined(__x86_64__)
// Without this, fma() is a call into libm on the x86-64 baseline.
__attribute__((target("avx2,fma"))) void distances_fma(const double *row, const double *centroids, int32_t k, int32_t d,
                                                       double *distances)
{
    all_distances(row, centroids, k, d, distances);
}

__attribute__((target("avx2,fma"))) void nearest_of_octets_fma(const double *row, const double *octets, int32_t k,
                                                               int32_t d, int32_t *label, double *distance)
{
    nearest_of_octets(row, octets, k, d, label, distance);
}
#endif

bool has_fma()
{
#if defined(__x86_64__)
    static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return has;
#else
    return false;
#endif
}

} // namespace

void pgkm_distances(const double *row, const double *centroids, int32_t k, int32_t d, double *distances)
{
#if defined(__x86_64__)
    if (has_fma())
        return distances_fma(row, centroids, k, d, distances);
#endif
    distances_portable(row, centroids, k, d, distances);
}

void pgkm_nearest(const double *row, const double *centroids, int32_t k, int32_t d, int32_t *label, double *distance)
{
    constexpr int32_t block = 64;
    double distances[block];
    *label = 0;
    *distance = std::numeric_limits<double>::infinity();
    for (int32_t first = 0; first < k; first += block) {
        const int32_t count = std::min(block, k - first);
        pgkm_distances(row, centroids + std::int64_t{first} * d, count, d, distances);
        for (int32_t j = 0; j < count; ++j)
            if (distances[j] < *distance) {
                *distance = distances[j];
                *label = first + j;
            }
    }
}

int64_t pgkm_octets_size(int32_t k, int32_t d)
{
    return (std::int64_t{k} + chains - 1) / chains * chains * d;
}

void pgkm_octets(const double *centroids, int32_t k, int32_t d, double *octets)
{
    std::fill_n(octets, pgkm_octets_size(k, d), std::numeric_limits<double>::infinity()); // beside the last: never near
    for (int32_t j = 0; j < k; ++j)
        for (int32_t f = 0; f < d; ++f)
            octets[(std::int64_t{j} / chains * d + f) * chains + j % chains] = centroids[std::int64_t{j} * d + f];
}

void pgkm_nearest_of_octets(const double *row, const double *octets, int32_t k, int32_t d, int32_t *label,
                            double *distance)
{
#if defined(__x86_64__)
    if (has_fma())
        return nearest_of_octets_fma(row, octets, k, d, label, distance);
#endif
    nearest_of_octets_portable(row, octets, k, d, label, distance);
}

int pgkm_transform_row(double *row, int32_t d, const double *center, const double *scale, PgkmMetric metric,
                       PgkmElement element)
{
    if (center == nullptr && metric == PGKM_L2)
        return 1;
    if (element == PGKM_FLOAT64)
        return pgkm::transform_row(row, d, center, scale, metric) ? 1 : 0;
    // float32 rows are rounded to float32 after each step, as the fit rounds them.
    const auto round_all = [&] {
        for (int32_t f = 0; f < d; ++f)
            row[f] = static_cast<float>(row[f]);
    };
    pgkm::transform_row(row, d, center, scale, PGKM_L2);
    round_all();
    const bool done = pgkm::transform_row(row, d, nullptr, nullptr, metric);
    round_all();
    return done ? 1 : 0;
}
