// faults.cpp (reduce) - what failed in a row: from a value that is no number back to the first cause of that.
#include <cmath>

#include "cpu/reduce/evaluator.hpp"

namespace pgkm::cpu {

// The value in the first row.
double Evaluator::first(std::int32_t e)
{
    return *operand(e).at;
}

bool Evaluator::fails(std::int32_t e, PgkmReduced &out)
{
    if (std::isfinite(first(e)))
        return false;
    trace(e, out);
    return true;
}

// Of a value that is no number: the first of its arguments that is none, or what it does itself.
void Evaluator::trace(std::int32_t e, PgkmReduced &out)
{
    const PgkmExpression &x = program_.expressions[e];
    const auto set = [&](PgkmFault fault, double number) {
        out.fault = fault;
        out.expression = e;
        out.number = number;
    };
    if (goes_over_loop(x.operation)) {
        const Factors factors =
            x.operation == PGKM_SUM ? factors_of(program_, program_.expressions[x.a[0]]) : Factors{};
        const double total = first(e);
        for (std::int64_t i = 0; i < program_.loops[x.loop]; ++i) {
            set_index(x.loop, i);
            if (fails(factors ? factors.x : x.a[0], out) || (factors && fails(factors.y, out)))
                return;
        }
        return set(PGKM_FAULT_NUMBER, total);
    }
    if (x.operation == PGKM_CASE)
        return fails(x.a[0], out) ? void() : trace(first(x.a[0]) != 0.0 ? x.a[1] : x.a[2], out);
    const bool has_places = x.operation == PGKM_COLUMN || x.operation == PGKM_PARAMETER;
    for (int i = 0; i < arguments_of(x.operation); ++i) {
        if (x.a[i] >= 0 && fails(x.a[i], out))
            return;
        if (has_places && x.a[i] >= 0 && !is_place(first(x.a[i]), x.extent[i]))
            return set(PGKM_FAULT_SUBSCRIPT, first(x.a[i]));
    }
    const bool divides = x.operation == PGKM_DIVIDE || x.operation == PGKM_MODULO;
    if (divides && first(x.a[1]) == 0.0)
        return set(PGKM_FAULT_DIVISION, first(x.a[0]));
    set(PGKM_FAULT_NUMBER, first(e));
}

template <typename T>
void Evaluator::find_fault(const T *row, std::int32_t d, PgkmReduced &out)
{
    load(row, 1, d);
    for (std::int32_t o = 0; o < program_.n_objects; ++o) {
        const PgkmObject &object = program_.objects[o];
        if (object.filter >= 0 && fails(object.filter, out))
            return;
        if (object.filter >= 0 && first(object.filter) == 0.0)
            continue;
        if (object.cell >= 0 && fails(object.cell, out))
            return;
        if (object.cell >= 0 && !is_place(first(object.cell), static_cast<double>(object.cells))) {
            out.fault = PGKM_FAULT_CELL;
            out.expression = object.cell;
            out.number = first(object.cell);
            return;
        }
        for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
            const PgkmItem &item = program_.items[i];
            for (std::int64_t e = 0; item.combine != PGKM_COMBINE_COUNT && e < elements_of(program_, item.loop); ++e) {
                if (item.loop >= 0)
                    set_index(item.loop, e);
                if (fails(item.value, out) || (item.combine == PGKM_COMBINE_ARGMIN && fails(item.key, out)))
                    return;
            }
        }
    }
}

template void Evaluator::find_fault(const float *, std::int32_t, PgkmReduced &);
template void Evaluator::find_fault(const double *, std::int32_t, PgkmReduced &);

} // namespace pgkm::cpu
