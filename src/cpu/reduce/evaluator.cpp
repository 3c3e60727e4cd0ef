// evaluator.cpp - expressions over batches. An operation on a whole column takes longer than to find its kernel.
#include "cpu/reduce/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pgkm::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t most_indexes = 1 << 16; // for which a scalar is kept
constexpr std::size_t most_kept = 1 << 18;     // of all expressions
constexpr int least_rows = 32;                 // of a kernel
constexpr double zero = 0.0;

// Row by row. What is no number stays none, but in the branch that a CASE does not take.
void each_row(double *to, PgkmOperation operation, Operand a, Operand b, Operand c, int n)
{
    OperationFunction *const function = function_of(operation);
    for (int r = 0; r < n; ++r) {
        const double x = a.of(r), y = b.of(r);
        const bool known = std::isfinite(x) && (operation == PGKM_CASE || std::isfinite(y));
        to[r] = known ? function(x, y, c.of(r)) : nan;
    }
}

} // namespace

// ---- what depends on what ----

Evaluator::Evaluator(Context &context, const BatchPlan &plan)
    : context_(context), plan_(plan), program_(plan.program), kernels_(reduce_kernels(context.instruction_set)),
      stride_(plan.stride()), memory_(context.budget, at(plan.columns * stride_)), at_(plan.facts.size()),
      panels_(plan.blocks.size()), block_of_(plan.facts.size(), -1), values_(plan.facts.size()),
      indexes_(at(program_.n_loops) + 1, -1), parts_(at(program_.n_loops))
{
    std::fill_n(column_at(plan.columns - 1), stride_, nan);
    for (std::size_t b = 0; b < plan.blocks.size(); ++b)
        block_of_[at(plan.blocks[b].sum)] = static_cast<std::int32_t>(b);
    for (std::int32_t loop = 0; loop < program_.n_loops; ++loop)
        loops_of_causes_.push_back(loop);
    dependents_.resize(at(program_.n_loops));
    std::vector<std::vector<std::int32_t>> causes(plan.facts.size()); // of each expression
    std::vector<std::int32_t> of_row;
    for (std::int32_t e = 0; e < program_.n_expressions; ++e) {
        places_.push_back({at(e)});
        add_causes(e, causes);
        if (plan.facts[at(e)].of_row)
            of_row.push_back(e);
    }
    dependents_.push_back(std::move(of_row));
    known_.resize(values_.size());
}

// Whether they are few enough.
bool Evaluator::keep_for_each_index(std::int32_t e)
{
    const ExpressionFacts &facts = plan_.facts[at(e)];
    if (facts.of_row || facts.loops.empty() || facts.loops.size() > 2 ||
        program_.expressions[e].operation == PGKM_INDEX)
        return false;
    Place place = {values_.size()};
    std::int64_t size = 1;
    for (std::size_t i = 0; i < facts.loops.size(); ++i) {
        place.loops[i] = facts.loops[i];
        place.strides[i] = size;
        size *= std::min(std::max<std::int64_t>(program_.loops[facts.loops[i]], 1), most_indexes + 1);
    }
    if (size > most_indexes || values_.size() + at(size) > most_kept)
        return false;
    values_.resize(values_.size() + at(size));
    places_[at(e)] = place;
    return true;
}

void Evaluator::add_causes(std::int32_t e, std::vector<std::vector<std::int32_t>> &causes)
{
    const PgkmExpression &x = program_.expressions[e];
    const ExpressionFacts &facts = plan_.facts[at(e)];
    std::vector<std::int32_t> &own = causes[at(e)];
    if (x.operation == PGKM_INDEX)
        own.push_back(x.loop);
    for (int i = 0; i < arguments_of(x.operation); ++i)
        if (x.a[i] >= 0)
            own.insert(own.end(), causes[at(x.a[i])].begin(), causes[at(x.a[i])].end());
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    if (goes_over_loop(x.operation))
        std::erase_if(own, [&](std::int32_t cause) { return loops_of_causes_[at(cause)] == x.loop; });
    if (!keep_for_each_index(e))
        for (const std::int32_t cause : own)
            dependents_[at(cause)].push_back(e);
    if ((x.operation == PGKM_FLOOR || x.operation == PGKM_MODULO) && !facts.of_row && facts.loops.size() == 1) {
        own = {static_cast<std::int32_t>(dependents_.size())};
        parts_[at(facts.loops[0])].push_back({e, own[0], nan});
        loops_of_causes_.push_back(facts.loops[0]);
        dependents_.emplace_back();
    }
}

void Evaluator::set_index(std::int32_t loop, std::int64_t index)
{
    work(1);
    if (indexes_[at(loop)] == index)
        return;
    indexes_[at(loop)] = index;
    forget(loop);
    for (Part &part : parts_[at(loop)]) {
        const double now = *operand(part.expression).at;
        if (now != part.last)
            forget(part.cause);
        part.last = now;
    }
}

void Evaluator::work(std::int64_t operations)
{
    if ((left_ -= operations) >= 0)
        return;
    context_.poll();
    left_ = 1 << 18;
}

// ---- a batch ----

template <typename T>
void Evaluator::load(const T *rows, int n, std::int32_t d)
{
    n_ = (n + least_rows - 1) / least_rows * least_rows;
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
    forget(static_cast<std::int32_t>(dependents_.size()) - 1);
    std::fill(panels_.begin(), panels_.end(), -1);
}

template <typename T>
void Evaluator::run(const T *rows, int n, std::int32_t d, Accumulator &objects)
{
    load(rows, n, d);
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

Operand Evaluator::operand(std::int32_t e)
{
    if (plan_.facts[at(e)].of_row) {
        if (known_[at(e)] == 0)
            at_[at(e)] = compute_column(e);
        known_[at(e)] = 1;
        return {at_[at(e)], true};
    }
    const Place &place = places_[at(e)];
    const std::size_t here = place.first + at(place.strides[0] * indexes_[at(place.loops[0])] +
                                              place.strides[1] * indexes_[at(place.loops[1])]);
    if (known_[here] == 0)
        compute(e, &values_[here], 1);
    known_[here] = 1;
    return {&values_[here], false};
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
    if (block_of_[at(e)] >= 0)
        return sum_block(at(block_of_[at(e)]));
    if (plan_.is_pick(e)) {
        const double i = x.a[0] < 0 ? 0.0 : *operand(x.a[0]).at;
        return column_at(is_place(i, x.extent[0]) ? plan_.column_of[at(x.first + static_cast<std::int64_t>(i))]
                                                  : plan_.columns - 1);
    }
    double *const to = column_at(plan_.first_columns[at(e)]);
    compute(e, to, n_);
    return to;
}

// For n rows, or n = 1 for a scalar.
void Evaluator::compute(std::int32_t e, double *to, int n)
{
    const PgkmExpression &x = program_.expressions[e];
    work(n);
    if (x.operation == PGKM_CONSTANT || x.operation == PGKM_INDEX) {
        *to = x.operation == PGKM_CONSTANT ? x.number : static_cast<double>(indexes_[at(x.loop)]);
    } else if (x.operation == PGKM_COLUMN || x.operation == PGKM_PARAMETER) {
        element(e, to, n);
    } else if (goes_over_loop(x.operation) && n > 1) {
        over_loop(e, to, to + stride_, n);
    } else if (goes_over_loop(x.operation)) {
        alignas(128) double own[2][least_rows];
        over_loop(e, own[0], own[1], least_rows);
        *to = own[0][0];
    } else {
        const bool square = is_square(program_, x);
        const PgkmOperation operation = square ? PGKM_MULTIPLY : x.operation;
        const int count = square ? 1 : arguments_of(operation);
        const Operand a = operand(x.a[0]), b = count > 1 ? operand(x.a[1]) : a, c = count > 2 ? operand(x.a[2]) : a;
        OperationKernel *const kernel = kernels_.operations[operation - PGKM_NEGATE];
        if (kernel != nullptr && n > 1)
            kernel(to, a, b, c, n);
        else
            each_row(to, operation, a, b, c, n);
    }
}

void Evaluator::element(std::int32_t e, double *to, int n)
{
    const PgkmExpression &x = program_.expressions[e];
    const bool is_column = x.operation == PGKM_COLUMN;
    const Operand none = {&zero, false}, i = x.a[0] < 0 ? none : operand(x.a[0]);
    const Operand j = is_column || x.a[1] < 0 ? none : operand(x.a[1]);
    const std::int64_t width = is_column ? 1 : x.extent[1];
    for (int r = 0; r < n; ++r) {
        if (!is_place(i.of(r), x.extent[0]) || !is_place(j.of(r), static_cast<double>(width))) {
            to[r] = nan;
            continue;
        }
        const std::int64_t place =
            x.first + static_cast<std::int64_t>(i.of(r)) * width + static_cast<std::int64_t>(j.of(r));
        to[r] = is_column ? column_at(plan_.column_of[at(place)])[r] : program_.parameters[place];
    }
}

// ---- loops ----

void Evaluator::over_loop(std::int32_t e, double *to, double *best, int n)
{
    const PgkmExpression &x = program_.expressions[e];
    const PgkmOperation operation = x.operation;
    const Factors factors = operation == PGKM_SUM ? factors_of(program_, program_.expressions[x.a[0]]) : Factors{};
    const bool has_place = operation == PGKM_ARGMIN || operation == PGKM_ARGMAX;
    const double worst = operation == PGKM_MIN || operation == PGKM_ARGMIN   ? infinity
                         : operation == PGKM_MAX || operation == PGKM_ARGMAX ? -infinity
                         : operation == PGKM_PROD                            ? 1.0
                                                                             : 0.0;
    LoopKernel *const step = factors ? kernels_.add_product : kernels_.loops[operation - PGKM_SUM];
    kernels_.fill(to, has_place ? 0.0 : worst, n);
    if (has_place)
        kernels_.fill(best, worst, n);
    for (std::int64_t i = 0; i < program_.loops[x.loop]; ++i) {
        set_index(x.loop, i);
        const Operand a = operand(factors ? factors.x : x.a[0]), b = factors ? operand(factors.y) : a;
        work(n);
        step(to, best, a, b, static_cast<double>(i), n);
    }
    if (has_place) // no number stays where the best value is none
        kernels_.add_product(to, best, {best, true}, {&zero, false}, 0.0, n);
}

const double *Evaluator::sum_block(std::size_t which)
{
    const SumBlock &block = plan_.blocks[which];
    const std::int64_t j = indexes_[at(block.outer)], panel = j / sum_panel, inner = program_.loops[block.inner];
    double *const sums = column_at(plan_.first_columns[at(block.sum)]);
    if (panels_[which] != panel) {
        panels_[which] = panel;
        kernels_.sum_block[block.square ? 1 : 0](column_at(block.first_column), stride_,
                                                 block.table.data() + panel * inner * sum_panel, inner, sums, n_);
        work(inner * n_);
    }
    return sums + j % sum_panel * stride_;
}

void Evaluator::fill_table(SumBlock &block)
{
    const std::int64_t inner = program_.loops[block.inner], outer = program_.loops[block.outer];
    block.table = Buffer<double>(context_.budget, at((outer + sum_panel - 1) / sum_panel * sum_panel * inner), 0.0);
    for (std::int64_t j = 0; j < outer; ++j)
        for (std::int64_t i = 0; i < inner; ++i) {
            set_index(block.outer, j);
            set_index(block.inner, i);
            block.table[at((j / sum_panel * inner + i) * sum_panel + j % sum_panel)] = *operand(block.u).at;
        }
}

void fill_tables(Context &context, BatchPlan &plan)
{
    if (plan.blocks.empty())
        return;
    Evaluator evaluator(context, plan);
    for (SumBlock &block : plan.blocks)
        evaluator.fill_table(block);
}

} // namespace pgkm::cpu
