// batch_plan.hpp - where the columns of a reduction's batches lie: a function of the program alone, the same for all
// threads.
#pragma once

#include <vector>

#include "backend/reduction_program.hpp"
#include "backend/reduction_words.hpp"
#include "cpu/context.hpp"
#include "numeric/index.hpp"

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

class BatchPlan {
  public:
    // The program stays the caller's.
    BatchPlan(const PgkmReduction &program, std::int32_t d);

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

    // A value of the row whose subscript is a scalar: its column needs no copy.
    bool is_pick(std::int32_t e) const
    {
        const PgkmExpression &x = program.expressions[e];
        return x.operation == PGKM_COLUMN && (x.a[0] < 0 || !facts[at(x.a[0])].of_row);
    }

    const PgkmReduction &program;
    const std::vector<ExpressionFacts> facts;
    const Words words;
    std::vector<SumBlock> blocks;            // their tables are filled by fill_tables() of evaluator.hpp
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

} // namespace pgkm::cpu
