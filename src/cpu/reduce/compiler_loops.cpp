// compiler_loops.cpp - from expressions to steps: loops, and what the objects add.
#include "cpu/reduce/compiler.hpp"

#include <cmath>

namespace pgkm::cpu {
namespace {

constexpr std::int64_t most_inner = 4096; // so few that a cancel is seen
constexpr std::int64_t most_stored = 512; // wide columns x of one

} // namespace

// ---- loops ----

Operand Compiler::emit_loop(std::int32_t e, std::size_t level)
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

void Compiler::add_body(const Step &loop)
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

bool Compiler::try_sum_block(std::int32_t e, std::size_t level, Operand &sum)
{
    const PgkmExpression &own = at_(e), &body = at_(own.a[0]);
    const bool square = is_square(reduction_, body) && at_(body.a[0]).operation == PGKM_SUBTRACT;
    if (own.operation != PGKM_SUM || level < 2 || levels_[level].loops.size() != 1 ||
        !(square || body.operation == PGKM_MULTIPLY) || levels_[level].loops[0] == renamed_)
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

bool Compiler::place_rows(std::int32_t x, std::int32_t inner, SumBlock &made)
{
    const PgkmExpression &own = at_(x);
    if (own.operation == PGKM_COLUMN && own.a[0] >= 0 && at_(own.a[0]).operation == PGKM_INDEX &&
        own.extent[0] >= reduction_.loops[inner]) {
        made.first_column = program_.packed[at(own.first)];
        return true;
    }
    if (reduction_.loops[inner] > most_stored)
        return false;
    made.wide = store_for(x, inner, reduction_.loops[inner], -1);
    return true;
}

// x for each index of the loop; or for each value of `number`, for which the index then stands.
std::int32_t Compiler::store_for(std::int32_t x, std::int32_t loop, std::int64_t count, std::int32_t number)
{
    const std::array<std::int32_t, 3> key = {x, loop, number};
    if (const auto known = stored_.find(key); known != stored_.end())
        return known->second;
    renamed_ = number < 0 ? renamed_ : loop;
    Step step(StepKind::store);
    step.loop = loop;
    step.count = count;
    step.block = in_block(1, {loop}, [&] {
        if (number >= 0)
            levels_.back().known[number] = {program_.index_of[at(loop)], false};
        step.a = emit(x);
    });
    step.wide = static_cast<std::int32_t>(program_.widths.size());
    program_.widths.push_back(count);
    program_.wide_columns += count;
    block_at(1).push_back(step);
    renamed_ = number < 0 ? renamed_ : -1;
    stored_[key] = step.wide;
    return step.wide;
}

// ---- matrices ----

const std::vector<std::int32_t> &Compiler::numbers_of(std::int32_t loop)
{
    constexpr std::int32_t none = -1, several = -2;
    std::vector<std::int32_t> &numbers = numbers_[loop];
    if (!numbers.empty())
        return numbers;
    const auto is_index = [&](std::int32_t e) { return at_(e).operation == PGKM_INDEX && at_(e).loop == loop; };
    const auto is_whole = [&](std::int32_t e) {
        const double number = at_(e).number;
        return at_(e).operation == PGKM_CONSTANT && number >= 1.0 && number < 0x1p31 && number == std::floor(number);
    };
    const auto divides = [&](const PgkmExpression &x, PgkmOperation operation) {
        return x.operation == operation && is_index(x.a[0]) && is_whole(x.a[1]);
    };
    for (std::int32_t e = 0; e < reduction_.n_expressions; ++e) {
        const PgkmExpression &own = at_(e);
        const bool line = own.operation == PGKM_FLOOR && divides(at_(own.a[0]), PGKM_DIVIDE);
        std::int32_t number = is_index(e) ? several : line || divides(own, PGKM_MODULO) ? e : none;
        for (int i = 0; number == none && i < arguments_of(own.operation); ++i)
            if (own.a[i] >= 0)
                number = numbers[at(own.a[i])];
        for (int i = 0; number != e && i < arguments_of(own.operation); ++i)
            if (own.a[i] >= 0 && numbers[at(own.a[i])] != none && numbers[at(own.a[i])] != number)
                number = several;
        numbers.push_back(number);
    }
    return numbers;
}

bool Compiler::try_stored(std::int32_t e, std::size_t level, Operand &made)
{
    if (renamed_ >= 0 || level != 2 || levels_[level].loops.size() != 1 || of_row_[at(e)] == 0 ||
        at_(e).operation == PGKM_COLUMN)
        return false;
    const std::int32_t loop = levels_[level].loops[0], number = numbers_of(loop)[at(e)];
    if (number < 0)
        return false;
    const bool line = at_(number).operation == PGKM_FLOOR;
    const PgkmExpression &quotient = at_(line ? at_(number).a[0] : number);
    const std::int64_t width = static_cast<std::int64_t>(at_(quotient.a[1]).number), all = reduction_.loops[loop];
    const std::int64_t count = line ? (all + width - 1) / width : std::min(width, all);
    if (count > most_stored || count == all)
        return false;
    Step step(StepKind::pick);
    step.wide = store_for(e, loop, count, number);
    step.a = emit(number);
    step.to = made = column();
    block_at(level).push_back(step);
    return true;
}

// ---- objects ----

void Compiler::object(std::int32_t o)
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

bool Compiler::is_plain_product(std::int32_t o, const PgkmItem &item) const
{
    return item.combine == PGKM_COMBINE_SUM && reduction_.exact == 0 && reduction_.objects[o].cells == 1 &&
           at_(item.value).operation == PGKM_MULTIPLY && of_row_[at(item.value)] != 0;
}

void Compiler::item(std::int32_t o, std::int32_t i)
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

} // namespace pgkm::cpu
