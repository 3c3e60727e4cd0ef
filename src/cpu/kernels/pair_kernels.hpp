// pair_kernels.hpp - exact squared distances of single (point, centroid) pairs.
//
// For what is left after a filter: the candidates of one row are few and different from the
// next row's, so lanes cannot run over points. Eight pairs go side by side instead, which
// hides the latency of their sequential sums.
#pragma once

#include <cstdint>

#include "cpu/kernels/element_kernel.hpp"
#include "cpu/kernels/instruction_set.hpp"

namespace pgkm::cpu {

struct PairKernels {
    // out[i] = D(x[i], c[i]) for i < count, of d features each.
    template <typename T>
    using Distances = void(const T *const *x, const T *const *c, std::int64_t count, int d, double *out);
    ForElements<Distances> distances;

    // out[i] = |x - c[i]|^2 by arithmetic of type T in any order. Where squares neither overflow nor underflow its
    // relative error is at most (d + 12) u, u = 2^-24 or 2^-53; one that underflows adds 2^-149 at most.
    template <typename T>
    using Estimates = void(const T *x, const T *const *c, int count, int d, T *out);
    ForElements<Estimates> estimates;
};

const PairKernels &pair_kernels(InstructionSet set);

} // namespace pgkm::cpu
