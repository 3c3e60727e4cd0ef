// kernels.hpp - operations on columns: one float64 for each row of a batch.
//
// Columns begin on 64-byte boundaries. n is a multiple of 32. An infinity or NaN among the operands gives one in the
// result.
#pragma once

#include <cstdint>
#include <iterator>

#include "backend/reduction.h"
#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Operations that have a kernel; of the others each lane takes a function.
inline constexpr PgkmOperation unary_operations[] = {PGKM_NEGATE, PGKM_NOT,   PGKM_ABS,   PGKM_SQRT, PGKM_FLOOR,
                                                     PGKM_CEIL,   PGKM_ROUND, PGKM_TRUNC, PGKM_SIGN};
inline constexpr PgkmOperation binary_operations[] = {PGKM_ADD,   PGKM_SUBTRACT,   PGKM_MULTIPLY, PGKM_DIVIDE,
                                                      PGKM_LEAST, PGKM_GREATEST,   PGKM_EQUAL,    PGKM_NOT_EQUAL,
                                                      PGKM_LESS,  PGKM_LESS_EQUAL, PGKM_AND,      PGKM_OR};

// The place of an operation in such a list, or -1.
template <std::size_t N>
constexpr int kernel_of(const PgkmOperation (&operations)[N], PgkmOperation operation)
{
    for (std::size_t i = 0; i < N; ++i)
        if (operations[i] == operation)
            return static_cast<int>(i);
    return -1;
}

// Which operand is one number for all rows.
enum Broadcast : std::uint8_t { broadcast_none, broadcast_first, broadcast_second, broadcasts };

inline constexpr int sum_panel = 4;       // columns of a sum block
inline constexpr int parts_of_total = 16; // sums of the rows of each remainder, on every instruction set

using UnaryKernel = void(double *to, const double *a, int n);
using BinaryKernel = void(double *to, const double *a, const double *b, int n);

struct ReduceKernels {
    UnaryKernel *unary[std::size(unary_operations)];
    BinaryKernel *binary[std::size(binary_operations)][broadcasts];
    BinaryKernel *add_product[broadcasts]; // to = fma(a, b, to)
    void (*fill)(double *to, double value, int n);
    void (*choose)(double *to, const double *condition, const double *a, const double *b, int n);
    // Greatest: a greater one. Where a is less than `least`, that becomes a, and place the index.
    void (*take_extreme[2])(double *least, double *place, const double *a, double index, int n);
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
    BinaryKernel *mask;                                                 // a where b is not 0, else 0
    // The cell of each row, or -1 where the filter is 0 (NULL: nowhere) or something failed; live is 1 where there is
    // one. False if a filter is no number, or the cell of a row that it takes not one of 0 .. cells - 1.
    bool (*place)(double *to, double *live, const double *filter, const double *cell, double cells, int n);
};

const ReduceKernels &reduce_kernels(InstructionSet set);

} // namespace pgkm::cpu
