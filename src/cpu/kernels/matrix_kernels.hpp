// matrix_kernels.hpp - the inner loops of dense float64 matrices, for every instruction set.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// The largest tile of any instruction set.
inline constexpr int most_tile_rows = 8;
inline constexpr int most_tile_columns = 24;

struct MatrixKernels {
    // Of a product's tile: how panels are packed.
    int tile_rows;
    int tile_columns;

    // c[i * stride + j] += sum over p of a[p * tile_rows + i] * b[p * tile_columns + j], for a whole tile.
    void (*add_tile)(const double *a, const double *b, std::int64_t depth, double *c, std::int64_t stride);
};

const MatrixKernels &matrix_kernels(InstructionSet set);

} // namespace pgkm::cpu
