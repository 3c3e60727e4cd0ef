// program.cpp - grows a program, and evaluates what does not depend on rows.
#include "reduction/program.hpp"

#include <bit>
#include <cmath>

#include "backend/reduction_program.hpp"
#include "reduction/text_error.hpp"

namespace pgkm::reduction {
namespace {

constexpr std::int32_t most_expressions = 65536; // and items

void require_room(std::size_t size, std::int32_t place)
{
    if (size == most_expressions)
        raise(sqlstate::too_large, place,
              "reduction is too large: it has more than " + std::to_string(most_expressions) +
                  " different expressions");
}

PgkmExpression make(PgkmOperation operation, std::int32_t place, std::int32_t a = -1, std::int32_t b = -1,
                    std::int32_t c = -1)
{
    return {operation, {a, b, c}, 0.0, -1, 0, {1, 1}, place};
}

// An operation without loops and names. What is not finite has failed.
double evaluate(PgkmOperation operation, const std::array<double, 3> &a)
{
    return operation == PGKM_POWER && a[1] == 2.0 ? a[0] * a[0] : function_of(operation)(a[0], a[1], a[2]);
}

} // namespace

Program::Key Program::key_of(const PgkmExpression &own)
{
    return {own.operation, own.a[0],  own.a[1],      own.a[2],     std::bit_cast<std::int64_t>(own.number),
            own.loop,      own.first, own.extent[0], own.extent[1]};
}

std::int32_t Program::add(const PgkmExpression &expression)
{
    const auto [place, is_new] = numbers_.try_emplace(key_of(expression), size());
    if (is_new) {
        require_room(expressions_.size(), expression.place);
        expressions_.push_back(expression);
    }
    return place->second;
}

void Program::cut(std::int32_t size)
{
    for (; this->size() > size; expressions_.pop_back())
        numbers_.erase(key_of(expressions_.back()));
}

bool Program::is_constant(std::int32_t expression) const
{
    return expression < 0 || (*this)[expression].operation == PGKM_CONSTANT;
}

std::int32_t Program::constant(std::int32_t place, double number)
{
    PgkmExpression made = make(PGKM_CONSTANT, place);
    made.number = number;
    return add(made);
}

std::int32_t Program::operation(PgkmOperation operation, std::int32_t place, std::int32_t a, std::int32_t b,
                                std::int32_t c)
{
    if (operation == PGKM_CASE && is_constant(a))
        return (*this)[a].number != 0.0 ? b : c;
    if (is_constant(a) && is_constant(b) && is_constant(c)) {
        const auto number = [this](std::int32_t e) { return e < 0 ? 0.0 : (*this)[e].number; };
        const double value = evaluate(operation, {number(a), number(b), number(c)});
        if (std::isfinite(value))
            return constant(place, value);
    }
    return add(make(operation, place, a, b, c));
}

std::int32_t Program::over_loop(PgkmOperation operation, std::int32_t place, std::int32_t loop, std::int32_t body)
{
    PgkmExpression made = make(operation, place, body);
    made.loop = loop;
    return add(made);
}

// Where the element lies among those of the parameter; -1 where a subscript is none, or not known.
std::int64_t Program::place_in(const PgkmNamed &name, const std::array<std::int32_t, 2> &subscripts) const
{
    std::int64_t place = 0;
    for (int i = 0; i < name.dimensions; ++i) {
        const PgkmExpression &subscript = (*this)[subscripts[at(i)]];
        const double s = subscript.number;
        if (subscript.operation != PGKM_CONSTANT || !(s >= 0.0 && s < static_cast<double>(name.extent[i])) ||
            s != std::floor(s))
            return -1;
        place = place * name.extent[i] + static_cast<std::int64_t>(s);
    }
    return place;
}

std::int32_t Program::element(std::int32_t place, const PgkmNamed &name, const std::array<std::int32_t, 2> &subscripts)
{
    PgkmExpression made = make(PGKM_COLUMN, place, subscripts[0], subscripts[1]);
    made.first = name.first;
    made.extent[0] = static_cast<std::int32_t>(name.extent[0]);
    made.extent[1] = static_cast<std::int32_t>(name.extent[1]);
    if (name.values != nullptr) {
        const std::int64_t known = folds_parameters ? place_in(name, subscripts) : -1;
        if (known >= 0)
            return constant(place, name.values[known]);
        const auto [used, is_new] = used_.try_emplace(&name, parameters_.size());
        if (is_new)
            parameters_.insert(parameters_.end(), name.values, name.values + name.extent[0] * name.extent[1]);
        made.operation = PGKM_PARAMETER;
        made.first = used->second;
    }
    return add(made);
}

void Program::add_item(const PgkmItem &item, std::int32_t place)
{
    require_room(items_.size(), place);
    if (objects.back().n_items++ == 0)
        objects.back().first_item = static_cast<std::int32_t>(items_.size());
    items_.push_back(item);
}

PgkmReduction Program::view(std::int32_t exact) const
{
    const auto size = [](const auto &list) { return static_cast<std::int32_t>(list.size()); };
    return {expressions_.data(),
            this->size(),
            loops.data(),
            size(loops),
            parameters_.data(),
            static_cast<std::int64_t>(parameters_.size()),
            items_.data(),
            size(items_),
            objects.data(),
            size(objects),
            exact};
}

} // namespace pgkm::reduction
