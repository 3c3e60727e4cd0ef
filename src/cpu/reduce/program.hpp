// program.hpp - a user's reduction as steps over a batch of rows.
//
// Values that depend on a row are columns, one float64 for each row of the batch; all others are scalars. Steps stand
// in blocks: one that is run once, one for each batch, and one for the body of each loop. An expression is computed in
// the outermost block where all it depends on is known, and there once.
//
// What fails gives an infinity or NaN, and so does all that depends on it: a step whose operation could lose it (a
// comparison, a division by infinity) gives NaN. So the values that reach an object are numbers exactly where nothing
// that they need has failed, and only these are looked at. A CASE computes both branches and keeps one.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/reduction.h"
#include "cpu/reduce/batch_kernels.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// A scalar, a column, or nothing.
struct Operand {
    std::int32_t place = -1;
    bool column = false;

    bool is_given() const { return place >= 0; }
};

enum class StepKind : std::uint8_t {
    scalar,        // to = operation(a, b, c)
    look_up,       // a scalar that was computed once for each index: see LookUp
    parameter,     // a scalar by scalar subscripts
    select,        // a column of the rows by a scalar subscript: no copy
    gather,        // a column of the rows or of parameters by subscripts that are columns
    unary,         // columns
    binary,        // of which one may be a scalar
    choose,        // CASE of three columns
    each,          // lane by lane, by libm
    fill,          // a column of one scalar
    loop,          // runs `block` for each index, which adds to `to`
    store,         // runs `block` for each of `count` indexes, and keeps a for each: in wide column `wide`
    pick,          // a column out of wide column `wide`, by a scalar: no copy
    sum_block,     // four sums of an inner loop at once: see SumBlock
    add_scalar,    // end of a loop's block: scalars
    add_sum,       // end of a loop's block, columns: to += a
    add_product,   // to = fma(a, b, to)
    add_square_of, // to = fma(a - b, a - b, to)
    add_other,     // product, count, least, greatest, their places
    enter,         // an object: a is its filter, b its cell
    elements,      // runs `block` for each element of an item
    add_value      // a into the item of the object, with key b
};

struct Step {
    explicit Step(StepKind kind) : kind(kind) {}

    StepKind kind;
    std::uint8_t kernel = 0; // UnaryKernel or BinaryKernel
    PgkmOperation operation = PGKM_CONSTANT;
    Operand to, a, b, c;
    std::int32_t expression = -1;
    std::int32_t loop = -1;
    std::int32_t block = -1;
    std::int32_t object = -1;
    std::int32_t item = -1;
    std::int64_t count = 0;
    std::int32_t wide = -1;    // `store`, `pick`: a wide column; or the number of a sum block or table
    std::int32_t scratch = -1; // of a loop that finds a least or greatest: a column for poison; `best` is the next
};

using Block = std::vector<Step>;

// Sums over loop i of x[i] * u[j][i], or of (x[i] - u[j][i])^2, for four indexes j of the loop around at a time: rows
// stay in registers. x are columns that lie side by side, u is tabled once.
struct SumBlock {
    bool square;
    std::int32_t inner; // loop i
    std::int32_t outer; // loop j
    Operand value;      // u, computed by `block` for indexes i and j
    std::int32_t block;
    std::int32_t first_column; // x: the first of the packed columns of the rows; or
    std::int32_t wide;         // -1, and this wide column
    std::int32_t sums;         // first of four columns for the results
};

// What depends on the indexes of one or two loops and on no row, computed once for each of them.
struct LookUp {
    std::int32_t loops[2]; // the second may be -1
    Operand value;         // computed by `block`
    std::int32_t block;
};

struct BatchProgram {
    // Throws std::bad_alloc. The reduction stays the caller's.
    BatchProgram(const PgkmReduction &reduction, std::int32_t d);

    const PgkmReduction &reduction;
    std::vector<Block> blocks;          // 0: once, 1: a batch
    std::vector<double> scalars;        // with constants set
    std::vector<std::int32_t> index_of; // of each loop the scalar that holds its index
    std::vector<LookUp> look_ups;
    std::vector<SumBlock> sum_blocks;
    std::vector<std::int64_t> widths;        // of wide columns, in columns
    std::vector<std::int32_t> packed;        // of each value of a row its column among the packed ones, or -1
    std::vector<std::int32_t> packed_values; // the values of a row that are packed, ascending
    std::int32_t columns = 0;                // that steps use, beside the packed ones
    std::int64_t wide_columns = 0;

    // Rows of a batch: a multiple of 64 by the program's shape alone.
    int batch_rows() const;
    // float64 values between two columns: not a power of two, so that columns fall into different sets of the cache.
    int stride() const { return batch_rows() + 8; }
    std::int64_t all_columns() const
    {
        return static_cast<std::int64_t>(packed_values.size()) + columns + wide_columns + 1;
    }
};

} // namespace pgkm::cpu
