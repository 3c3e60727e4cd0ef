// reduction_walk.cpp - the operations of a reduction, and their values one at a time.
#include "backend/reduction_walk.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "numeric/error.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t most_indexes = 1 << 16; // for which a value is kept
constexpr std::size_t most_kept = 1 << 18;     // of all expressions

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

// ---- what depends on what ----

ReductionWalk::ReductionWalk(const PgkmReduction &program, std::vector<ExpressionFacts> facts,
                             std::function<void()> poll)
    : program_(program), facts_(std::move(facts)), poll_(std::move(poll)), values_(at(program.n_expressions)),
      known_(values_.size()), indexes_(at(program.n_loops) + 1, -1), parts_(at(program.n_loops))
{
    for (std::int32_t loop = 0; loop < program.n_loops; ++loop)
        loops_of_causes_.push_back(loop);
    dependents_.resize(at(program.n_loops));
    std::vector<std::vector<std::int32_t>> causes(at(program.n_expressions)); // of each expression
    std::vector<std::int32_t> of_row;
    for (std::int32_t e = 0; e < program.n_expressions; ++e) {
        places_.push_back({at(e)});
        add_causes(e, causes);
        if (facts_[at(e)].of_row)
            of_row.push_back(e);
    }
    dependents_.push_back(std::move(of_row));
    known_.resize(values_.size());
}

// Whether they are few enough.
bool ReductionWalk::keep_for_each_index(std::int32_t e)
{
    const std::vector<std::int32_t> &loops = facts_[at(e)].loops;
    if (facts_[at(e)].of_row || loops.empty() || loops.size() > 2 || program_.expressions[e].operation == PGKM_INDEX)
        return false;
    Place place = {values_.size()};
    std::int64_t size = 1;
    for (std::size_t i = 0; i < loops.size(); ++i) {
        place.loops[i] = loops[i];
        place.strides[i] = size;
        size *= std::min(std::max<std::int64_t>(program_.loops[loops[i]], 1), most_indexes + 1);
    }
    if (size > most_indexes || values_.size() + at(size) > most_kept)
        return false;
    values_.resize(values_.size() + at(size));
    places_[at(e)] = place;
    return true;
}

void ReductionWalk::add_causes(std::int32_t e, std::vector<std::vector<std::int32_t>> &causes)
{
    const PgkmExpression &x = program_.expressions[e];
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
    if ((x.operation == PGKM_FLOOR || x.operation == PGKM_MODULO) && !facts_[at(e)].of_row &&
        facts_[at(e)].loops.size() == 1) {
        const std::int32_t loop = facts_[at(e)].loops[0];
        own = {static_cast<std::int32_t>(dependents_.size())};
        parts_[at(loop)].push_back({e, own[0], NAN});
        loops_of_causes_.push_back(loop);
        dependents_.emplace_back();
    }
}

void ReductionWalk::set_index(std::int32_t loop, std::int64_t index)
{
    work(1);
    if (indexes_[at(loop)] == index)
        return;
    indexes_[at(loop)] = index;
    forget(loop);
    PgkmReduced *const fault = std::exchange(fault_, nullptr); // a part that fails need not be reached
    for (Part &part : parts_[at(loop)]) {
        const double now = value(part.expression);
        if (now != part.last)
            forget(part.cause);
        part.last = now;
    }
    fault_ = fault;
}

// ---- values ----

double ReductionWalk::fail(PgkmFault fault, std::int32_t e, double number)
{
    if (fault_ != nullptr && fault_->fault == PGKM_FAULT_NONE) {
        fault_->fault = fault;
        fault_->expression = e;
        fault_->number = number;
    }
    return NAN;
}

void ReductionWalk::find(std::int32_t e, std::size_t here)
{
    work(1);
    const double result = goes_over_loop(program_.expressions[e].operation) ? over_loop(e) : compute(e);
    if (!std::isfinite(result))
        fail(PGKM_FAULT_NUMBER, e, result);
    values_[here] = result;
    known_[here] = std::isfinite(result) ? 1 : 0; // what fails is named wherever it is reached
}

// Argument i as a subscript below extent[i]; 0 where there is none.
bool ReductionWalk::find_subscript(std::int32_t e, int argument, std::int64_t &found)
{
    const PgkmExpression &x = program_.expressions[e];
    const double place = x.a[argument] < 0 ? 0.0 : value(x.a[argument]);
    const bool inside = place >= 0.0 && place < x.extent[argument] && place == std::floor(place);
    if (!inside)
        fail(PGKM_FAULT_SUBSCRIPT, e, place);
    found = inside ? static_cast<std::int64_t>(place) : 0;
    return inside;
}

double ReductionWalk::compute(std::int32_t e)
{
    const PgkmExpression &x = program_.expressions[e];
    std::int64_t i = 0, j = 0;
    switch (x.operation) {
    case PGKM_CONSTANT:
        return x.number;
    case PGKM_INDEX:
        return static_cast<double>(indexes_[at(x.loop)]);
    case PGKM_COLUMN:
        return find_subscript(e, 0, i) ? row_[x.first + i] : NAN;
    case PGKM_PARAMETER:
        return find_subscript(e, 0, i) && find_subscript(e, 1, j) ? program_.parameters[x.first + i * x.extent[1] + j]
                                                                  : NAN;
    case PGKM_CASE: {
        const double condition = value(x.a[0]);
        return !std::isfinite(condition) ? NAN : value(condition != 0.0 ? x.a[1] : x.a[2]);
    }
    default: {
        const double a = value(x.a[0]);
        if (!std::isfinite(a) || is_square(program_, x))
            return std::isfinite(a) ? a * a : NAN;
        const double b = arguments_of(x.operation) == 2 ? value(x.a[1]) : 0.0;
        if (!std::isfinite(b))
            return NAN;
        if ((x.operation == PGKM_DIVIDE || x.operation == PGKM_MODULO) && b == 0.0)
            return fail(PGKM_FAULT_DIVISION, e, a);
        return function_of(x.operation)(a, b, 0.0);
    }
    }
}

double ReductionWalk::over_loop(std::int32_t e)
{
    const PgkmExpression &x = program_.expressions[e];
    const PgkmOperation operation = x.operation;
    const Factors factors = operation == PGKM_SUM ? factors_of(program_, program_.expressions[x.a[0]]) : Factors{};
    double total = operation == PGKM_PROD ? 1.0 : 0.0, best = 0.0;
    for (std::int64_t i = 0; i < program_.loops[x.loop]; ++i) {
        set_index(x.loop, i);
        const double a = value(factors ? factors.x : x.a[0]);
        const double b = factors && std::isfinite(a) ? value(factors.y) : 0.0;
        if (!std::isfinite(a) || !std::isfinite(b))
            return NAN;
        if (factors)
            total = std::fma(a, b, total);
        else if (operation == PGKM_SUM)
            total += a;
        else if (operation == PGKM_PROD)
            total *= a;
        else if (operation == PGKM_COUNT)
            total += truth(a != 0.0);
        else if (i == 0 || (operation == PGKM_MIN || operation == PGKM_ARGMIN ? a < best : a > best)) {
            best = a;
            total = operation == PGKM_MIN || operation == PGKM_MAX ? a : static_cast<double>(i);
        }
    }
    return total;
}

// ---- what failed ----

// False: something failed.
bool ReductionWalk::reach(const PgkmObject &object)
{
    const double taken = object.filter < 0 ? 1.0 : value(object.filter);
    if (!std::isfinite(taken) || taken == 0.0)
        return taken == 0.0;
    const double cell = object.cell < 0 ? 0.0 : value(object.cell);
    if (!(cell >= 0.0 && cell < static_cast<double>(object.cells) && cell == std::floor(cell)))
        return std::isfinite(fail(PGKM_FAULT_CELL, object.cell, cell));
    for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
        const PgkmItem &item = program_.items[i];
        for (std::int64_t e = 0; item.combine != PGKM_COMBINE_COUNT && e < elements_of(program_, item.loop); ++e) {
            if (item.loop >= 0)
                set_index(item.loop, e);
            if (!std::isfinite(value(item.value)) ||
                (item.combine == PGKM_COMBINE_ARGMIN && !std::isfinite(value(item.key))))
                return false;
        }
    }
    return true;
}

void ReductionWalk::find_fault(const double *row, PgkmReduced &out)
{
    forget_row();
    row_ = row;
    fault_ = &out;
    out.fault = PGKM_FAULT_NONE;
    for (std::int32_t o = 0; o < program_.n_objects && reach(program_.objects[o]); ++o) {}
    fault_ = nullptr;
}

template <typename T>
void fail_in_row(const PgkmReduction &program, const T *values, std::int32_t d, std::int64_t row,
                 std::function<void()> poll, PgkmReduced &out)
{
    const std::vector<double> numbers(values, values + d);
    ReductionWalk(program, facts_of(program), std::move(poll)).find_fault(numbers.data(), out);
    if (out.fault == PGKM_FAULT_NONE)
        throw Error(PGKM_UNSUPPORTED, "it is not certain whether a row of the reduction fails");
    out.row = row;
    throw Error(PGKM_INVALID, "the reduction failed in a row");
}

template void fail_in_row(const PgkmReduction &, const float *, std::int32_t, std::int64_t, std::function<void()>,
                          PgkmReduced &);
template void fail_in_row(const PgkmReduction &, const double *, std::int32_t, std::int64_t, std::function<void()>,
                          PgkmReduced &);

} // namespace pgkm
