// objects.cpp - the objects of a program and their items, made of whole values.
#include <cmath>

#include "reduction/lowering.hpp"

namespace pgkm::reduction {
namespace {

constexpr std::int64_t most_cells = std::int64_t{1} << 40;

bool is_vector(const PgkmTerm &term)
{
    return term.kind == PGKM_TERM_FUNCTION && word_of(term).meaning == Meaning::vector;
}

} // namespace

// Each line of a vector by itself.
void Lowering::add_lines(const PgkmTerm &term, std::int64_t count, const Rest &rest)
{
    Typed line = {&term};
    of_item_.clear();
    line.count = count;
    const Scope scope = {term.arguments[0]->name, &line, scope_};
    scope_ = &scope;
    for (std::int64_t i = 0; i < count; ++i) {
        line.index = program_.constant(term.place, static_cast<double>(i));
        add_items(*term.arguments[2], rest);
    }
    scope_ = scope.outer;
}

// A number becomes an item, a vector or a matrix one over a loop. Of a `vector` whose lines differ in length each line
// becomes one, and so does each part of what has more dimensions.
void Lowering::add_items(const PgkmTerm &term, const Rest &rest)
{
    uneven_ = false;
    const Typed &typed = *type(term, rest.shape == nullptr);
    const bool fits = typed.dimensions < 2 || (typed.dimensions == 2 && typed.extent[0] <= INT32_MAX / typed.extent[1]);
    if (rest.shape != nullptr)
        *rest.shape = {typed.dimensions, {typed.extent[0], typed.extent[1]}, typed.kind == Kind::truth};
    else
        as_number(&typed);
    if (rest.shape == nullptr && is_vector(term) && (uneven_ || !fits)) {
        add_lines(term, typed.extent[0], rest);
        return;
    }
    if (typed.dimensions > 2)
        raise_shape(typed);
    if (!fits)
        raise(sqlstate::too_large, term.place, "a matrix is too large");

    PgkmItem item = {-1, -1, rest.combine, -1};
    At at;
    if (typed.dimensions > 0) {
        item.loop = enter_loop(typed.extent[0] * typed.extent[1], true, term.place);
        at = {1, {program_.index(term.place, item.loop), -1}};
    }
    if (typed.dimensions == 2) { // row by row
        const std::int32_t width = program_.constant(term.place, static_cast<double>(typed.extent[1]));
        const std::int32_t row = program_.operation(PGKM_DIVIDE, term.place, at.index[0], width);
        at = {2,
              {program_.operation(PGKM_FLOOR, term.place, row),
               program_.operation(PGKM_MODULO, term.place, at.index[0], width)}};
    }
    item.value = make(typed, at);
    if (rest.key != nullptr)
        item.key = make(*number(*rest.key));
    if (item.loop >= 0)
        leave_loop(item.loop);
    program_.add_item(item, term.place);
    of_item_.clear();
}

void Lowering::add_object(const PgkmObjectTree &tree, PgkmValueShape *shape)
{
    PgkmObject object = {1, -1, -1, 0, 0};
    if (tree.filter != nullptr)
        object.filter = make(*truth(*tree.filter));
    if (tree.cells != nullptr)
        object.cells = count_of(*tree.cells, 1, most_cells);
    if (tree.index != nullptr)
        object.cell = make(*number(*tree.index));
    of_item_.clear();
    program_.objects.push_back(object);
    for (std::int32_t i = 0; i < tree.n_values; ++i)
        add_items(*tree.values[i],
                  {tree.combines[i], tree.combines[i] == PGKM_COMBINE_ARGMIN ? tree.key : nullptr, shape});
}

} // namespace pgkm::reduction
