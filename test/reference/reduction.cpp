// reduction.cpp - the walk over rows, loops and expressions that reduction.hpp promises.
#include "reference/reduction.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

struct Fault {
    PgkmFault fault;
    std::int32_t expression;
    double number;
};

// The program on one row.
struct Row {
    const PgkmReduction &program;
    const std::vector<double> &row;
    std::map<std::int32_t, double> index; // of the loops that are open

    // A result, which must be a number.
    static double finite(double number, std::int32_t e)
    {
        if (!std::isfinite(number))
            throw Fault{PGKM_FAULT_NUMBER, e, number};
        return number;
    }

    // A whole number in 0 .. end - 1.
    static std::int64_t whole(double number, std::int64_t end, PgkmFault fault, std::int32_t e)
    {
        if (number < 0.0 || number >= static_cast<double>(end) || number != std::floor(number))
            throw Fault{fault, e, number};
        return static_cast<std::int64_t>(number);
    }

    std::int64_t subscript(std::int32_t e, int i)
    {
        const PgkmExpression &x = program.expressions[e];
        return x.a[i] < 0 ? 0 : whole(value(x.a[i]), x.extent[i], PGKM_FAULT_SUBSCRIPT, e);
    }

    double divisor(const PgkmExpression &x, std::int32_t e, double dividend)
    {
        const double by = value(x.a[1]);
        if (by == 0.0)
            throw Fault{PGKM_FAULT_DIVISION, e, dividend};
        return by;
    }

    double value(std::int32_t e) { return finite(number(e), e); }

    double number(std::int32_t e)
    {
        const PgkmExpression &x = program.expressions[e];
        const auto a = [&] { return value(x.a[0]); };
        const auto b = [&] { return value(x.a[1]); };
        switch (x.operation) {
        case PGKM_CONSTANT:
            return x.number;
        case PGKM_INDEX:
            return index.at(x.loop);
        case PGKM_COLUMN:
            return row[at(x.first + subscript(e, 0))];
        case PGKM_PARAMETER: {
            const std::int64_t i = subscript(e, 0);
            return program.parameters[x.first + i * x.extent[1] + subscript(e, 1)];
        }
        case PGKM_NEGATE:
            return -a();
        case PGKM_NOT:
            return a() == 0.0;
        case PGKM_ABS:
            return std::fabs(a());
        case PGKM_SQRT:
            return std::sqrt(a());
        case PGKM_EXP:
            return std::exp(a());
        case PGKM_LN:
            return std::log(a());
        case PGKM_FLOOR:
            return std::floor(a());
        case PGKM_CEIL:
            return std::ceil(a());
        case PGKM_ROUND:
            return std::rint(a());
        case PGKM_TRUNC:
            return std::trunc(a());
        case PGKM_SIGN: {
            const double y = a();
            return (y > 0) - (y < 0);
        }
        case PGKM_SIN:
            return std::sin(a());
        case PGKM_COS:
            return std::cos(a());
        case PGKM_TAN:
            return std::tan(a());
        case PGKM_ASIN:
            return std::asin(a());
        case PGKM_ACOS:
            return std::acos(a());
        case PGKM_ATAN:
            return std::atan(a());
        case PGKM_TANH:
            return std::tanh(a());
        case PGKM_ADD: {
            const double y = a();
            return y + b();
        }
        case PGKM_SUBTRACT: {
            const double y = a();
            return y - b();
        }
        case PGKM_MULTIPLY: {
            const double y = a();
            return y * b();
        }
        case PGKM_DIVIDE: {
            const double y = a();
            return y / divisor(x, e, y);
        }
        case PGKM_MODULO: {
            const double y = a();
            return std::fmod(y, divisor(x, e, y));
        }
        case PGKM_POWER: {
            const double y = a(), z = b();
            return is_square(x) ? y * y : std::pow(y, z);
        }
        case PGKM_ATAN2: {
            const double y = a();
            return std::atan2(y, b());
        }
        case PGKM_LEAST: {
            const double y = a(), z = b();
            return z < y ? z : y;
        }
        case PGKM_GREATEST: {
            const double y = a(), z = b();
            return z > y ? z : y;
        }
        case PGKM_EQUAL: {
            const double y = a();
            return y == b();
        }
        case PGKM_NOT_EQUAL: {
            const double y = a();
            return y != b();
        }
        case PGKM_LESS: {
            const double y = a();
            return y < b();
        }
        case PGKM_LESS_EQUAL: {
            const double y = a();
            return y <= b();
        }
        case PGKM_AND: {
            const double y = a(), z = b();
            return y != 0 && z != 0;
        }
        case PGKM_OR: {
            const double y = a(), z = b();
            return y != 0 || z != 0;
        }
        case PGKM_CASE:
            return a() != 0.0 ? b() : value(x.a[2]);
        default:
            return over_loop(x);
        }
    }

    bool is_square(const PgkmExpression &x) const
    {
        return x.operation == PGKM_POWER && program.expressions[x.a[1]].operation == PGKM_CONSTANT &&
               program.expressions[x.a[1]].number == 2.0;
    }

    double over_loop(const PgkmExpression &x)
    {
        const PgkmExpression &body = program.expressions[x.a[0]];
        double total = x.operation == PGKM_PROD ? 1.0 : 0.0, best = 0.0;
        for (std::int64_t i = 0; i < program.loops[x.loop]; ++i) {
            index[x.loop] = static_cast<double>(i);
            if (x.operation == PGKM_SUM && body.operation == PGKM_MULTIPLY) {
                const double y = value(body.a[0]);
                total = std::fma(y, value(body.a[1]), total);
                continue;
            }
            if (x.operation == PGKM_SUM && is_square(body)) {
                const double y = value(body.a[0]);
                total = std::fma(y, y, total);
                continue;
            }
            const double y = value(x.a[0]);
            const bool better = i == 0 || (x.operation == PGKM_MIN || x.operation == PGKM_ARGMIN ? y < best : y > best);
            switch (x.operation) {
            case PGKM_SUM:
                total += y;
                break;
            case PGKM_PROD:
                total *= y;
                break;
            case PGKM_COUNT:
                total += y != 0.0;
                break;
            case PGKM_MIN:
            case PGKM_MAX:
                total = better ? y : total;
                break;
            default:
                total = better ? static_cast<double>(i) : total;
                break;
            }
            best = better ? y : best;
        }
        index.erase(x.loop);
        return total;
    }
};

// One value of one cell, of all rows.
struct Cell {
    std::int64_t rows = 0;
    long double sum = 0.0;
    Int128 total = 0;
    double best = 0.0, key = 0.0;
};

struct Table {
    std::vector<Cell> cells;     // cells x width
    std::vector<double> largest; // width: the largest magnitude
    std::vector<std::int64_t> counts;
};

std::int64_t width_of(const PgkmReduction &program, const PgkmObject &object)
{
    std::int64_t width = 0;
    for (std::int32_t i = 0; i < object.n_items; ++i) {
        const std::int32_t loop = program.items[object.first_item + i].loop;
        width += loop < 0 ? 1 : program.loops[loop];
    }
    return width;
}

void add(Cell &cell, PgkmCombine combine, double value, double key, double largest, bool exact)
{
    value += 0.0;
    key += 0.0;
    const bool first = cell.rows++ == 0;
    if (combine == PGKM_COMBINE_SUM && exact)
        cell.total += quantise(value, power_of_two(scale_exponent(largest)));
    else if (combine == PGKM_COMBINE_SUM)
        cell.sum += value;
    else if (first || (combine == PGKM_COMBINE_MAX ? value > cell.best : value < cell.best)) {
        cell.best = value;
        cell.key = key;
    } else if (value == cell.best && key < cell.key) {
        cell.key = key;
    }
}

// Adds one row to an object. In the first of two passes only magnitudes are taken.
void reduce_row(Row &row, const PgkmObject &object, Table &table, bool magnitudes)
{
    const PgkmReduction &program = row.program;
    if (object.filter >= 0 && row.value(object.filter) == 0.0)
        return;
    const std::int64_t cell =
        object.cell < 0 ? 0 : Row::whole(row.value(object.cell), object.cells, PGKM_FAULT_CELL, object.cell);
    const auto width = static_cast<std::int64_t>(table.largest.size());
    table.counts[at(cell)] += magnitudes ? 0 : 1;
    std::int64_t place = 0;
    for (std::int32_t i = 0; i < object.n_items; ++i) {
        const PgkmItem &item = program.items[object.first_item + i];
        const std::int64_t elements = item.loop < 0 ? 1 : program.loops[item.loop];
        for (std::int64_t e = 0; e < elements; ++e, ++place) {
            if (item.combine == PGKM_COMBINE_COUNT)
                continue;
            row.index[item.loop] = static_cast<double>(e);
            const double value = row.value(item.value);
            const double key = item.combine == PGKM_COMBINE_ARGMIN ? row.value(item.key) : 0.0;
            double &largest = table.largest[at(place)];
            if (magnitudes)
                largest = std::fmax(largest, std::fabs(value));
            else
                add(table.cells[at(cell * width + place)], item.combine, value, key, largest, program.exact != 0);
        }
        row.index.erase(item.loop);
    }
}

double result_of(const Cell &cell, const PgkmItem &item, double largest, bool exact, std::int64_t rows)
{
    switch (item.combine) {
    case PGKM_COMBINE_SUM:
        return exact ? scale_by(to_double(cell.total), -scale_exponent(largest)) : static_cast<double>(cell.sum);
    case PGKM_COMBINE_COUNT:
        return static_cast<double>(rows);
    case PGKM_COMBINE_ARGMIN:
        return rows == 0 ? std::numeric_limits<double>::quiet_NaN() : cell.key;
    default:
        return rows == 0 ? std::numeric_limits<double>::quiet_NaN() : cell.best;
    }
}

[[noreturn]] void fail(PgkmReduced &out, const Fault &fault, std::int64_t row)
{
    out.fault = fault.fault;
    out.row = row;
    out.expression = fault.expression;
    out.number = fault.number;
    throw Error(PGKM_INVALID, "the reduction failed");
}

} // namespace

void reference_reduce(const std::vector<std::vector<double>> &rows, const PgkmReduction &program, PgkmReduced &out)
{
    out.fault = PGKM_FAULT_NONE;
    out.row = -1;
    std::vector<Table> tables(at(program.n_objects));
    for (std::size_t o = 0; o < tables.size(); ++o) {
        const std::int64_t width = width_of(program, program.objects[o]);
        tables[o] = {std::vector<Cell>(at(program.objects[o].cells * width)), std::vector<double>(at(width)),
                     std::vector<std::int64_t>(at(program.objects[o].cells))};
    }
    for (const bool magnitudes : {true, false})
        for (std::size_t r = 0; r < rows.size(); ++r) {
            Row row = {program, rows[r], {}};
            try {
                for (std::size_t o = 0; o < tables.size(); ++o)
                    reduce_row(row, program.objects[o], tables[o], magnitudes);
            } catch (const Fault &fault) {
                fail(out, fault, static_cast<std::int64_t>(r));
            }
        }
    double *values = out.values;
    std::int64_t *counts = out.counts;
    for (std::size_t o = 0; o < tables.size(); ++o) {
        const PgkmObject &object = program.objects[o];
        for (std::int64_t cell = 0, i = 0; cell < object.cells; ++cell) {
            *counts++ = tables[o].counts[at(cell)];
            std::size_t place = 0;
            for (std::int32_t t = 0; t < object.n_items; ++t) {
                const PgkmItem &item = program.items[object.first_item + t];
                for (std::int64_t e = 0; e < (item.loop < 0 ? 1 : program.loops[item.loop]); ++e, ++place, ++i) {
                    *values = result_of(tables[o].cells[at(i)], item, tables[o].largest[place], program.exact != 0,
                                        tables[o].counts[at(cell)]);
                    if (item.combine == PGKM_COMBINE_SUM && !std::isfinite(*values))
                        fail(out, {PGKM_FAULT_TOTAL, item.value, *values}, -1);
                    ++values;
                }
            }
        }
    }
}

} // namespace pgkm
