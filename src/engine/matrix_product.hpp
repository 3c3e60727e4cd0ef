// matrix_product.hpp - products of dense float64 matrices by the threads of a pool.
#pragma once

#include <cstdint>
#include <functional>

#include "backend/cpu/matrix_kernels.hpp"
#include "engine/platform.hpp"

namespace pgkm {

// Calls body(task) for all tasks in [0, tasks), in any order and from any threads.
using Tasks = std::function<void(std::int64_t tasks, const std::function<void(std::int64_t task)> &body)>;

// What matrix work runs with. The bits of its results do not depend on `run`.
struct MatrixWork {
    Tasks run;
    std::function<void()> poll; // from any thread, every millisecond or so; may throw
    const cpu::MatrixKernels &kernels;
};

// Element (i, j) is data[i * row_stride + j * column_stride].
struct MatrixView {
    const double *data;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t row_stride;
    std::int64_t column_stride;

    const double &at(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j * column_stride]; }
    MatrixView transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

enum class Part { all, upper }; // upper: what lies below the diagonal may be left as it was, or not

// c += alpha a b; c has a.rows x b.columns elements, rows `stride` apart.
void add_product(const MatrixWork &work, double alpha, const MatrixView &a, const MatrixView &b, double *c,
                 std::int64_t stride, Part part = Part::all);

} // namespace pgkm
