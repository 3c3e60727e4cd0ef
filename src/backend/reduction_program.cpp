// reduction_program.cpp - the operations of a user's reduction, its check (every reference earlier, every index within
// its loop, every size), and its facts.
#include "backend/reduction_program.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr std::int32_t most_expressions = 1 << 20;
constexpr std::int32_t most_depth = 2000; // the walk of a row goes so deep
constexpr std::int64_t most_values = std::int64_t{1} << 40;

// A fault of who made the program: users' mistakes are found before.
[[noreturn]] void refuse(const std::string &what)
{
    throw Error(PGKM_INVALID, "the reduction is not valid: " + what);
}

void require(bool holds, const char *what)
{
    if (!holds)
        refuse(what);
}

// Of an enumerator from outside, which may be none: to load it as one would be undefined.
template <typename Enumerator>
std::int32_t number_of(const Enumerator &from)
{
    std::int32_t number;
    static_assert(sizeof number == sizeof from);
    std::memcpy(&number, &from, sizeof number);
    return number;
}

// Plain operations of an expression itself.
double cost_of(const PgkmReduction &program, const PgkmExpression &expression)
{
    constexpr double function = 15.0, quotient = 4.0;
    const PgkmOperation operation = expression.operation;
    if (operation == PGKM_CONSTANT)
        return 0.0;
    if (operation == PGKM_DIVIDE || operation == PGKM_SQRT)
        return quotient;
    const bool slow = operation == PGKM_EXP || operation == PGKM_LN || operation == PGKM_MODULO ||
                      operation == PGKM_POWER || operation == PGKM_ATAN2 ||
                      (operation >= PGKM_SIN && operation <= PGKM_TANH);
    return slow && !is_square(program, expression) ? function : 1.0;
}

double turns_of(const PgkmReduction &program, const PgkmExpression &expression)
{
    return goes_over_loop(expression.operation) ? static_cast<double>(program.loops[expression.loop]) : 1.0;
}

void sort_apart(std::vector<std::int32_t> &loops)
{
    std::sort(loops.begin(), loops.end());
    loops.erase(std::unique(loops.begin(), loops.end()), loops.end());
}

// Those of the next expression.
void add_facts(const PgkmReduction &program, std::vector<ExpressionFacts> &all)
{
    const PgkmExpression &expression = program.expressions[all.size()];
    ExpressionFacts own = {expression.operation == PGKM_COLUMN, {}, {}, 0, cost_of(program, expression)};
    if (expression.operation == PGKM_INDEX)
        own.loops.push_back(expression.loop);
    for (int i = 0; i < arguments_of(expression.operation); ++i)
        if (expression.a[i] >= 0) {
            const ExpressionFacts &argument = all[at(expression.a[i])];
            own.of_row = own.of_row || argument.of_row;
            own.cost += argument.cost;
            own.depth = std::max(own.depth, argument.depth + 1);
            own.loops.insert(own.loops.end(), argument.loops.begin(), argument.loops.end());
            own.held.insert(own.held.end(), argument.held.begin(), argument.held.end());
        }
    own.cost *= turns_of(program, expression);
    if (goes_over_loop(expression.operation)) {
        std::erase(own.loops, expression.loop);
        own.held.push_back(expression.loop);
    }
    sort_apart(own.loops);
    sort_apart(own.held);
    all.push_back(std::move(own));
}

class Check {
  public:
    Check(const PgkmReduction &program, std::int32_t d) : program_(program), d_(d) {}

    void run()
    {
        for (std::int32_t loop = 0; loop < program_.n_loops; ++loop)
            require(program_.loops[loop] >= 0 && program_.loops[loop] <= INT32_MAX, "the count of a loop");
        for (std::int64_t i = 0; i < program_.n_parameters; ++i)
            require(std::isfinite(program_.parameters[i]), "a parameter is no number");
        for (std::int32_t e = 0; e < program_.n_expressions; ++e) {
            expression(e);
            add_facts(program_, facts_);
            if (facts_.back().depth > most_depth)
                throw Error(PGKM_LIMIT, "the expressions of the reduction are nested too deeply");
        }
        for (std::int32_t o = 0; o < program_.n_objects; ++o)
            object(program_.objects[o]);
    }

  private:
    // An argument of expression e, or, with e the number of expressions, what an object refers to.
    void reference(std::int32_t argument, std::int32_t e) const
    {
        require(argument >= 0 && argument < e, "a reference that is not earlier");
    }

    void expression(std::int32_t e)
    {
        const PgkmExpression &own = program_.expressions[e];
        const std::int32_t operation = number_of(own.operation);
        require(operation >= 0 && operation < PGKM_OPERATIONS, "an operation that is not known");
        const bool subscripts = own.operation == PGKM_COLUMN || own.operation == PGKM_PARAMETER;
        for (int i = 0; i < arguments_of(own.operation); ++i)
            if (!subscripts || own.a[i] >= 0)
                reference(own.a[i], e);
        if (own.operation == PGKM_CONSTANT)
            require(std::isfinite(own.number), "a constant is no number");
        else if (subscripts)
            extents(own);
        else if (own.operation == PGKM_INDEX || goes_over_loop(own.operation))
            loop_of(e);
    }

    void extents(const PgkmExpression &own) const
    {
        const bool column = own.operation == PGKM_COLUMN;
        const std::int64_t rows = own.extent[0], columns = column ? 1 : own.extent[1];
        require(own.first >= 0 && rows >= 0 && columns >= 0, "a place below 0");
        require(own.a[0] >= 0 || rows == 1, "a subscript is missing");
        require(column || own.a[1] >= 0 || columns == 1, "a subscript is missing");
        const std::int64_t size = column ? d_ : program_.n_parameters;
        require(own.first <= size && rows * columns <= size - own.first, "a column or parameter lies outside");
    }

    void loop_of(std::int32_t e)
    {
        const PgkmExpression &own = program_.expressions[e];
        require(own.loop >= 0 && own.loop < program_.n_loops, "a loop that there is not");
        if (own.operation == PGKM_INDEX)
            return;
        require(program_.loops[own.loop] > 0 || own.operation == PGKM_SUM || own.operation == PGKM_PROD ||
                    own.operation == PGKM_COUNT,
                "a least or greatest value of a loop without indexes");
        require(!holds(own.a[0], own.loop), "a loop in its own body");
    }

    bool holds(std::int32_t e, std::int32_t loop) const
    {
        return std::binary_search(facts_[at(e)].held.begin(), facts_[at(e)].held.end(), loop);
    }

    // An expression of an object, which may depend on one loop at most and hold it no more.
    void root(std::int32_t e, std::int32_t loop) const
    {
        reference(e, program_.n_expressions);
        require(std::all_of(facts_[at(e)].loops.begin(), facts_[at(e)].loops.end(),
                            [&](std::int32_t l) { return l == loop; }),
                "an index outside its loop");
        require(!holds(e, loop), "a loop in its own body");
    }

    void object(const PgkmObject &object)
    {
        require(object.cells >= 1 && (object.cell >= 0 || object.cells == 1), "the cells of an object");
        require(object.first_item >= 0 && object.n_items >= 1 && object.n_items <= program_.n_items - object.first_item,
                "the items of an object");
        for (const std::int32_t e : {object.cell, object.filter})
            if (e >= 0)
                root(e, -1);
        for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i)
            item(program_.items[i]);
        const std::int64_t width = width_of(program_, object);
        if (object.cells > most_values / width || (values_ += object.cells * width) > most_values)
            throw Error(PGKM_LIMIT, "the reduction has more than 2^40 values");
    }

    void item(const PgkmItem &item) const
    {
        require(item.loop >= -1 && item.loop < program_.n_loops, "a loop that there is not");
        require(elements_of(program_, item.loop) >= 1, "a value without elements");
        const std::int32_t combine = number_of(item.combine);
        require(combine >= PGKM_COMBINE_SUM && combine <= PGKM_COMBINE_ARGMIN, "a way to combine values");
        if (item.combine != PGKM_COMBINE_COUNT)
            root(item.value, item.loop);
        if (item.combine == PGKM_COMBINE_ARGMIN)
            root(item.key, item.loop);
    }

    const PgkmReduction &program_;
    const std::int32_t d_;
    std::vector<ExpressionFacts> facts_;
    std::int64_t values_ = 0;
};

double truth(bool value)
{
    return value ? 1.0 : 0.0;
}

} // namespace

OperationFunction *function_of(PgkmOperation operation)
{
    static constexpr OperationFunction *functions[] = {
        [](double a, double, double) { return -a; },
        [](double a, double, double) { return truth(a == 0.0); },
        [](double a, double, double) { return std::fabs(a); },
        [](double a, double, double) { return std::sqrt(a); },
        [](double a, double, double) { return std::exp(a); },
        [](double a, double, double) { return std::log(a); },
        [](double a, double, double) { return std::floor(a); },
        [](double a, double, double) { return std::ceil(a); },
        [](double a, double, double) { return std::rint(a); },
        [](double a, double, double) { return std::trunc(a); },
        [](double a, double, double) { return truth(a > 0.0) - truth(a < 0.0); },
        [](double a, double, double) { return std::sin(a); },
        [](double a, double, double) { return std::cos(a); },
        [](double a, double, double) { return std::tan(a); },
        [](double a, double, double) { return std::asin(a); },
        [](double a, double, double) { return std::acos(a); },
        [](double a, double, double) { return std::atan(a); },
        [](double a, double, double) { return std::tanh(a); },
        [](double a, double b, double) { return a + b; },
        [](double a, double b, double) { return a - b; },
        [](double a, double b, double) { return a * b; },
        [](double a, double b, double) { return a / b; },
        [](double a, double b, double) { return std::fmod(a, b); },
        [](double a, double b, double) { return std::pow(a, b); },
        [](double a, double b, double) { return std::atan2(a, b); },
        [](double a, double b, double) { return b < a ? b : a; },
        [](double a, double b, double) { return b > a ? b : a; },
        [](double a, double b, double) { return truth(a == b); },
        [](double a, double b, double) { return truth(a != b); },
        [](double a, double b, double) { return truth(a < b); },
        [](double a, double b, double) { return truth(a <= b); },
        [](double a, double b, double) { return truth(a != 0.0 && b != 0.0); },
        [](double a, double b, double) { return truth(a != 0.0 || b != 0.0); },
        [](double a, double b, double c) { return a != 0.0 ? b : c; }};
    static_assert(std::size(functions) == PGKM_CASE - PGKM_NEGATE + 1);
    if (operation < PGKM_NEGATE || operation > PGKM_CASE)
        return [](double, double, double) { return double{NAN}; }; // no such operation
    return functions[operation - PGKM_NEGATE];
}

int arguments_of(PgkmOperation operation)
{
    if (operation <= PGKM_INDEX)
        return 0;
    if (operation == PGKM_COLUMN || (operation >= PGKM_NEGATE && operation <= PGKM_TANH) || goes_over_loop(operation))
        return 1;
    return operation == PGKM_CASE ? 3 : 2;
}

bool is_square(const PgkmReduction &program, const PgkmExpression &expression)
{
    if (expression.operation != PGKM_POWER)
        return false;
    const PgkmExpression &exponent = program.expressions[expression.a[1]];
    return exponent.operation == PGKM_CONSTANT && exponent.number == 2.0;
}

Factors factors_of(const PgkmReduction &program, const PgkmExpression &expression)
{
    if (expression.operation == PGKM_MULTIPLY)
        return {expression.a[0], expression.a[1]};
    return is_square(program, expression) ? Factors{expression.a[0], expression.a[0]} : Factors{};
}

std::int64_t width_of(const PgkmReduction &program, const PgkmObject &object)
{
    std::int64_t width = 0;
    for (std::int32_t i = 0; i < object.n_items; ++i)
        width += elements_of(program, program.items[object.first_item + i].loop);
    return width;
}

std::vector<ExpressionFacts> facts_of(const PgkmReduction &program)
{
    std::vector<ExpressionFacts> all;
    for (std::int32_t e = 0; e < program.n_expressions; ++e)
        add_facts(program, all);
    return all;
}

void check_program(const PgkmReduction &program, std::int32_t d)
{
    require(program.n_expressions >= 0 && program.n_loops >= 0 && program.n_items >= 0 && program.n_parameters >= 0,
            "a count below 0");
    require(program.n_objects >= 1, "there is no object");
    if (program.n_expressions > most_expressions)
        throw Error(PGKM_LIMIT, "the reduction has more than " + std::to_string(most_expressions) + " expressions");
    Check(program, d).run();
}

std::int64_t values_in(const PgkmReduction &program)
{
    std::int64_t values = 0;
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        values += program.objects[o].cells * width_of(program, program.objects[o]);
    return values;
}

std::int64_t cells_in(const PgkmReduction &program)
{
    std::int64_t cells = 0;
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        cells += program.objects[o].cells;
    return cells;
}

ProgramWork program_work(const PgkmReduction &program)
{
    const std::vector<ExpressionFacts> facts = facts_of(program);
    ProgramWork work = {0.0, static_cast<double>(values_in(program))};
    for (std::int32_t e = 0; e < program.n_expressions; ++e) {
        double times = turns_of(program, program.expressions[e]);
        for (const std::int32_t loop : facts[at(e)].loops)
            times *= static_cast<double>(program.loops[loop]);
        (facts[at(e)].of_row ? work.row : work.once) += times * cost_of(program, program.expressions[e]);
    }
    for (std::int32_t o = 0; o < program.n_objects; ++o)
        work.row += 2.0 * (1.0 + static_cast<double>(width_of(program, program.objects[o])));
    work.row *= program.exact != 0 ? 2.0 : 1.0;
    return work;
}

} // namespace pgkm
