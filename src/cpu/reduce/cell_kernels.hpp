// cell_kernels.hpp - columns on their way into cells: sums of rows, integers, places.
//
// Columns begin on 64-byte boundaries and hold numbers up to the next multiple of 32 rows.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Rows of at most 2^45 each whose sums of every 16th stay whole numbers in float64.
inline constexpr int most_quantised = 2048;

struct CellKernels {
    // Over `rows` rows, those alone where live is not 0 (or NULL: all).
    bool (*is_finite)(const double *a, const double *live, int rows);
    // Sums of a, and of a * b: the same bits on every instruction set, and a number only if all are.
    double (*total)(const double *a, const double *live, int rows);
    double (*total_of_products)(const double *a, const double *b, const double *live, int rows);
    // The greatest magnitude, or no number if one is none.
    double (*largest)(const double *a, const double *live, int rows);
    // quantise() of numeric/contract.hpp: each, as a float64, and the sum of at most most_quantised rows.
    void (*quantise)(double *to, const double *a, double scale, int n);
    std::int64_t (*total_quantised)(const double *a, double scale, const double *live, int rows);
    // The cell of each row, or -1 where the filter is 0 (NULL: nowhere) or something failed; live is 1 where there is
    // one. False if a filter is no number, or the cell of a row that it takes not one of 0 .. cells - 1.
    bool (*place)(double *to, double *live, const double *filter, const double *cell, double cells, int rows);
};

const CellKernels &cell_kernels(InstructionSet set);

} // namespace pgkm::cpu
