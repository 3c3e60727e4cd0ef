// compiler.hpp - from expressions to steps: fills a BatchProgram.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "backend/reduction_walk.hpp"
#include "cpu/reduce/program.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {

constexpr std::int64_t most_tabled = std::int64_t{1} << 22; // numbers u of a sum block, or of a table

class Compiler {
  public:
    explicit Compiler(BatchProgram &program)
        : program_(program), reduction_(program.reduction), free_(free_loops(reduction_))
    {
    }

    void run(std::int32_t d);

  private:
    // A block that is being filled: the loops whose indexes are known in it, and what it has computed.
    struct Level {
        std::int32_t block;
        std::vector<std::int32_t> loops;
        std::map<std::int32_t, Operand> known;
        bool of_rows; // whether it is run for each batch
    };

    const PgkmExpression &at_(std::int32_t e) const { return reduction_.expressions[e]; }

    // ---- what depends on what ----

    void classify();
    // Columns for all values of a row that an expression may read.
    void pack(std::int32_t d);

    // ---- places ----

    std::int32_t new_scalar()
    {
        program_.scalars.push_back(0.0);
        return static_cast<std::int32_t>(program_.scalars.size()) - 1;
    }
    Operand scalar() { return {new_scalar(), false}; }
    Operand column() { return {program_.columns++, true}; }
    Operand place_of(std::int32_t e) { return of_row_[at(e)] != 0 ? column() : scalar(); }

    // ---- blocks ----

    std::int32_t open_block(std::vector<std::int32_t> loops, bool of_rows);

    // The outermost level that knows all loops of the expression.
    std::size_t level_of(std::int32_t e) const;
    static bool knows(const Level &level, std::int32_t loop)
    {
        return std::find(level.loops.begin(), level.loops.end(), loop) != level.loops.end();
    }

    Block &block_at(std::size_t level) { return program_.blocks[at(levels_[level].block)]; }

    // Runs body() with the levels below `level` alone, and a new block for these loops; returns the block.
    template <typename Body>
    std::int32_t in_block(std::size_t level, std::vector<std::int32_t> loops, Body &&body)
    {
        std::vector<Level> inner(std::make_move_iterator(levels_.begin() + static_cast<std::ptrdiff_t>(level) + 1),
                                 std::make_move_iterator(levels_.end()));
        levels_.resize(level + 1);
        const std::int32_t block = open_block(std::move(loops), levels_.back().of_rows);
        body();
        levels_.pop_back();
        levels_.insert(levels_.end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
        return block;
    }

    // ---- expressions ----

    Operand emit(std::int32_t e);
    // Whether it is computed for each batch anew, is more than a parameter, and has a table of some size.
    bool is_worth_table(std::int32_t e, std::size_t level) const;
    Operand emit_table(std::int32_t e, std::size_t level);
    // As a column.
    Operand emit_column(std::int32_t e, std::size_t level);
    Operand emit_plain(std::int32_t e, std::size_t level);
    // Of an item that is a matrix: a column that depends on its line alone, or on its place in a line alone, is
    // computed once a batch for each of them.
    bool try_stored(std::int32_t e, std::size_t level, Operand &made);
    // For each expression by which such number it depends on the loop: a floor(index / m) or index % m.
    const std::vector<std::int32_t> &numbers_of(std::int32_t loop);
    std::int32_t store_for(std::int32_t x, std::int32_t loop, std::int64_t count, std::int32_t number);
    // Kind and kernel of a step whose operands are known.
    void choose_kind(Step &step, std::size_t level);

    // ---- loops ----

    Operand emit_loop(std::int32_t e, std::size_t level);
    // The last step of a loop's block.
    void add_body(const Step &loop);
    // Whether e, a sum in the body of loop j, is one of x[i] and u[j][i] as SumBlock takes it.
    bool try_sum_block(std::int32_t e, std::size_t level, Operand &sum);
    // Where x[i] lie side by side: among the rows' own columns, or stored once for the batch.
    bool place_rows(std::int32_t x, std::int32_t inner, SumBlock &made);

    // ---- objects ----

    void object(std::int32_t o);
    // Whether products are added up as they are made.
    bool is_plain_product(std::int32_t o, const PgkmItem &item) const;
    void item(std::int32_t o, std::int32_t i);

    BatchProgram &program_;
    const PgkmReduction &reduction_;
    const std::vector<std::vector<std::int32_t>> free_;
    std::vector<char> of_row_;
    std::vector<Level> levels_;
    std::map<std::array<std::int32_t, 3>, std::int32_t> stored_; // of x, loop and number
    std::map<std::int32_t, std::vector<std::int32_t>> numbers_;
    std::int32_t renamed_ = -1; // a loop whose index stands for such a number: no table goes by it
};

} // namespace pgkm::cpu
