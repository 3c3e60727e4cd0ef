// batch_plan.cpp - which expressions have columns, and which sums become blocks.
#include "cpu/reduce/batch_plan.hpp"

#include <algorithm>
#include <utility>

#include "cpu/reduce/kernels.hpp"

namespace pgkm::cpu {
namespace {

constexpr std::int64_t most_tabled = std::int64_t{1} << 22; // numbers u of a sum block
constexpr std::int64_t most_inner = 4096;                   // so few that a cancel is seen

} // namespace

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
        if (!is_pick(e))
            place(e, x.operation == PGKM_ARGMIN || x.operation == PGKM_ARGMAX ? 2 : 1); // beside the best value
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
    if (e < 0 || first_columns[at(e)] >= 0)
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

} // namespace pgkm::cpu
