// matrix_product.cpp - the blocked product of Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008), cut so that each task owns a block of the result: its panels stay in the
// second-level cache, and no task waits for another.
#include "engine/matrix_product.hpp"

#include <algorithm>
#include <vector>

namespace pgkm {
namespace {

// Multiples of every tile's sides.
constexpr std::int64_t block_rows = 192;
constexpr std::int64_t block_columns = 192;
constexpr std::int64_t block_depth = 256;

// Panels of `width` columns of a block, depth by depth; what is missing in the last one is zero. Of
// a left operand: its transpose.
void pack(const MatrixView &from, std::int64_t first_row, std::int64_t depth, std::int64_t first_column,
          std::int64_t columns, int width, double factor, double *to)
{
    for (std::int64_t j = 0; j < columns; j += width) {
        const std::int64_t there = std::min<std::int64_t>(width, columns - j);
        for (std::int64_t p = 0; p < depth; ++p, to += width) {
            const double *const row = &from.at(first_row + p, first_column + j);
            for (std::int64_t i = 0; i < there; ++i)
                to[i] = factor * row[i * from.column_stride];
            std::fill(to + there, to + width, 0.0);
        }
    }
}

// One block of the result, from packed panels.
void multiply_panels(const cpu::MatrixKernels &kernels, const double *left, const double *right, std::int64_t depth,
                     std::int64_t rows, std::int64_t columns, double *c, std::int64_t stride)
{
    double edge[cpu::most_tile_rows * cpu::most_tile_columns];
    for (std::int64_t j = 0; j < columns; j += kernels.tile_columns)
        for (std::int64_t i = 0; i < rows; i += kernels.tile_rows) {
            const double *const a = left + i * depth, *const b = right + j * depth;
            double *const to = c + i * stride + j;
            const std::int64_t height = std::min<std::int64_t>(kernels.tile_rows, rows - i);
            const std::int64_t width = std::min<std::int64_t>(kernels.tile_columns, columns - j);
            if (height == kernels.tile_rows && width == kernels.tile_columns) {
                kernels.add_tile(a, b, depth, to, stride);
                continue;
            }
            std::fill(edge, edge + kernels.tile_rows * kernels.tile_columns, 0.0);
            kernels.add_tile(a, b, depth, edge, kernels.tile_columns);
            for (std::int64_t r = 0; r < height; ++r)
                for (std::int64_t s = 0; s < width; ++s)
                    to[r * stride + s] += edge[r * kernels.tile_columns + s];
        }
}

double *panels(std::size_t values)
{
    static thread_local std::vector<double> memory;
    if (memory.size() < values)
        memory.resize(values);
    return memory.data();
}

} // namespace

void add_product(const MatrixWork &work, double alpha, const MatrixView &a, const MatrixView &b, double *c,
                 std::int64_t stride, Part part)
{
    if (a.rows == 0 || b.columns == 0)
        return;
    const std::int64_t blocks_down = (a.rows + block_rows - 1) / block_rows;
    const std::int64_t blocks_across = (b.columns + block_columns - 1) / block_columns;
    work.run(blocks_down * blocks_across, [&](std::int64_t task) {
        const std::int64_t row = task / blocks_across * block_rows, column = task % blocks_across * block_columns;
        const std::int64_t rows = std::min(block_rows, a.rows - row),
                           columns = std::min(block_columns, b.columns - column);
        if (part == Part::upper && column + columns <= row)
            return;
        double *const left = panels((block_rows + block_columns) * block_depth);
        double *const right = left + block_rows * block_depth;
        for (std::int64_t p = 0; p < a.columns; p += block_depth) {
            work.poll();
            const std::int64_t depth = std::min(block_depth, a.columns - p);
            pack(a.transposed(), p, depth, row, rows, work.kernels.tile_rows, alpha, left);
            pack(b, p, depth, column, columns, work.kernels.tile_columns, 1.0, right);
            multiply_panels(work.kernels, left, right, depth, rows, columns, c + row * stride + column, stride);
        }
    });
}

} // namespace pgkm
