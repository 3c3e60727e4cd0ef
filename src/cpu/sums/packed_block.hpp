// packed_block.hpp - sums of products of many features: a block of rows as panels for the tiles of
// matrix_kernels.hpp, which hold features side by side. For few features product_kernels.hpp is
// faster: its tiles waste less of a small triangle.
#pragma once

#include <cstdint>

#include "cpu/kernels/matrix_kernels.hpp"
#include "cpu/kernels/vector_kernels.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// From so many features on panels pay.
inline constexpr std::int32_t packed_features = 192;

// float64 values that add_packed() works in.
std::int64_t packed_memory(std::int32_t d);

// What add_packed() does for rows [0, rows), rows <= block_rows, of d values each: with x' = x - shift,
// sums[f] += x'[f] if `sums` is given, and triangle[a, b] += x'[a] x'[b] for b <= a, first <= a < last.
struct PackedTask {
    std::int32_t d, first, last;
    const double *shift;
    double *sums;     // d, or NULL
    double *triangle; // lower, by rows
};

template <typename T>
void add_packed(const MatrixKernels &kernels, const VectorKernels &vectors, const T *x, std::int64_t rows,
                const PackedTask &task, double *memory);

} // namespace pgkm::cpu
