// summarise_kernels.hpp - what summarise() does to one block of rows, for every instruction set.
#pragma once

#include <cstdint>

#include "engine/contract.hpp"
#include "engine/platform.hpp"

namespace pgkm::cpu {

// Rows of one block, n x d.
template <typename T>
struct SummaryRows {
    const T      *values;
    const double *weights; // n, or NULL
    std::int64_t  n;
    std::int32_t  d;
};

// Per feature; the caller sets them to +inf, -inf and 0 before the first block.
struct Ranges {
    double *min;
    double *max;
    double *max_abs; // |weight * value|
};

// Per feature: integer sums of (x - middle) and of the limbs of (x - middle)^2.
struct MomentSums {
    std::int64_t *value;
    std::int64_t *square_hi;
    std::int64_t *square_lo;
};

// Widens the ranges by the rows of a block.
template <typename T>
void widen_ranges(const SummaryRows<T> &block, const Ranges &ranges);

// Adds a block of at most partial_sum_length rows to sums that start at 0.
template <typename T>
void add_moments(const SummaryRows<T> &block, const MomentScale *scales, const MomentSums &sums);

} // namespace pgkm::cpu
