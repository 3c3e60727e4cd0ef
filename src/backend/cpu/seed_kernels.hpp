// seed_kernels.hpp - what seeding does to one block of rows, for every instruction set.
//
// All distances are exact_distance() of the contract, computed for several rows and
// candidates at once: each lane adds its features in order, one fma each.
#pragma once

#include <cstdint>

#include "engine/platform.hpp"

namespace pgkm::cpu {

// Rows of one problem or of one block of it.
template <typename T>
struct SeedRows {
    const T      *values;  // n x d
    const double *weights; // n, or NULL: every row weighs 1
    std::int64_t  n;
    std::int32_t  d;

    const T *row(std::int64_t i) const { return values + i * d; }
    double weight(std::int64_t i) const { return weights == nullptr ? 1.0 : weights[i]; }
    SeedRows slice(std::int64_t first, std::int64_t count) const
    {
        return {row(first), weights == nullptr ? nullptr : weights + first, count, d};
    }
};

// Candidate centroids in float64, count x d.
struct SeedCandidates {
    const double *values;
    std::int32_t  count;
    std::int32_t  first_index; // label of the first of them
};

// Lowers nearest[i] to the distance of the nearest candidate; labels (may be NULL) follow,
// the earlier candidate keeping a tie. Returns the largest weight * nearest of the block.
template <typename T>
double lower_nearest(const SeedRows<T> &block, const SeedCandidates &candidates, double *nearest,
                     std::int32_t *labels);

// Sum of the sampling integers of the block: floor(weight * nearest * scale).
template <typename T>
std::uint64_t sum_masses(const SeedRows<T> &block, const double *nearest, double scale);

// The same sum for each candidate, as if it were chosen. All in one pass over the rows.
template <typename T>
void sum_trials(const SeedRows<T> &block, const SeedCandidates &candidates, const double *nearest, double scale,
                std::uint64_t *sums);

} // namespace pgkm::cpu
