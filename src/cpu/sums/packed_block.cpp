// packed_block.cpp - adds products of many features, panel by panel.
#include "cpu/sums/packed_block.hpp"

#include <algorithm>

#include "cpu/kernels/product_kernels.hpp"

namespace pgkm::cpu {
namespace {

// Rows of a panel: one of the right stays in the first-level cache while those of the left pass by.
constexpr std::int64_t depth = 192;

constexpr std::int64_t padded(std::int64_t features)
{
    return (features / most_tile_columns + 2) * most_tile_columns;
}

// Deviations of features [first, last) in panels `width` wide, row by row; zeros beyond the last.
template <typename T>
void pack(const T *x, std::int64_t rows, const PackedTask &task, std::int32_t first, std::int32_t last, int width,
          double *to)
{
    // Row by row: rows may lie a power of two apart, and lines of the same features in one set of a cache.
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int32_t f = first; f < last; f += width) {
            const int there = std::min(width, last - f);
            const T *__restrict const from = x + r * task.d + f;
            const double *__restrict const shift = task.shift + f;
            double *__restrict const panel = to + (f - first) * rows + r * width;
            for (int i = 0; i < there; ++i)
                panel[i] = static_cast<double>(from[i]) - shift[i];
            std::fill(panel + there, panel + width, 0.0);
        }
}

void add_sums(const double *panels, std::int64_t rows, std::int32_t d, int width, double *sums)
{
    for (std::int32_t f = 0; f < d; f += width, panels += rows * width) {
        double own[most_tile_columns] = {};
        for (std::int64_t r = 0; r < rows; ++r)
            for (int i = 0; i < width; ++i)
                own[i] += panels[r * width + i];
        for (int i = 0; i < std::min(width, d - f); ++i)
            sums[f + i] += own[i];
    }
}

// Adds what of a tile at features (a, b) belongs to the task.
void add_to_triangle(const VectorKernels &vectors, const double *tile, int rows, int columns, std::int32_t a,
                     std::int32_t b, const PackedTask &task)
{
    for (std::int32_t i = std::max(task.first - a, 0); i < std::min(rows, task.last - a); ++i)
        vectors.add(task.triangle + triangle_size(a + i) + b, 1.0, tile + i * columns,
                    std::min(columns, a + i - b + 1));
}

} // namespace

std::int64_t packed_memory(std::int32_t d)
{
    return 2 * padded(d) * depth;
}

template <typename T>
void add_packed(const MatrixKernels &kernels, const VectorKernels &vectors, const T *x, std::int64_t rows,
                const PackedTask &task, double *memory)
{
    const int height = kernels.tile_rows, width = kernels.tile_columns;
    const std::int32_t begin = task.first / height * height;
    double *const left = memory, *const right = memory + padded(task.d) * depth;
    for (std::int64_t done = 0; done < rows; done += depth) {
        const std::int64_t count = std::min(depth, rows - done);
        pack(x + done * task.d, count, task, begin, task.last, height, left);
        pack(x + done * task.d, count, task, 0, task.sums == nullptr ? task.last : task.d, width, right);
        if (task.sums != nullptr)
            add_sums(right, count, task.d, width, task.sums);
        for (std::int32_t b = 0; b < task.last; b += width)
            for (std::int32_t a = std::max(begin, b / height * height); a < task.last; a += height) {
                double tile[most_tile_rows * most_tile_columns] = {};
                kernels.add_tile(left + (a - begin) * count, right + b * count, count, tile, width);
                add_to_triangle(vectors, tile, height, width, a, b, task);
            }
    }
}

template void add_packed<float>(const MatrixKernels &, const VectorKernels &, const float *, std::int64_t,
                                const PackedTask &, double *);
template void add_packed<double>(const MatrixKernels &, const VectorKernels &, const double *, std::int64_t,
                                 const PackedTask &, double *);

} // namespace pgkm::cpu
