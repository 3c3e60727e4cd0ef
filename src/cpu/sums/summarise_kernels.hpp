// summarise_kernels.hpp - what summarise() does to one block of rows, for every instruction set.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Rows of one block, n x d.
template <typename T>
struct SummaryRows {
    const T *values;
    const double *weights; // n, or NULL
    std::int64_t n;
    std::int32_t d;
};

// Per feature; the caller sets them to +inf and -inf before the first block.
struct Ranges {
    double *min;
    double *max;
};

// Per feature: what contract.hpp's MomentScale holds, the scales as powers of two.
struct MomentScales {
    const double *middle;
    const double *value_scale;
    const double *square_scale;
};

// Per feature: integer sums of (x - middle) and of the limbs of (x - middle)^2.
struct MomentSums {
    std::uint64_t *value; // two's complement
    std::uint64_t *square_hi;
    std::uint64_t *square_lo;
};

struct SummaryKernels {
    // Widens the ranges by the rows of a block.
    template <typename T>
    using Widen = void(const SummaryRows<T> &block, const Ranges &ranges);
    ForElements<Widen> widen;
    // Sums over a block of at most partial_sum_length rows.
    template <typename T>
    using MomentsOf = void(const SummaryRows<T> &block, const MomentScales &scales, const MomentSums &sums);
    ForElements<MomentsOf> moments;
};

const SummaryKernels &summary_kernels(InstructionSet set);

} // namespace pgkm::cpu
