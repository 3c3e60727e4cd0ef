// program.cpp - from expressions to steps.
#include "cpu/reduce/program.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "backend/reduction_walk.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t most_tabled = std::int64_t{1} << 22; // numbers u of a sum block, or of a table
constexpr std::int64_t most_inner = 4096;                   // so few that a cancel is seen
constexpr std::int64_t most_stored = 512;                   // wide columns x of one

// The kernel of an operation, or -1.
int unary_kernel(PgkmOperation operation)
{
    constexpr PgkmOperation operations[unary_kernels] = {PGKM_NEGATE, PGKM_NOT,   PGKM_ABS,   PGKM_SQRT, PGKM_FLOOR,
                                                         PGKM_CEIL,   PGKM_ROUND, PGKM_TRUNC, PGKM_SIGN};
    const auto found = std::find(std::begin(operations), std::end(operations), operation);
    return found == std::end(operations) ? -1 : static_cast<int>(found - operations);
}

int binary_kernel(PgkmOperation operation)
{
    constexpr PgkmOperation operations[binary_kernels] = {PGKM_ADD,   PGKM_SUBTRACT,   PGKM_MULTIPLY, PGKM_DIVIDE,
                                                          PGKM_LEAST, PGKM_GREATEST,   PGKM_EQUAL,    PGKM_NOT_EQUAL,
                                                          PGKM_LESS,  PGKM_LESS_EQUAL, PGKM_AND,      PGKM_OR};
    const auto found = std::find(std::begin(operations), std::end(operations), operation);
    return found == std::end(operations) ? -1 : static_cast<int>(found - operations);
}

class Compiler {
  public:
    explicit Compiler(BatchProgram &program)
        : program_(program), reduction_(program.reduction), free_(free_loops(reduction_))
    {
    }

    void run(std::int32_t d)
    {
        classify();
        pack(d);
        program_.index_of.resize(at(reduction_.n_loops));
        for (std::int32_t &scalar : program_.index_of)
            scalar = new_scalar();
        open_block({}, false);
        open_block({}, true);
        for (std::int32_t o = 0; o < reduction_.n_objects; ++o)
            object(o);
    }

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

    void classify()
    {
        of_row_.resize(at(reduction_.n_expressions));
        for (std::int32_t e = 0; e < reduction_.n_expressions; ++e) {
            of_row_[at(e)] = at_(e).operation == PGKM_COLUMN;
            for (int i = 0; i < arguments_of(at_(e).operation); ++i)
                if (at_(e).a[i] >= 0 && of_row_[at(at_(e).a[i])] != 0)
                    of_row_[at(e)] = 1;
        }
    }

    // Columns for all values of a row that an expression may read.
    void pack(std::int32_t d)
    {
        program_.packed.assign(at(d), -1);
        for (std::int32_t e = 0; e < reduction_.n_expressions; ++e)
            if (at_(e).operation == PGKM_COLUMN)
                std::fill_n(program_.packed.begin() + at_(e).first, at_(e).extent[0], 0);
        for (std::int32_t f = 0; f < d; ++f)
            if (program_.packed[at(f)] == 0) {
                program_.packed[at(f)] = static_cast<std::int32_t>(program_.packed_values.size());
                program_.packed_values.push_back(f);
            }
    }

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

    std::int32_t open_block(std::vector<std::int32_t> loops, bool of_rows)
    {
        const auto block = static_cast<std::int32_t>(program_.blocks.size());
        program_.blocks.emplace_back();
        levels_.push_back({block, std::move(loops), {}, of_rows});
        return block;
    }

    // The outermost level that knows all loops of the expression.
    std::size_t level_of(std::int32_t e) const
    {
        std::size_t level = of_row_[at(e)];
        for (const std::int32_t loop : free_[at(e)])
            for (std::size_t l = levels_.size(); l-- > level + 1;)
                if (knows(levels_[l], loop))
                    level = l;
        return level;
    }
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

    Operand emit(std::int32_t e)
    {
        const std::size_t level = level_of(e);
        const auto known = levels_[level].known.find(e);
        if (known != levels_[level].known.end())
            return known->second;
        const Operand made = is_worth_table(e, level)           ? emit_table(e, level)
                             : goes_over_loop(at_(e).operation) ? emit_loop(e, level)
                                                                : emit_plain(e, level);
        levels_[level].known[e] = made;
        return made;
    }

    // Whether it is computed for each batch anew, is more than a parameter, and has a table of some size.
    bool is_worth_table(std::int32_t e, std::size_t level) const
    {
        const std::vector<std::int32_t> &loops = free_[at(e)];
        const PgkmOperation operation = at_(e).operation;
        if (!levels_[level].of_rows || of_row_[at(e)] != 0 || loops.empty() || loops.size() > 2 ||
            operation <= PGKM_INDEX)
            return false;
        if (operation == PGKM_PARAMETER)
            return false;
        std::int64_t size = 1;
        for (const std::int32_t loop : loops)
            size = reduction_.loops[loop] > most_tabled / std::max<std::int64_t>(size, 1)
                       ? most_tabled + 1
                       : size * reduction_.loops[loop];
        return size <= most_tabled;
    }

    Operand emit_table(std::int32_t e, std::size_t level)
    {
        const std::vector<std::int32_t> &loops = free_[at(e)];
        LookUp made = {{loops[0], loops.size() > 1 ? loops[1] : -1}, {}, -1};
        made.block = in_block(0, loops, [&] { made.value = emit(e); });
        Step step(StepKind::look_up);
        step.to = scalar();
        step.wide = static_cast<std::int32_t>(program_.look_ups.size());
        program_.look_ups.push_back(made);
        block_at(level).push_back(step);
        return step.to;
    }

    // As a column.
    Operand emit_column(std::int32_t e, std::size_t level)
    {
        const Operand value = emit(e);
        if (value.column)
            return value;
        Step step(StepKind::fill);
        step.to = column();
        step.a = value;
        block_at(level).push_back(step);
        return step.to;
    }

    Operand emit_plain(std::int32_t e, std::size_t level)
    {
        const PgkmExpression &own = at_(e);
        Step step(StepKind::scalar);
        step.operation = own.operation;
        step.expression = e;
        if (own.operation == PGKM_INDEX)
            return {program_.index_of[at(own.loop)], false};
        if (own.operation == PGKM_CONSTANT) {
            const Operand constant = scalar();
            program_.scalars[at(constant.place)] = own.number;
            return constant;
        }
        if (own.operation == PGKM_CASE && of_row_[at(e)] != 0) {
            step.kind = StepKind::choose;
            step.a = emit_column(own.a[0], level);
            step.b = emit_column(own.a[1], level);
            step.c = emit_column(own.a[2], level);
        } else {
            Operand *const arguments[] = {&step.a, &step.b, &step.c};
            for (int i = 0; i < arguments_of(own.operation); ++i)
                if (own.a[i] >= 0)
                    *arguments[i] = emit(own.a[i]);
            choose_kind(step, level);
        }
        step.to = place_of(e);
        block_at(level).push_back(step);
        return step.to;
    }

    // Kind and kernel of a step whose operands are known.
    void choose_kind(Step &step, std::size_t level)
    {
        const PgkmOperation operation = step.operation;
        if (operation == PGKM_COLUMN || operation == PGKM_PARAMETER) {
            const bool gathers = step.a.column || step.b.column;
            step.kind = gathers ? StepKind::gather : operation == PGKM_COLUMN ? StepKind::select : StepKind::parameter;
            return;
        }
        if (of_row_[at(step.expression)] == 0)
            return;
        if (is_square(reduction_, at_(step.expression))) {
            step.kind = StepKind::binary;
            step.kernel = binary_multiply;
            step.b = step.a;
            return;
        }
        const int unary = unary_kernel(operation), binary = binary_kernel(operation);
        step.kind = unary >= 0 ? StepKind::unary : binary >= 0 ? StepKind::binary : StepKind::each;
        step.kernel = static_cast<std::uint8_t>(std::max({unary, binary, 0}));
        if (step.kind == StepKind::each)
            for (Operand *operand : {&step.a, &step.b})
                if (operand->is_given() && !operand->column) {
                    Step fill(StepKind::fill);
                    fill.a = *operand;
                    fill.to = column();
                    block_at(level).push_back(fill);
                    *operand = fill.to;
                }
    }

    // ---- loops ----

    Operand emit_loop(std::int32_t e, std::size_t level)
    {
        Operand sum;
        if (of_row_[at(e)] != 0 && try_sum_block(e, level, sum))
            return sum;
        const PgkmExpression &own = at_(e);
        Step step(StepKind::loop);
        step.operation = own.operation;
        step.expression = e;
        step.loop = own.loop;
        step.to = place_of(e);
        if (step.to.column && (own.operation == PGKM_MIN || own.operation == PGKM_MAX || own.operation == PGKM_ARGMIN ||
                               own.operation == PGKM_ARGMAX)) {
            step.scratch = program_.columns;
            program_.columns += 2;
        }
        step.block = in_block(level, {own.loop}, [&] { add_body(step); });
        block_at(level).push_back(step);
        return step.to;
    }

    // The last step of a loop's block.
    void add_body(const Step &loop)
    {
        const std::size_t level = levels_.size() - 1;
        const PgkmExpression &body = at_(at_(loop.expression).a[0]);
        Step step = loop;
        step.kind = StepKind::add_scalar;
        const bool sum = loop.operation == PGKM_SUM;
        if (sum && is_square(reduction_, body)) {
            const std::int32_t base = body.a[0];
            if (loop.to.column && at_(base).operation == PGKM_SUBTRACT) {
                step.kind = StepKind::add_square_of;
                step.a = emit(at_(base).a[0]);
                step.b = emit(at_(base).a[1]);
            } else {
                step.kind = loop.to.column ? StepKind::add_product : StepKind::add_scalar;
                step.a = step.b = emit(base);
            }
        } else if (sum && body.operation == PGKM_MULTIPLY) {
            step.kind = loop.to.column ? StepKind::add_product : StepKind::add_scalar;
            step.a = emit(body.a[0]);
            step.b = emit(body.a[1]);
        } else {
            step.a = emit(at_(loop.expression).a[0]);
            if (loop.to.column)
                step.kind = sum ? StepKind::add_sum : StepKind::add_other;
        }
        block_at(level).push_back(step);
    }

    // Whether e, a sum in the body of loop j, is one of x[i] and u[j][i] as SumBlock takes it.
    bool try_sum_block(std::int32_t e, std::size_t level, Operand &sum)
    {
        const PgkmExpression &own = at_(e), &body = at_(own.a[0]);
        const bool square = is_square(reduction_, body) && at_(body.a[0]).operation == PGKM_SUBTRACT;
        if (own.operation != PGKM_SUM || level < 2 || levels_[level].loops.size() != 1 ||
            !(square || body.operation == PGKM_MULTIPLY))
            return false;
        const std::int32_t inner = own.loop, outer = levels_[level].loops[0];
        const PgkmExpression &pair = square ? at_(body.a[0]) : body;
        std::int32_t x = pair.a[0], u = pair.a[1];
        if (of_row_[at(x)] == 0)
            std::swap(x, u); // (a - b)^2 has the bits of (b - a)^2
        const auto within = [&](const std::vector<std::int32_t> &loops) {
            return std::all_of(loops.begin(), loops.end(), [&](std::int32_t l) { return l == inner || l == outer; });
        };
        if (of_row_[at(x)] == 0 || of_row_[at(u)] != 0 || free_[at(x)] != std::vector<std::int32_t>{inner} ||
            !within(free_[at(u)]) || reduction_.loops[inner] < 1 || reduction_.loops[inner] > most_inner ||
            reduction_.loops[inner] > most_tabled / std::max<std::int64_t>(reduction_.loops[outer], 1))
            return false;
        SumBlock made = {square, inner, outer, {}, -1, -1, -1, -1};
        if (!place_rows(x, inner, made))
            return false;
        made.block = in_block(0, {inner, outer}, [&] { made.value = emit(u); });
        made.sums = program_.columns;
        program_.columns += sum_panel;
        Step step(StepKind::sum_block);
        step.to = sum = column();
        step.wide = static_cast<std::int32_t>(program_.sum_blocks.size());
        program_.sum_blocks.push_back(made);
        block_at(level).push_back(step);
        return true;
    }

    // Where x[i] lie side by side: among the rows' own columns, or stored once for the batch.
    bool place_rows(std::int32_t x, std::int32_t inner, SumBlock &made)
    {
        const PgkmExpression &own = at_(x);
        if (own.operation == PGKM_COLUMN && own.a[0] >= 0 && at_(own.a[0]).operation == PGKM_INDEX &&
            own.extent[0] >= reduction_.loops[inner]) {
            made.first_column = program_.packed[at(own.first)];
            return true;
        }
        if (reduction_.loops[inner] > most_stored)
            return false;
        const auto known = stored_.find({x, inner});
        if (known != stored_.end()) {
            made.wide = known->second;
            return true;
        }
        Step step(StepKind::store);
        step.loop = inner;
        step.block = in_block(1, {inner}, [&] { step.a = emit(x); });
        step.wide = made.wide = static_cast<std::int32_t>(program_.widths.size());
        program_.widths.push_back(reduction_.loops[inner]);
        program_.wide_columns += reduction_.loops[inner];
        block_at(1).push_back(step);
        stored_[{x, inner}] = made.wide;
        return true;
    }

    // ---- objects ----

    void object(std::int32_t o)
    {
        const PgkmObject &own = reduction_.objects[o];
        Step step(StepKind::enter);
        step.object = o;
        if (own.filter >= 0)
            step.a = emit_column(own.filter, 1);
        if (own.cell >= 0)
            step.b = emit_column(own.cell, 1);
        block_at(1).push_back(step);
        for (std::int32_t i = own.first_item; i < own.first_item + own.n_items; ++i)
            item(o, i);
    }

    // Whether products are added up as they are made.
    bool is_plain_product(std::int32_t o, const PgkmItem &item) const
    {
        return item.combine == PGKM_COMBINE_SUM && reduction_.exact == 0 && reduction_.objects[o].cells == 1 &&
               at_(item.value).operation == PGKM_MULTIPLY && of_row_[at(item.value)] != 0;
    }

    void item(std::int32_t o, std::int32_t i)
    {
        const PgkmItem &own = reduction_.items[i];
        if (own.combine == PGKM_COMBINE_COUNT)
            return;
        Step step(StepKind::elements);
        step.object = o;
        step.item = i;
        step.loop = own.loop;
        const auto add = [&](std::size_t level) {
            Step adds = step;
            adds.kind = StepKind::add_value;
            if (is_plain_product(o, own)) {
                adds.a = emit_column(at_(own.value).a[0], level);
                adds.c = emit_column(at_(own.value).a[1], level);
            } else {
                adds.a = emit_column(own.value, level);
            }
            if (own.combine == PGKM_COMBINE_ARGMIN)
                adds.b = emit_column(own.key, level);
            block_at(level).push_back(adds);
        };
        std::vector<std::int32_t> loops;
        if (own.loop >= 0)
            loops.push_back(own.loop);
        step.block = in_block(1, std::move(loops), [&] { add(levels_.size() - 1); });
        block_at(1).push_back(step);
    }

    BatchProgram &program_;
    const PgkmReduction &reduction_;
    const std::vector<std::vector<std::int32_t>> free_;
    std::vector<char> of_row_;
    std::vector<Level> levels_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> stored_;
};

} // namespace

BatchProgram::BatchProgram(const PgkmReduction &program, std::int32_t d) : reduction(program)
{
    Compiler(*this).run(d);
}

int BatchProgram::batch_rows() const
{
    constexpr std::int64_t cached = 256 * 1024 / 8;
    return static_cast<int>(std::clamp<std::int64_t>(cached / all_columns() / 64 * 64, 64, 512));
}

} // namespace pgkm::cpu
