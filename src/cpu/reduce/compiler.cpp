// compiler.cpp - from expressions to steps: what each depends on, and operations.
#include "cpu/reduce/compiler.hpp"

#include <algorithm>
#include <iterator>

namespace pgkm::cpu {
namespace {

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

} // namespace

void Compiler::run(std::int32_t d)
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

// ---- what depends on what ----

void Compiler::classify()
{
    of_row_.resize(at(reduction_.n_expressions));
    for (std::int32_t e = 0; e < reduction_.n_expressions; ++e) {
        of_row_[at(e)] = at_(e).operation == PGKM_COLUMN;
        for (int i = 0; i < arguments_of(at_(e).operation); ++i)
            if (at_(e).a[i] >= 0 && of_row_[at(at_(e).a[i])] != 0)
                of_row_[at(e)] = 1;
    }
}

void Compiler::pack(std::int32_t d)
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

// ---- blocks ----

std::int32_t Compiler::open_block(std::vector<std::int32_t> loops, bool of_rows)
{
    const auto block = static_cast<std::int32_t>(program_.blocks.size());
    program_.blocks.emplace_back();
    levels_.push_back({block, std::move(loops), {}, of_rows});
    return block;
}

std::size_t Compiler::level_of(std::int32_t e) const
{
    std::size_t level = of_row_[at(e)];
    for (const std::int32_t loop : free_[at(e)])
        for (std::size_t l = levels_.size(); l-- > level + 1;)
            if (knows(levels_[l], loop))
                level = l;
    return level;
}

// ---- expressions ----

Operand Compiler::emit(std::int32_t e)
{
    const std::size_t level = level_of(e);
    const auto known = levels_[level].known.find(e);
    if (known != levels_[level].known.end())
        return known->second;
    Operand made;
    if (!try_stored(e, level, made))
        made = is_worth_table(e, level)           ? emit_table(e, level)
               : goes_over_loop(at_(e).operation) ? emit_loop(e, level)
                                                  : emit_plain(e, level);
    levels_[level].known[e] = made;
    return made;
}

bool Compiler::is_worth_table(std::int32_t e, std::size_t level) const
{
    const std::vector<std::int32_t> &loops = free_[at(e)];
    const PgkmOperation operation = at_(e).operation;
    if (!levels_[level].of_rows || of_row_[at(e)] != 0 || loops.empty() || loops.size() > 2 || operation <= PGKM_INDEX)
        return false;
    if (operation == PGKM_PARAMETER || std::find(loops.begin(), loops.end(), renamed_) != loops.end())
        return false;
    std::int64_t size = 1;
    for (const std::int32_t loop : loops)
        size = reduction_.loops[loop] > most_tabled / std::max<std::int64_t>(size, 1) ? most_tabled + 1
                                                                                      : size * reduction_.loops[loop];
    return size <= most_tabled;
}

Operand Compiler::emit_table(std::int32_t e, std::size_t level)
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

Operand Compiler::emit_column(std::int32_t e, std::size_t level)
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

Operand Compiler::emit_plain(std::int32_t e, std::size_t level)
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

void Compiler::choose_kind(Step &step, std::size_t level)
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

} // namespace pgkm::cpu
