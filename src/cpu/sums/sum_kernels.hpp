// sum_kernels.hpp - adds rows to per-thread integer sums.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

// Where a block's rows go, and how they are scaled. Partial sums are k x stride. With weights a
// cluster's features have two sums each, d of upper limbs and then d of lower ones, and so has its mass.
struct SumTarget {
    std::int64_t *features;
    std::int64_t *masses;
    std::int64_t stride;
    const double *origin;        // d
    const double *feature_scale; // d
    double weight_scale;
};

struct SumKernels {
    // Row i (values + i * d) leaves cluster from[i] (negative: it was in none) for to[i]; nothing is done where
    // they are equal. weights, copies: NULL, or those of the rows. Returns how many rows moved.
    template <typename T>
    using Move = std::int64_t(const T *values, int count, int d, const std::int32_t *from, const std::int32_t *to,
                              const double *weights, const std::uint16_t *copies, const SumTarget &target);
    ForElements<Move> move;
};

const SumKernels &sum_kernels(InstructionSet set);

} // namespace pgkm::cpu
