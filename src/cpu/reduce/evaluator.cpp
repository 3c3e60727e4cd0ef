// evaluator.cpp - expressions over batches. An operation on a whole column takes longer than to find its kernel.
#include "cpu/reduce/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace pgkm::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t most_tabled = std::int64_t{1} << 22; // numbers u of a sum block
constexpr std::int64_t most_inner = 4096;                   // so few that a cancel is seen

bool is_place(double subscript, double end)
{
    return subscript >= 0.0 && subscript < end && subscript == std::floor(subscript);
}

} // namespace

// ---- where columns lie ----

BatchPlan::BatchPlan(const PgkmReduction &reduction, std::int32_t d)
    : program(reduction), facts(facts_of(reduction)), words(words_of(reduction, Arrangement::cells)),
      first_columns(at(reduction.n_expressions), -1)
{
    place_values(d);
    for (std::int32_t e = 0; e < program.n_expressions; ++e) {
        const PgkmExpression &x = program.expressions[e];
        if (!facts[at(e)].of_row)
            continue;
        find_block(e);
        const bool picks = x.operation == PGKM_COLUMN && (x.a[0] < 0 || !facts[at(x.a[0])].of_row);
        place(e, picks                                                                                   ? 0
                 : x.operation == PGKM_ARGMIN || x.operation == PGKM_ARGMAX || x.operation == PGKM_COUNT ? 2
                                                                                                         : 1);
        for (int i = 0; x.operation == PGKM_CASE && i < 3; ++i)
            place(x.a[i], 1);
    }
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        for (const std::int32_t e : {program.objects[o].filter, program.objects[o].cell})
            place(e, 1);
    for (const Output &output : words.outputs)
        if (output.item >= 0) {
            place(first_of(output), 1);
            place(second_of(output), 1);
        }
    ++columns; // of NaN
}

// Products that all go to one cell are added up as they are made.
std::int32_t BatchPlan::first_of(const Output &output) const
{
    const PgkmExpression &value = program.expressions[program.items[output.item].value];
    return is_product(output) ? value.a[0] : program.items[output.item].value;
}

std::int32_t BatchPlan::second_of(const Output &output) const
{
    const PgkmItem &item = program.items[output.item];
    return output.combine == PGKM_COMBINE_ARGMIN ? item.key
           : is_product(output)                  ? program.expressions[item.value].a[1]
                                                 : -1;
}

bool BatchPlan::is_product(const Output &output) const
{
    return output.combine == PGKM_COMBINE_SUM && !output.integer && output.cells == 1 &&
           program.expressions[program.items[output.item].value].operation == PGKM_MULTIPLY;
}

// A scalar has one where it is wanted as a column.
void BatchPlan::place(std::int32_t e, std::int64_t count)
{
    if (e < 0 || count == 0 || first_columns[at(e)] >= 0)
        return;
    first_columns[at(e)] = columns;
    columns += count;
}

// All values of a row that an expression may read, in their order.
void BatchPlan::place_values(std::int32_t d)
{
    column_of.assign(at(d), -1);
    for (std::int32_t e = 0; e < program.n_expressions; ++e)
        if (program.expressions[e].operation == PGKM_COLUMN)
            std::fill_n(column_of.begin() + program.expressions[e].first, program.expressions[e].extent[0], 0);
    for (std::int32_t f = 0; f < d; ++f)
        if (column_of[at(f)] == 0) {
            column_of[at(f)] = columns++;
            values.push_back(f);
        }
}

void BatchPlan::find_block(std::int32_t e)
{
    const PgkmExpression *const all = program.expressions, &sum = all[e];
    const std::vector<std::int32_t> &around = facts[at(e)].loops;
    if (sum.operation != PGKM_SUM || around.size() != 1)
        return;
    const PgkmExpression &body = all[sum.a[0]];
    const bool square = is_square(program, body) && all[body.a[0]].operation == PGKM_SUBTRACT;
    const PgkmExpression &pair = square ? all[body.a[0]] : body;
    if (!square && body.operation != PGKM_MULTIPLY)
        return;
    std::int32_t x = pair.a[0], u = pair.a[1];
    if (!facts[at(x)].of_row)
        std::swap(x, u); // (a - b)^2 has the bits of (b - a)^2
    const PgkmExpression &value = all[x];
    const std::int64_t inner = program.loops[sum.loop], outer = program.loops[around[0]];
    if (value.operation == PGKM_COLUMN && value.a[0] >= 0 && all[value.a[0]].operation == PGKM_INDEX &&
        all[value.a[0]].loop == sum.loop && value.extent[0] >= inner && inner >= 1 && !facts[at(u)].of_row &&
        inner <= most_inner && inner <= most_tabled / std::max<std::int64_t>(outer, 1)) {
        blocks.push_back({e, square, sum.loop, around[0], column_of[at(value.first)], u});
        place(e, sum_panel);
    }
}

void BatchPlan::fill_tables(Context &context)
{
    ReductionWalk walk(program, facts, [&] { context.poll(); });
    for (SumBlock &block : blocks) {
        const std::int64_t inner = program.loops[block.inner], outer = program.loops[block.outer];
        block.table = Buffer<double>(context.budget, at((outer + sum_panel - 1) / sum_panel * sum_panel * inner), 0.0);
        for (std::int64_t j = 0; j < outer; ++j)
            for (std::int64_t i = 0; i < inner; ++i) {
                walk.set_index(block.outer, j);
                walk.set_index(block.inner, i);
                block.table[at((j / sum_panel * inner + i) * sum_panel + j % sum_panel)] = walk.value(block.u);
            }
    }
}

double BatchPlan::table_bytes() const
{
    double bytes = 0.0;
    for (const SumBlock &block : blocks)
        bytes += 8.0 * static_cast<double>(program.loops[block.inner]) *
                 static_cast<double>(program.loops[block.outer] + sum_panel);
    return bytes;
}

int BatchPlan::batch_rows() const
{
    constexpr std::int64_t cached = 256 * 1024 / 8;
    return static_cast<int>(std::clamp<std::int64_t>(cached / columns / 64 * 64, 64, 512));
}

// ---- a batch ----

Evaluator::Evaluator(Context &context, const BatchPlan &plan)
    : ReductionWalk(plan.program, plan.facts, [&context] { context.poll(); }), plan_(plan),
      kernels_(reduce_kernels(context.instruction_set)), stride_(plan.stride()),
      memory_(context.budget, at(plan.columns * stride_)), at_(plan.facts.size()), panels_(plan.blocks.size()),
      block_of_(plan.facts.size(), -1)
{
    std::fill_n(column_at(plan.columns - 1), stride_, nan);
    for (std::size_t b = 0; b < plan.blocks.size(); ++b)
        block_of_[at(plan.blocks[b].sum)] = static_cast<std::int32_t>(b);
}

template <typename T>
void Evaluator::run(const T *rows, int n, std::int32_t d, Accumulator &objects)
{
    n_ = (n + 31) / 32 * 32;
    constexpr int together = 8; // rows: a line of a column
    for (int r = 0; r < n_; r += together) {
        const T *row[together];
        for (int i = 0; i < together; ++i)
            row[i] = rows + static_cast<std::int64_t>(std::min(r + i, n - 1)) * d; // the last one fills up
        double *to = memory_.data() + r;
        for (const std::int32_t value : plan_.values) {
            for (int i = 0; i < together; ++i)
                to[i] = static_cast<double>(row[i][value]);
            to += stride_;
        }
    }
    forget_row();
    std::fill(panels_.begin(), panels_.end(), -1);
    objects.begin_batch(n);
    const auto column_or_none = [&](std::int32_t e) { return e < 0 ? nullptr : column(e); };
    for (const Output &output : plan_.words.outputs) {
        if (output.item < 0) {
            const PgkmObject &object = program_.objects[output.object];
            const double *const filter = column_or_none(object.filter), *const cell = column_or_none(object.cell);
            objects.enter(output.object, filter, cell);
            continue;
        }
        const PgkmItem &item = program_.items[output.item];
        const Accumulator::Range range = objects.elements(output);
        for (std::int64_t i = range.first; i < range.last; ++i) {
            if (item.loop >= 0)
                set_index(item.loop, i);
            const double *const value = column(plan_.first_of(output)), *const second =
                                                                            column_or_none(plan_.second_of(output));
            work(n_);
            objects.add(output, i, value, second);
        }
    }
}

template void Evaluator::run(const float *, int, std::int32_t, Accumulator &);
template void Evaluator::run(const double *, int, std::int32_t, Accumulator &);

Evaluator::Operand Evaluator::operand(std::int32_t e)
{
    if (!facts_[at(e)].of_row)
        return {&value(e), false};
    if (!knows(e)) {
        at_[at(e)] = compute_column(e);
        learn(e);
    }
    return {at_[at(e)], true};
}

const double *Evaluator::column(std::int32_t e)
{
    const Operand known = operand(e);
    if (known.column)
        return known.at;
    double *const to = column_at(plan_.first_columns[at(e)]);
    kernels_.fill(to, *known.at, n_);
    return to;
}

const double *Evaluator::compute_column(std::int32_t e)
{
    const PgkmExpression &x = program_.expressions[e];
    if (x.operation == PGKM_COLUMN || x.operation == PGKM_PARAMETER)
        return element(e);
    if (block_of_[at(e)] >= 0)
        return sum_block(at(block_of_[at(e)]));
    if (goes_over_loop(x.operation))
        return over_rows(e);
    double *const to = column_at(plan_.first_columns[at(e)]);
    work(n_);
    if (x.operation == PGKM_CASE) {
        const double *const condition = column(x.a[0]), *const yes = column(x.a[1]), *const no = column(x.a[2]);
        kernels_.choose(to, condition, yes, no, n_);
        return to;
    }
    const Operand a = operand(x.a[0]);
    if (is_square(program_, x)) {
        binary(PGKM_MULTIPLY, to, a, a);
        return to;
    }
    const Operand b = arguments_of(x.operation) == 2 ? operand(x.a[1]) : a;
    if (const int kernel = kernel_of(unary_operations, x.operation); kernel >= 0)
        kernels_.unary[kernel](to, a.at, n_);
    else if (kernel_of(binary_operations, x.operation) >= 0)
        binary(x.operation, to, a, b);
    else
        each_row(to, function_of(x.operation), a, b);
    return to;
}

void Evaluator::each_row(double *to, OperationFunction *function, Operand a, Operand b) const
{
    for (int r = 0; r < n_; ++r) {
        const double x = a.at[a.column ? r : 0], y = b.at[b.column ? r : 0];
        to[r] = std::isfinite(x) && std::isfinite(y) ? function(x, y, 0.0) : nan;
    }
}

// A column of the rows, without a copy where the subscript is a scalar; else a value for each row.
const double *Evaluator::element(std::int32_t e)
{
    const PgkmExpression &x = program_.expressions[e];
    constexpr double zero = 0.0;
    const Operand i = x.a[0] < 0 ? Operand{&zero, false} : operand(x.a[0]);
    const bool is_column = x.operation == PGKM_COLUMN;
    if (is_column && !i.column)
        return column_at(is_place(*i.at, x.extent[0]) ? plan_.column_of[at(x.first + static_cast<std::int64_t>(*i.at))]
                                                      : plan_.columns - 1);
    const Operand j = is_column || x.a[1] < 0 ? Operand{&zero, false} : operand(x.a[1]);
    double *const to = column_at(plan_.first_columns[at(e)]);
    work(n_);
    for (int r = 0; r < n_; ++r) {
        const double line = i.at[i.column ? r : 0], place = j.at[j.column ? r : 0];
        if (!is_place(line, x.extent[0]) || !is_place(place, is_column ? 1 : x.extent[1])) {
            to[r] = nan;
            continue;
        }
        const std::int64_t at_line = x.first + static_cast<std::int64_t>(line) * (is_column ? 1 : x.extent[1]);
        to[r] = is_column ? column_at(plan_.column_of[at(at_line)])[r]
                          : program_.parameters[at_line + static_cast<std::int64_t>(place)];
    }
    return to;
}

// ---- loops ----

const double *Evaluator::over_rows(std::int32_t e)
{
    static constexpr double number = 0.0;
    constexpr Operand zero = {&number, false};
    const PgkmExpression &x = program_.expressions[e];
    const PgkmOperation operation = x.operation;
    const bool has_place = operation == PGKM_ARGMIN || operation == PGKM_ARGMAX;
    const bool greatest = operation == PGKM_MAX || operation == PGKM_ARGMAX;
    const Factors factors = operation == PGKM_SUM ? factors_of(program_, program_.expressions[x.a[0]]) : Factors{};
    double *const to = column_at(plan_.first_columns[at(e)]), *const other = to + stride_;
    const Operand total = {to, true}, beside = {other, true};
    kernels_.fill(to, operation == PGKM_PROD ? 1.0 : 0.0, n_);
    for (std::int64_t i = 0; i < program_.loops[x.loop]; ++i) {
        set_index(x.loop, i);
        const Operand a = operand(factors ? factors.x : x.a[0]);
        work(n_);
        if (factors) {
            binary(kernels_.add_product, to, a, factors.y == factors.x ? a : operand(factors.y));
        } else if (operation == PGKM_SUM || operation == PGKM_PROD) {
            binary(operation == PGKM_SUM ? PGKM_ADD : PGKM_MULTIPLY, to, total, a);
        } else if (operation == PGKM_COUNT) {
            binary(PGKM_NOT_EQUAL, other, a, zero);
            binary(PGKM_ADD, to, total, beside);
        } else if (i == 0 && has_place) { // no number stays where one is none
            binary(PGKM_MULTIPLY, other, a, zero);
            binary(PGKM_SUBTRACT, other, a, beside);
        } else if (i == 0) {
            std::copy_n(a.at, n_, to);
        } else if (has_place) {
            kernels_.take_extreme[greatest ? 1 : 0](other, to, a.at, static_cast<double>(i), n_);
        } else {
            binary(greatest ? PGKM_GREATEST : PGKM_LEAST, to, total, a);
        }
    }
    if (has_place) {
        binary(PGKM_MULTIPLY, other, beside, zero);
        binary(PGKM_SUBTRACT, to, total, beside);
    }
    return to;
}

const double *Evaluator::sum_block(std::size_t which)
{
    const SumBlock &block = plan_.blocks[which];
    const std::int64_t j = index_of(block.outer), panel = j / sum_panel, inner = program_.loops[block.inner];
    double *const sums = column_at(plan_.first_columns[at(block.sum)]);
    if (panels_[which] != panel) {
        panels_[which] = panel;
        kernels_.sum_block[block.square ? 1 : 0](column_at(block.first_column), stride_,
                                                 block.table.data() + panel * inner * sum_panel, inner, sums, n_);
        work(inner * n_);
    }
    return sums + j % sum_panel * stride_;
}

} // namespace pgkm::cpu
