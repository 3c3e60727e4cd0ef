// batch_kernels.hpp - operations on columns: one float64 for each row of a batch.
//
// Columns begin on 64-byte boundaries. n is a multiple of 32. An infinity or NaN among the
// operands gives one in the result.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

enum UnaryKernel : std::uint8_t {
    unary_negate,
    unary_not,
    unary_abs,
    unary_sqrt,
    unary_floor,
    unary_ceil,
    unary_round,
    unary_trunc,
    unary_sign,
    unary_kernels
};

enum BinaryKernel : std::uint8_t {
    binary_add,
    binary_subtract,
    binary_multiply,
    binary_divide,
    binary_least,
    binary_greatest,
    binary_equal,
    binary_not_equal,
    binary_less,
    binary_less_equal,
    binary_and,
    binary_or,
    binary_kernels
};

// Which operand is one number for all rows.
enum Broadcast : std::uint8_t { broadcast_none, broadcast_first, broadcast_second, broadcasts };

// Columns of a sum block.
inline constexpr int sum_panel = 4;

using SumBlockKernel = void(const double *x, std::int64_t stride, const double *table, std::int64_t count, double *sums,
                            int n);

struct BatchKernels {
    void (*unary[unary_kernels])(double *to, const double *a, int n);
    void (*binary[binary_kernels][broadcasts])(double *to, const double *a, const double *b, int n);
    void (*choose)(double *to, const double *condition, const double *a, const double *b, int n);
    void (*fill)(double *to, double value, int n);
    // to = fma(a - b, a - b, to); b may be one number.
    void (*add_square_of[broadcasts])(double *to, const double *a, const double *b, int n);
    void (*add_sum)(double *to, const double *a, int n);
    void (*add_product[broadcasts])(double *to, const double *a, const double *b, int n); // fma(a, b, to)
    void (*multiply_by)(double *to, const double *a, int n);
    void (*add_count)(double *to, const double *a, int n); // where a is not 0
    // A least value so far: `best` begins with infinity, `poison` with 0. Where a is less, place takes the index.
    void (*least)(double *best, double *place, double *poison, const double *a, double index, int n);
    void (*greatest)(double *best, double *place, double *poison, const double *a, double index, int n);
    void (*add_poison)(double *to, const double *poison, int n); // NaN where it is not 0
    // sums[j * stride + r] for j < sum_panel, of `count` columns x, stride apart; table: count x sum_panel.
    SumBlockKernel *products;
    SumBlockKernel *squares;
};

const BatchKernels &batch_kernels(InstructionSet set);

} // namespace pgkm::cpu
