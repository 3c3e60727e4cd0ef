// evaluator.cpp - the steps, one after the other. An operation on a whole column takes longer than to find its kernel.
#include "cpu/reduce/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int row_step = 32; // BatchKernels' n

int row_count(int rows)
{
    return (rows + row_step - 1) / row_step * row_step;
}

bool is_least(PgkmOperation operation)
{
    return operation == PGKM_MIN || operation == PGKM_ARGMIN;
}

bool is_place_of(PgkmOperation operation)
{
    return operation == PGKM_ARGMIN || operation == PGKM_ARGMAX;
}

} // namespace

Evaluator::Evaluator(Context &context, const BatchProgram &program)
    : context_(context), program_(program), kernels_(batch_kernels(context.instruction_set)), stride_(program.stride()),
      memory_(context.budget, at(program.all_columns() * stride_)), scalars_(program.scalars),
      best_(program.scalars.size()), poison_(program.scalars.size()), panels_(program.sum_blocks.size(), -1)
{
    packed_ = memory_.data();
    columns_ = packed_ + static_cast<std::int64_t>(program.packed_values.size()) * stride_;
    wide_ = columns_ + program.columns * stride_;
    nothing_ = wide_ + program.wide_columns * stride_;
    std::fill_n(nothing_, stride_, nan);
    double *next = wide_;
    for (const std::int64_t width : program.widths) {
        wides_.push_back(next);
        next += width * stride_;
    }
    for (std::int32_t c = 0; c < program.columns; ++c)
        at_.push_back(own(c));
}

double Evaluator::bytes(const BatchProgram &program)
{
    return 8.0 * static_cast<double>(program.all_columns()) * program.stride() +
           32.0 * static_cast<double>(program.scalars.size() + at(program.columns));
}

Tables Evaluator::make_tables()
{
    run_block(0);
    std::vector<Buffer<double>> look_ups, tables;
    for (const LookUp &table : program_.look_ups)
        look_ups.push_back(table_of(table));
    for (const SumBlock &block : program_.sum_blocks) {
        const std::int64_t inner = program_.reduction.loops[block.inner], outer = program_.reduction.loops[block.outer];
        const std::int64_t panels = (outer + sum_panel - 1) / sum_panel;
        Buffer<double> table(context_.budget, at(panels * inner * sum_panel), 0.0);
        for (std::int64_t j = 0; j < outer; ++j)
            for (std::int64_t i = 0; i < inner; ++i) {
                set_index(block.inner, i);
                set_index(block.outer, j);
                run_block(block.block);
                table[at((j / sum_panel * inner + i) * sum_panel + j % sum_panel)] = number(block.value);
            }
        tables.push_back(std::move(table));
    }
    return {scalars_, std::move(look_ups), std::move(tables)};
}

// For each index of the first loop all of the second.
Buffer<double> Evaluator::table_of(const LookUp &table)
{
    const std::int64_t *const loops = program_.reduction.loops;
    const std::int64_t first = loops[table.loops[0]], second = table.loops[1] < 0 ? 1 : loops[table.loops[1]];
    Buffer<double> values(context_.budget, at(first * second));
    for (std::int64_t i = 0; i < first; ++i)
        for (std::int64_t j = 0; j < second; ++j) {
            set_index(table.loops[0], i);
            if (table.loops[1] >= 0)
                set_index(table.loops[1], j);
            run_block(table.block);
            values[at(i * second + j)] = number(table.value);
        }
    return values;
}

double Evaluator::looked_up(const Step &step) const
{
    const LookUp &table = program_.look_ups[at(step.wide)];
    const auto index = [&](std::int32_t loop) {
        return static_cast<std::int64_t>(scalars_[at(program_.index_of[at(loop)])]);
    };
    const std::int64_t i = index(table.loops[0]);
    const double *const values = tables_->look_ups[at(step.wide)].data();
    return table.loops[1] < 0 ? values[i]
                              : values[i * program_.reduction.loops[table.loops[1]] + index(table.loops[1])];
}

void Evaluator::use(const Tables &tables)
{
    tables_ = &tables;
    scalars_ = tables.scalars;
}

template <typename T>
void Evaluator::run(const T *rows, int n, std::int32_t d, Accumulator &objects)
{
    rows_ = n;
    n_ = row_count(n);
    objects_ = &objects;
    std::fill(panels_.begin(), panels_.end(), -1);
    constexpr int together = 8; // rows: a line of a column
    const std::vector<std::int32_t> &values = program_.packed_values;
    for (int r = 0; r < n_; r += together) {
        const T *row[together];
        for (int i = 0; i < together; ++i)
            row[i] = rows + static_cast<std::int64_t>(std::min(r + i, n - 1)) * d; // the last one fills up
        for (std::size_t c = 0; c < values.size(); ++c)
            for (int i = 0; i < together; ++i)
                packed_[static_cast<std::int64_t>(c) * stride_ + r + i] = static_cast<double>(row[i][values[c]]);
    }
    run_block(1);
}

template void Evaluator::run(const float *, int, std::int32_t, Accumulator &);
template void Evaluator::run(const double *, int, std::int32_t, Accumulator &);

void Evaluator::run_block(std::int32_t block)
{
    for (const Step &step : program_.blocks[at(block)])
        run_step(step);
}

void Evaluator::run_step(const Step &step)
{
    switch (step.kind) {
    case StepKind::scalar:
        work(1);
        number(step.to) = scalar_of(step);
        return;
    case StepKind::look_up:
        work(1);
        number(step.to) = looked_up(step);
        return;
    case StepKind::parameter:
        work(1);
        number(step.to) = parameter_of(step);
        return;
    case StepKind::select:
        return select(step);
    case StepKind::pick:
        at_[at(step.to.place)] = wides_[at(step.wide)] + static_cast<std::int64_t>(number(step.a)) * stride_;
        return;
    case StepKind::loop:
        return run_loop(step);
    case StepKind::store:
        return store(step);
    case StepKind::add_scalar:
        return add_scalar(step);
    case StepKind::elements:
        return run_elements(step);
    case StepKind::enter:
        objects_->enter(step.object, step.a.is_given() ? from(step.a) : nullptr,
                        step.b.is_given() ? from(step.b) : nullptr, rows_);
        return;
    case StepKind::add_value: {
        const std::int32_t loop = step.loop;
        const auto element = loop < 0 ? 0 : static_cast<std::int64_t>(scalars_[at(program_.index_of[at(loop)])]);
        work(n_);
        objects_->add(step.item, element, from(step.a), step.b.is_given() ? from(step.b) : nullptr,
                      step.c.is_given() ? from(step.c) : nullptr);
        return;
    }
    default:
        break;
    }
    work(n_);
    switch (step.kind) {
    case StepKind::gather:
        return gather(step);
    case StepKind::unary:
        return kernels_.unary[step.kernel](to(step), from(step.a), n_);
    case StepKind::binary:
        return kernels_.binary[step.kernel][broadcast(step)](to(step), from(step.a), from(step.b), n_);
    case StepKind::choose:
        return kernels_.choose(to(step), from(step.a), from(step.b), from(step.c), n_);
    case StepKind::each:
        return each(step);
    case StepKind::fill:
        return kernels_.fill(to(step), number(step.a), n_);
    case StepKind::sum_block:
        return sum_block(step);
    case StepKind::add_sum:
        return kernels_.add_sum(to(step), from(step.a), n_);
    case StepKind::add_product:
        return kernels_.add_product[broadcast(step)](to(step), from(step.a), from(step.b), n_);
    case StepKind::add_square_of:
        return kernels_.add_square_of[broadcast(step)](to(step), from(step.a), from(step.b), n_);
    default:
        return add_other(step);
    }
}

// ---- loops ----

void Evaluator::add_scalar(const Step &step)
{
    const auto place = at(step.to.place);
    const double a = number(step.a);
    double &total = scalars_[place];
    work(1);
    switch (step.operation) {
    case PGKM_SUM:
        total = step.b.is_given() ? std::fma(a, number(step.b), total) : total + a;
        return;
    case PGKM_PROD:
        total *= a;
        return;
    case PGKM_COUNT:
        total += std::isfinite(a) ? (a != 0.0 ? 1.0 : 0.0) : nan;
        return;
    default:
        poison_[place] += a * 0.0;
        if (is_least(step.operation) ? a < best_[place] : a > best_[place]) {
            best_[place] = a;
            total = is_place_of(step.operation) ? scalars_[at(program_.index_of[at(step.loop)])] : a;
        }
    }
}

void Evaluator::run_loop(const Step &step)
{
    const double none = step.operation == PGKM_PROD ? 1.0 : 0.0;
    const double worst = is_least(step.operation) ? infinity : -infinity;
    double *const scratch = step.scratch < 0 ? nullptr : own(step.scratch);
    if (!step.to.column) {
        number(step.to) = none;
        best_[at(step.to.place)] = worst;
        poison_[at(step.to.place)] = 0.0;
    } else {
        kernels_.fill(to(step), scratch == nullptr || is_place_of(step.operation) ? none : worst, n_);
        if (scratch != nullptr) {
            kernels_.fill(scratch, 0.0, n_);
            kernels_.fill(scratch + stride_, worst, n_);
        }
    }
    for (std::int64_t i = 0; i < program_.reduction.loops[step.loop]; ++i) {
        set_index(step.loop, i);
        run_block(step.block);
    }
    if (!step.to.column)
        number(step.to) += poison_[at(step.to.place)];
    else if (scratch != nullptr)
        kernels_.add_poison(to(step), scratch, n_);
}

void Evaluator::add_other(const Step &step)
{
    const double *const a = from(step.a);
    if (step.operation == PGKM_PROD)
        return kernels_.multiply_by(to(step), a, n_);
    if (step.operation == PGKM_COUNT)
        return kernels_.add_count(to(step), a, n_);
    double *const poison = own(step.scratch), *const other = poison + stride_;
    const bool place = is_place_of(step.operation);
    (is_least(step.operation) ? kernels_.least : kernels_.greatest)(place ? other : to(step), place ? to(step) : other,
                                                                    poison, a,
                                                                    scalars_[at(program_.index_of[at(step.loop)])], n_);
}

void Evaluator::run_elements(const Step &step)
{
    const Accumulator::Range range = objects_->elements(step.item);
    for (std::int64_t i = range.first; i < range.last; ++i) {
        if (step.loop >= 0)
            set_index(step.loop, i);
        run_block(step.block);
    }
}

void Evaluator::store(const Step &step)
{
    double *const wide = wides_[at(step.wide)];
    for (std::int64_t i = 0; i < step.count; ++i) {
        set_index(step.loop, i);
        run_block(step.block);
        std::copy_n(from(step.a), n_, wide + i * stride_);
        work(n_);
    }
}

void Evaluator::sum_block(const Step &step)
{
    const SumBlock &block = program_.sum_blocks[at(step.wide)];
    const auto j = static_cast<std::int64_t>(scalars_[at(program_.index_of[at(block.outer)])]);
    const std::int64_t panel = j / sum_panel, inner = program_.reduction.loops[block.inner];
    double *const sums = own(block.sums);
    if (panels_[at(step.wide)] != panel) {
        panels_[at(step.wide)] = panel;
        const double *const x = block.wide < 0 ? packed_ + block.first_column * stride_ : wides_[at(block.wide)];

        (block.square ? kernels_.squares : kernels_.products)(
            x, stride_, tables_->sum_blocks[at(step.wide)].data() + panel * inner * sum_panel, inner, sums, n_);
        work(static_cast<int>(std::min<std::int64_t>(inner * n_, 1 << 20)));
    }
    at_[at(step.to.place)] = sums + j % sum_panel * stride_;
}

} // namespace pgkm::cpu
