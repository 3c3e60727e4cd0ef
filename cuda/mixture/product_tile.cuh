// product_tile.cuh (mixture) - 64 rows about an origin times 64 columns of factors, and the next 64, on the tensor
// cores.
//
// Shape: any. Columns are components, whose factors of y and y^2 make log densities (product_densities.cu), or rows of
// a triangular W (densities.cu).
// Data: a warp has 16 of the rows and all of the columns, 16 features deep from shared memory. Rows become
// y = x - origin in float64 on their way there.
// Threads: asynchronous copies of factors, and rows in registers, run one step ahead; one barrier a step.
// Error: float64 products and sums.
#pragma once

#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "mixture/stages.hpp"

namespace pgkm::cuda::mixture {

inline constexpr int product_threads = 128; // of a block
inline constexpr int product_columns = 64;  // of a tile
inline constexpr int product_depth = 16;    // features of a step

enum class Factors {
    linear,       // of y, and |y|^2 beside the products
    with_squares, // of y, and behind those of all columns of y^2
    triangular    // of y: column c has none of features beyond c
};

// What a tile multiplies. Linear factors and those of squares are zeros up to whole tiles and steps.
template <typename V>
struct ProductSource {
    const V *values;       // row-major
    const double *origin;  // d, or nullptr for zeros
    int rows, d;           // that there are
    const double *factors; // columns x pitch
    std::int64_t pitch;
    int columns;
};

template <typename V, Factors Kind>
class ProductTile {
    static constexpr int runs = Kind == Factors::with_squares ? 2 : 1;
    static constexpr int stride = conflict_free(product_depth);
    static constexpr int lines = product_threads / product_depth; // rows that the threads load at once
    static constexpr int loads = tile_rows / lines;

    struct Step {
        double y[tile_rows * stride];
        double factors[runs * product_columns * stride];
    };

  public:
    static constexpr int bytes = 2 * sizeof(Step);

    __device__ ProductTile(const ProductSource<V> &source, double2 *memory)
        : source_(source), steps_(reinterpret_cast<Step *>(memory))
    {
    }

    // Calls use(column) once products are those of columns [column, column + 64), for every `apart`-th column from the
    // given one on.
    template <typename Use>
    __device__ void run(int column, int apart, Use &&use)
    {
        if (column >= source_.columns)
            return;
        V next[loads];
        __syncthreads(); // the memory is done with
        fetch(0, next);
        copy(column, 0, steps_[0]);
        put(0, next, steps_[0]);
        for (int from = 0, turn = 0; column < source_.columns; turn ^= 1) {
            const bool last = from + product_depth >= features_of(column);
            const int next_column = last ? column + apart : column, next_from = last ? 0 : from + product_depth;
            const bool more = next_column < source_.columns;
            wait_copies<0>();
            __syncthreads(); // the step is there, and the one before it is done with
            if (more) {
                fetch(next_from, next);
                copy(next_column, next_from, steps_[turn ^ 1]);
            }
            multiply(steps_[turn], column, from);
            if (more)
                put(next_from, next, steps_[turn ^ 1]);
            if (last) {
                use(column);
                clear();
            }
            column = next_column;
            from = next_from;
        }
    }

    // Of the row row(part, i) and the column that is column(m, i) from the tile's first on; i: 0 to 3.
    __device__ double product(int m, int part, int i) const { return products_[m][part][i]; }
    __device__ static int row(int part, int i) { return 16 * warp() + 8 * part + 2 * t() + i % 2; }
    __device__ static int column(int m, int i) { return 16 * m + g() + i / 2 * 8; }
    // |y|^2 of row 16 warp() + 8 part + g(), in all of its four lanes.
    __device__ double norm(int part) const { return sum_lanes<4>(norms_[part]); }

  private:
    __device__ int features_of(int column) const
    {
        return Kind == Factors::triangular ? min(source_.d, column + product_columns) : source_.d;
    }

    // This thread's values of the rows' features from `from` on.
    __device__ void fetch(int from, V (&next)[loads]) const
    {
        const int f = from + static_cast<int>(threadIdx.x) % product_depth;
        const int row = static_cast<int>(threadIdx.x) / product_depth;
        const V *values = source_.values + std::int64_t{row} * source_.d + f;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            next[i] =
                f < source_.d && row + lines * i < source_.rows ? values[std::int64_t{lines * i} * source_.d] : V{0};
    }

    // Rows that there are not are 0: about a large origin their squares would be infinite.
    __device__ void put(int from, const V (&next)[loads], Step &step) const
    {
        const int f = static_cast<int>(threadIdx.x) % product_depth;
        const int row = static_cast<int>(threadIdx.x) / product_depth;
        const double origin = from + f < source_.d && source_.origin != nullptr ? source_.origin[from + f] : 0.0;
#pragma unroll
        for (int i = 0; i < loads; ++i)
            step.y[(row + lines * i) * stride + f] =
                row + lines * i < source_.rows ? static_cast<double>(next[i]) - origin : 0.0;
    }

    __device__ void copy(int column, int from, Step &step) const
    {
        constexpr bool whole = Kind != Factors::triangular;
        const double *factors = source_.factors + column * source_.pitch + from;
#pragma unroll
        for (int run = 0; run < runs; ++run)
            copy_rows<product_columns, product_depth, stride, product_threads>(
                step.factors + run * product_columns * stride, factors + run * source_.columns * source_.pitch,
                source_.pitch, whole ? product_columns : source_.columns - column,
                whole ? product_depth : source_.d - from, whole);
        commit_copies();
    }

    __device__ void multiply(const Step &step, int column, int from)
    {
        const double *y = step.y + (16 * warp() + g()) * stride + t();
        const double *factor = step.factors + g() * stride + t();
#pragma unroll
        for (int at = 0; at < product_depth; at += 8) {
            double b[2][2];
#pragma unroll
            for (int part = 0; part < 2; ++part)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    b[part][i] = y[8 * part * stride + at + 4 * i];
#pragma unroll
            for (int run = 0; run < runs; ++run) {
#pragma unroll
                for (int m = 0; m < product_columns / 16; ++m) {
                    if (Kind == Factors::triangular && from + at > min(column + 16 * m + 15, source_.d - 1))
                        continue; // above the diagonal, or beyond W
                    double a[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        a[i] = factor[(run * product_columns + 16 * m + i % 2 * 8) * stride + at + i / 2 * 4];
#pragma unroll
                    for (int part = 0; part < 2; ++part)
                        multiply_add(products_[m][part], a, b[part]);
                }
#pragma unroll
                for (int part = 0; part < 2; ++part)
                    if (Kind == Factors::linear)
                        norms_[part] = fma(b[part][0], b[part][0], fma(b[part][1], b[part][1], norms_[part]));
                    else if (run + 1 < runs)
                        for (double &value : b[part])
                            value *= value;
            }
        }
    }

    __device__ void clear()
    {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            norms_[part] = 0.0;
#pragma unroll
            for (int m = 0; m < product_columns / 16; ++m)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    products_[m][part][i] = 0.0;
        }
    }

    const ProductSource<V> source_;
    Step *const steps_;
    double products_[product_columns / 16][2][4] = {}; // 16 columns by 8 rows each
    double norms_[2] = {};                             // this lane's features of rows g
};

} // namespace pgkm::cuda::mixture
