// evaluator.hpp - the values of a reduction's expressions over batches of rows.
//
// Values that depend on a row are columns, one float64 for each row of the batch; all others are scalars. Each is
// computed where it is first wanted, and kept until an index that it depends on changes (backend/reduction_walk.hpp).
//
// What fails gives an infinity or NaN, and so does all that depends on it: an operation that could lose it (a
// comparison, a division by infinity) gives NaN. So the values that reach an object are numbers exactly where nothing
// that they need has failed, and only these are looked at. A CASE computes both branches and keeps one.
#pragma once

#include <vector>

#include "backend/reduction_walk.hpp"
#include "cpu/reduce/cells.hpp"

namespace pgkm::cpu {

// A sum over loop `inner` of x[i] * u[j][i], or of (x[i] - u[j][i])^2, for four indexes j of the loop around at a time:
// rows stay in registers. x are values of the row side by side, u depends on no row.
struct SumBlock {
    std::int32_t sum; // the expression
    bool square;
    std::int32_t inner, outer;
    std::int64_t first_column; // x: the first of the columns
    std::int32_t u;
    Buffer<double> table = {}; // of u, by panels of sum_panel indexes j: inner x sum_panel
};

// Where columns lie; the same for all threads.
class BatchPlan {
  public:
    // The program stays the caller's.
    BatchPlan(const PgkmReduction &program, std::int32_t d);
    // Computes the tables of sum blocks.
    void fill_tables(Context &context);

    // Rows of a batch: a multiple of 64 by the program's shape alone.
    int batch_rows() const;
    // float64 values between two columns: not a power of two, so that columns fall into different sets of the cache.
    int stride() const { return batch_rows() + 8; }
    // Bytes of one thread, and of the tables.
    double thread_bytes() const { return 8.0 * static_cast<double>(columns) * stride() + 32.0 * program.n_expressions; }
    double table_bytes() const;

    // The columns that an output takes: its value, or the first factor of a product; the key, the second factor, or -1.
    std::int32_t first_of(const Output &output) const;
    std::int32_t second_of(const Output &output) const;

    const PgkmReduction &program;
    const std::vector<ExpressionFacts> facts;
    const Words words;
    std::vector<SumBlock> blocks;
    std::vector<std::int32_t> values;        // of a row that are columns, ascending
    std::vector<std::int64_t> column_of;     // of each value of a row
    std::vector<std::int64_t> first_columns; // of each expression; -1: it needs none
    std::int64_t columns = 0;

  private:
    bool is_product(const Output &output) const;
    void place_values(std::int32_t d);
    void find_block(std::int32_t e);
    void place(std::int32_t e, std::int64_t count);
};

// One thread's columns. Polls while it runs.
class Evaluator : ReductionWalk {
  public:
    Evaluator(Context &context, const BatchPlan &plan);

    // The rows of one batch, n <= plan.batch_rows(), of d values each, into the objects.
    template <typename T>
    void run(const T *rows, int n, std::int32_t d, Accumulator &objects);

  private:
    // One number for each row, or for all.
    struct Operand {
        const double *at;
        bool column;
    };
    Operand operand(std::int32_t e);
    const double *column(std::int32_t e);
    const double *compute_column(std::int32_t e);
    const double *element(std::int32_t e);
    const double *over_rows(std::int32_t e);
    const double *sum_block(std::size_t block);
    void each_row(double *to, OperationFunction *function, Operand a, Operand b) const;
    void binary(BinaryKernel *const (&kernels)[broadcasts], double *to, Operand a, Operand b) const
    {
        kernels[!a.column ? broadcast_first : !b.column ? broadcast_second : broadcast_none](to, a.at, b.at, n_);
    }
    void binary(PgkmOperation operation, double *to, Operand a, Operand b) const
    {
        binary(kernels_.binary[kernel_of(binary_operations, operation)], to, a, b);
    }
    double *column_at(std::int64_t column) { return memory_.data() + column * stride_; }

    const BatchPlan &plan_;
    const ReduceKernels &kernels_;
    const std::int64_t stride_;
    Buffer<double> memory_;
    std::vector<const double *> at_;     // where an expression's column is
    std::vector<std::int64_t> panels_;   // of each sum block the panel that its columns hold, or -1
    std::vector<std::int32_t> block_of_; // of each expression, or -1
    int n_ = 0;                          // rows, rounded up as kernels take it
};

} // namespace pgkm::cpu
