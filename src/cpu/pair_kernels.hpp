// pair_kernels.hpp - exact squared distances of single (point, centroid) pairs.
//
// For what is left after a filter: the candidates of one row are few and different from the
// next row's, so lanes cannot run over points. Eight pairs go side by side instead, which
// hides the latency of their sequential sums.
#pragma once

#include <cstdint>

#include "cpu/instruction_set.hpp"

namespace pgkm::cpu {

struct PairKernels {
    // out[i] = D(x[i], c[i]).
    void (*distances_float)(const float *const *x, const float *const *c, std::int64_t count, int d, double *out);
    void (*distances_double)(const double *const *x, const double *const *c, std::int64_t count, int d, double *out);

    void distances(const float *const *x, const float *const *c, std::int64_t count, int d, double *out) const
    {
        distances_float(x, c, count, d, out);
    }
    void distances(const double *const *x, const double *const *c, std::int64_t count, int d, double *out) const
    {
        distances_double(x, c, count, d, out);
    }
};

const PairKernels &pair_kernels(InstructionSet set);

} // namespace pgkm::cpu
