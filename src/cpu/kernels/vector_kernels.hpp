// vector_kernels.hpp - plain vector arithmetic in float64, for every instruction set.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

struct VectorKernels {
    // sum of x[i] y[i]
    double (*dot)(const double *x, const double *y, std::int64_t n);
    // y[i] += a x[i]
    void (*add)(double *y, double a, const double *x, std::int64_t n);
};

const VectorKernels &vector_kernels(InstructionSet set);

} // namespace pgkm::cpu
