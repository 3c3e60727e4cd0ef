// kernels.hpp - operations on columns: one float64 for each row of a batch.
//
// Columns begin on 64-byte boundaries. n is a multiple of 32. An infinity or NaN among the operands gives one in the
// result.
#pragma once

#include <cstdint>

#include "backend/reduction.h"
#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// One number for each row, or one for all.
struct Operand {
    const double *at;
    bool column;

    double of(int row) const { return at[column ? row : 0]; }
};

inline constexpr int sum_panel = 4;       // columns of a sum block
inline constexpr int parts_of_total = 16; // sums of the rows of each remainder, on every instruction set

using OperationKernel = void(double *to, Operand a, Operand b, Operand c, int n);
// One step of a loop, with the value of its body or two factors of that. best: of argmin and argmax the value at `to`.
using LoopKernel = void(double *to, double *best, Operand a, Operand b, double index, int n);

struct ReduceKernels {
    OperationKernel *operations[PGKM_CASE - PGKM_NEGATE + 1]; // NULL: each row takes function_of()
    LoopKernel *loops[PGKM_COUNT - PGKM_SUM + 1];
    LoopKernel *add_product; // to = fma(a, b, to)
    void (*fill)(double *to, double value, int n);
    // Of products, and of squared differences: sums[j * stride + r] for j < sum_panel over `count` columns x, stride
    // apart, and a table of count x sum_panel numbers.
    void (*sum_block[2])(const double *x, std::int64_t stride, const double *table, std::int64_t count, double *sums,
                         int n);

    // ---- into cells ----
    bool (*is_finite)(const double *a, int n);
    double (*largest)(const double *a, int n); // magnitude; no number if one is none
    // Of a, or of a * b where b is not NULL; scale not 0: of quantise(a).
    void (*total)(const double *a, const double *b, double scale, int n, double *sums);
    void (*quantise)(double *to, const double *a, double scale, int n); // quantise() of numeric/contract.hpp
    void (*mask)(double *to, const double *a, const double *b, int n);  // a where b is not 0, else 0
    // The cell of each row, or -1 where the filter is 0 (NULL: nowhere) or something failed; live is 1 where there is
    // one. False if a filter is no number, or the cell of a row that it takes not one of 0 .. cells - 1.
    bool (*place)(double *to, double *live, const double *filter, const double *cell, double cells, int n);
};

const ReduceKernels &reduce_kernels(InstructionSet set);

} // namespace pgkm::cpu
