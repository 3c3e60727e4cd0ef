// values.cpp - the steps that are no loop: operations and subscripts, of scalars and of columns lane by lane. What
// fails gives NaN.
#include <cmath>
#include <limits>

#include "backend/reduction_walk.hpp"
#include "cpu/reduce/evaluator.hpp"
#include "numeric/index.hpp"

namespace pgkm::cpu {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_place(double subscript, double end)
{
    return subscript >= 0.0 && subscript < end && subscript == std::floor(subscript);
}

template <typename Function>
void map(double *to, const double *a, const double *b, int n, Function &&function)
{
    for (int i = 0; i < n; ++i)
        to[i] = std::isfinite(a[i]) && std::isfinite(b[i]) ? function(a[i], b[i]) : nan;
}

} // namespace

// ---- scalars ----

double Evaluator::scalar_of(const Step &step) const
{
    const double a = number(step.a), b = step.b.is_given() ? number(step.b) : 0.0;
    if (step.operation == PGKM_CASE)
        return !std::isfinite(a) ? nan : number(a != 0.0 ? step.b : step.c);
    if (!std::isfinite(a) || !std::isfinite(b))
        return nan;
    return is_square(program_.reduction, program_.reduction.expressions[step.expression])
               ? a * a
               : operation_value(step.operation, a, b, 0.0);
}

double Evaluator::parameter_of(const Step &step) const
{
    const PgkmExpression &own = program_.reduction.expressions[step.expression];
    const double i = step.a.is_given() ? number(step.a) : 0.0, j = step.b.is_given() ? number(step.b) : 0.0;
    if (!is_place(i, own.extent[0]) || !is_place(j, own.extent[1]))
        return nan;
    return program_.reduction
        .parameters[own.first + static_cast<std::int64_t>(i) * own.extent[1] + static_cast<std::int64_t>(j)];
}

// ---- columns ----

void Evaluator::select(const Step &step)
{
    const PgkmExpression &own = program_.reduction.expressions[step.expression];
    const double i = step.a.is_given() ? number(step.a) : 0.0;
    at_[at(step.to.place)] = is_place(i, own.extent[0])
                                 ? packed_ + program_.packed[at(own.first + static_cast<std::int64_t>(i))] * stride_
                                 : nothing_;
}

void Evaluator::gather(const Step &step)
{
    const PgkmExpression &own = program_.reduction.expressions[step.expression];
    const double none = 0.0;
    const double *const i = step.a.is_given() ? from(step.a) : &none, *const j =
                                                                          step.b.is_given() ? from(step.b) : &none;
    const int step_i = step.a.column ? 1 : 0, step_j = step.b.column ? 1 : 0;
    const bool column = step.operation == PGKM_COLUMN;
    double *const out = to(step);
    for (int r = 0; r < n_; ++r) {
        const double a = i[r * step_i], b = j[r * step_j];
        if (!is_place(a, own.extent[0]) || !is_place(b, own.extent[1])) {
            out[r] = nan;
            continue;
        }
        const auto place = own.first + static_cast<std::int64_t>(a) * own.extent[1] + static_cast<std::int64_t>(b);
        out[r] = column ? packed_[program_.packed[at(own.first + static_cast<std::int64_t>(a))] * stride_ + r]
                        : program_.reduction.parameters[place];
    }
}

void Evaluator::each(const Step &step)
{
    const double *const a = from(step.a), *const b = step.b.is_given() ? from(step.b) : a;
    double *const out = to(step);
    work(n_ * 16);
    switch (step.operation) {
    case PGKM_EXP:
        return map(out, a, a, n_, [](double x, double) { return std::exp(x); });
    case PGKM_LN:
        return map(out, a, a, n_, [](double x, double) { return std::log(x); });
    case PGKM_POWER:
        return map(out, a, b, n_, [](double x, double y) { return std::pow(x, y); });
    default:
        return map(out, a, b, n_, [&](double x, double y) { return operation_value(step.operation, x, y, 0.0); });
    }
}

} // namespace pgkm::cpu
