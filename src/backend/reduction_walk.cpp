// reduction_walk.cpp - the operations of a reduction, and the walk over one row.
#include "backend/reduction_walk.hpp"

#include <algorithm>
#include <cmath>

#include "numeric/index.hpp"

namespace pgkm {

int arguments_of(PgkmOperation operation)
{
    if (operation <= PGKM_INDEX)
        return 0;
    if (operation == PGKM_COLUMN || (operation >= PGKM_NEGATE && operation <= PGKM_TANH) || goes_over_loop(operation))
        return 1;
    return operation == PGKM_CASE ? 3 : 2;
}

double operation_value(PgkmOperation operation, double a, double b, double c)
{
    const auto truth = [](bool value) { return value ? 1.0 : 0.0; };
    switch (operation) {
    case PGKM_NEGATE:
        return -a;
    case PGKM_NOT:
        return truth(a == 0.0);
    case PGKM_ABS:
        return std::fabs(a);
    case PGKM_SQRT:
        return std::sqrt(a);
    case PGKM_EXP:
        return std::exp(a);
    case PGKM_LN:
        return std::log(a);
    case PGKM_FLOOR:
        return std::floor(a);
    case PGKM_CEIL:
        return std::ceil(a);
    case PGKM_ROUND:
        return std::rint(a);
    case PGKM_TRUNC:
        return std::trunc(a);
    case PGKM_SIGN:
        return truth(a > 0.0) - truth(a < 0.0);
    case PGKM_SIN:
        return std::sin(a);
    case PGKM_COS:
        return std::cos(a);
    case PGKM_TAN:
        return std::tan(a);
    case PGKM_ASIN:
        return std::asin(a);
    case PGKM_ACOS:
        return std::acos(a);
    case PGKM_ATAN:
        return std::atan(a);
    case PGKM_TANH:
        return std::tanh(a);
    case PGKM_ADD:
        return a + b;
    case PGKM_SUBTRACT:
        return a - b;
    case PGKM_MULTIPLY:
        return a * b;
    case PGKM_DIVIDE:
        return a / b;
    case PGKM_MODULO:
        return std::fmod(a, b);
    case PGKM_POWER:
        return std::pow(a, b);
    case PGKM_ATAN2:
        return std::atan2(a, b);
    case PGKM_LEAST:
        return b < a ? b : a;
    case PGKM_GREATEST:
        return b > a ? b : a;
    case PGKM_EQUAL:
        return truth(a == b);
    case PGKM_NOT_EQUAL:
        return truth(a != b);
    case PGKM_LESS:
        return truth(a < b);
    case PGKM_LESS_EQUAL:
        return truth(a <= b);
    case PGKM_AND:
        return truth(a != 0.0 && b != 0.0);
    case PGKM_OR:
        return truth(a != 0.0 || b != 0.0);
    case PGKM_CASE:
        return a != 0.0 ? b : c;
    default:
        return NAN; // no such operation
    }
}

bool is_square(const PgkmReduction &program, const PgkmExpression &expression)
{
    if (expression.operation != PGKM_POWER)
        return false;
    const PgkmExpression &exponent = program.expressions[expression.a[1]];
    return exponent.operation == PGKM_CONSTANT && exponent.number == 2.0;
}

std::int64_t width_of(const PgkmReduction &program, const PgkmObject &object)
{
    std::int64_t width = 0;
    for (std::int32_t i = 0; i < object.n_items; ++i)
        width += elements_of(program, program.items[object.first_item + i].loop);
    return width;
}

std::vector<std::vector<std::int32_t>> free_loops(const PgkmReduction &program)
{
    std::vector<std::vector<std::int32_t>> all(at(program.n_expressions));
    for (std::int32_t e = 0; e < program.n_expressions; ++e) {
        const PgkmExpression &expression = program.expressions[e];
        std::vector<std::int32_t> &own = all[at(e)];
        if (expression.operation == PGKM_INDEX)
            own.push_back(expression.loop);
        for (int i = 0; i < arguments_of(expression.operation); ++i)
            if (expression.a[i] >= 0)
                own.insert(own.end(), all[at(expression.a[i])].begin(), all[at(expression.a[i])].end());
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        if (goes_over_loop(expression.operation))
            std::erase(own, expression.loop);
    }
    return all;
}

ReductionWalk::ReductionWalk(const PgkmReduction &program, std::function<void()> poll)
    : program_(program), poll_(std::move(poll)), dependent_(at(program.n_loops)), values_(at(program.n_expressions)),
      known_(at(program.n_expressions)), indexes_(at(program.n_loops))
{
    const std::vector<std::vector<std::int32_t>> loops = free_loops(program);
    for (std::int32_t e = 0; e < program.n_expressions; ++e)
        for (const std::int32_t loop : loops[at(e)])
            dependent_[at(loop)].push_back(e);
}

void ReductionWalk::begin(const double *row)
{
    row_ = row;
    std::fill(known_.begin(), known_.end(), 0);
}

ReductionFault ReductionWalk::fault_of(const double *row)
{
    begin(row);
    try {
        for (std::int32_t o = 0; o < program_.n_objects; ++o)
            object(program_.objects[o]);
    } catch (const ReductionFault &fault) {
        return fault;
    }
    return {};
}

std::int64_t ReductionWalk::cell_of(const PgkmObject &object)
{
    const double cell = object.cell < 0 ? 0.0 : value(object.cell);
    if (!(cell >= 0.0 && cell < static_cast<double>(object.cells) && cell == std::floor(cell)))
        throw ReductionFault{PGKM_FAULT_CELL, object.cell, cell};
    return static_cast<std::int64_t>(cell);
}

void ReductionWalk::object(const PgkmObject &object)
{
    if (object.filter >= 0 && value(object.filter) == 0.0)
        return;
    cell_of(object);
    for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
        const PgkmItem &item = program_.items[i];
        for (std::int64_t e = 0; item.combine != PGKM_COMBINE_COUNT && e < elements_of(program_, item.loop); ++e) {
            if (item.loop >= 0)
                set_index(item.loop, e);
            value(item.value);
            if (item.combine == PGKM_COMBINE_ARGMIN)
                value(item.key);
        }
    }
}

void ReductionWalk::step()
{
    if ((++steps_ & 0xfff) == 0)
        poll_();
}

void ReductionWalk::set_index(std::int32_t loop, std::int64_t index)
{
    step();
    indexes_[at(loop)] = index;
    for (const std::int32_t e : dependent_[at(loop)])
        known_[at(e)] = 0;
}

double ReductionWalk::value(std::int32_t expression)
{
    if (known_[at(expression)] != 0)
        return values_[at(expression)];
    step();
    const double result =
        goes_over_loop(program_.expressions[expression].operation) ? over_loop(expression) : compute(expression);
    if (!std::isfinite(result))
        throw ReductionFault{PGKM_FAULT_NUMBER, expression, result};
    values_[at(expression)] = result;
    known_[at(expression)] = 1;
    return result;
}

// Argument i as a subscript below extent[i]; 0 where there is none.
std::int64_t ReductionWalk::subscript(std::int32_t expression, int argument)
{
    const PgkmExpression &own = program_.expressions[expression];
    if (own.a[argument] < 0)
        return 0;
    const double place = value(own.a[argument]);
    if (!(place >= 0.0 && place < own.extent[argument] && place == std::floor(place)))
        throw ReductionFault{PGKM_FAULT_SUBSCRIPT, expression, place};
    return static_cast<std::int64_t>(place);
}

double ReductionWalk::compute(std::int32_t expression)
{
    const PgkmExpression &own = program_.expressions[expression];
    switch (own.operation) {
    case PGKM_CONSTANT:
        return own.number;
    case PGKM_INDEX:
        return static_cast<double>(indexes_[at(own.loop)]);
    case PGKM_COLUMN:
        return row_[own.first + subscript(expression, 0)];
    case PGKM_PARAMETER: {
        const std::int64_t i = subscript(expression, 0), j = subscript(expression, 1);
        return program_.parameters[own.first + i * own.extent[1] + j];
    }
    case PGKM_CASE:
        return value(own.a[0]) != 0.0 ? value(own.a[1]) : value(own.a[2]);
    default: {
        const double a = value(own.a[0]), b = arguments_of(own.operation) == 2 ? value(own.a[1]) : 0.0;
        if ((own.operation == PGKM_DIVIDE || own.operation == PGKM_MODULO) && b == 0.0)
            throw ReductionFault{PGKM_FAULT_DIVISION, expression, a};
        return is_square(program_, own) ? a * a : operation_value(own.operation, a, b, 0.0);
    }
    }
}

double ReductionWalk::over_loop(std::int32_t expression)
{
    const PgkmExpression &own = program_.expressions[expression];
    const PgkmExpression &body = program_.expressions[own.a[0]];
    const bool product = body.operation == PGKM_MULTIPLY, square = is_square(program_, body);
    double total = own.operation == PGKM_PROD ? 1.0 : 0.0, best = 0.0;
    for (std::int64_t i = 0; i < program_.loops[own.loop]; ++i) {
        set_index(own.loop, i);
        if (own.operation == PGKM_SUM && (product || square)) {
            const double x = value(body.a[0]), y = product ? value(body.a[1]) : x;
            total = std::fma(x, y, total);
            continue;
        }
        const double x = value(own.a[0]);
        if (own.operation == PGKM_SUM)
            total += x;
        else if (own.operation == PGKM_PROD)
            total *= x;
        else if (own.operation == PGKM_COUNT)
            total += x != 0.0 ? 1.0 : 0.0;
        else if (i == 0 || (own.operation == PGKM_MIN || own.operation == PGKM_ARGMIN ? x < best : x > best)) {
            best = x;
            total = own.operation == PGKM_MIN || own.operation == PGKM_MAX ? x : static_cast<double>(i);
        }
    }
    return total;
}

} // namespace pgkm
