// names.cpp - names, and what only names have: subscripts and lengths.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "reduction/lowering.hpp"

namespace pgkm::reduction {
namespace {

const PgkmNamed *find(const PgkmNamed *names, std::int32_t n, std::string_view name)
{
    const auto *const found =
        std::find_if(names, names + n, [&](const PgkmNamed &other) { return other.name == name; });
    return found == names + n ? nullptr : found;
}

} // namespace

const Typed *Lowering::type_name(const PgkmTerm &term)
{
    const std::string_view name = term.name;
    const bool is_old = term.kind == PGKM_TERM_OLD;
    for (const Scope *scope = is_old ? nullptr : scope_; scope != nullptr; scope = scope->outer)
        if (name == scope->name) {
            Typed &typed = add(term);
            typed.count = scope->binder->count;
            typed.make = [this, &term, binder = scope->binder](const At &) {
                if (binder->index >= 0)
                    return binder->index;
                uneven_ = uneven_ || binder->first_line;
                return binder->first_line ? program_.constant(term.place, 0.0) : program_.index(term.place, -1);
            };
            return &typed;
        }
    for (std::int32_t let = 0; let < names_.n_lets && !is_old; ++let)
        if (name == names_.lets[let].name)
            return type_let(term, let);

    const PgkmNamed *const column = is_old ? nullptr : find(names_.columns, names_.n_columns, name);
    const PgkmNamed *const found = column != nullptr ? column
                                                     : find(names_.parameters, names_.n_parameters,
                                                            is_old ? "old." + std::string(name) : std::string(name));
    if (found == nullptr)
        raise(sqlstate::undefined_name, term.place,
              is_old ? "there is no old parameter " + quoted(term.name) + " here"
                     : quoted(term.name) + " is no column, parameter or index");
    Typed &typed = add(term, found->truth != 0 ? Kind::either : Kind::number);
    typed.dimensions = found->dimensions;
    typed.extent = {found->extent[0], found->extent[1]};
    typed.whole = &typed;
    typed.make = [this, &term, found](const At &at) {
        return program_.element(term.place, *found, found->dimensions == 0 ? At{}.index : at.index);
    };
    return &typed;
}

// The expression knows no index of the place where its name stands.
const Typed *Lowering::type_let(const PgkmTerm &mention, std::int32_t let)
{
    const Typed *&meaning = lets_[at(let)];
    if (meaning == nullptr) {
        if (meant_[at(let)])
            raise(sqlstate::recursion, mention.place, quoted(mention.name) + " means itself");
        const Scope *const scope = scope_;
        const bool in_let = in_let_;
        meant_[at(let)] = in_let_ = true;
        scope_ = nullptr;
        meaning = type(*names_.lets[let].term);
        scope_ = scope;
        in_let_ = in_let;
    }
    Typed &typed = add(mention, meaning->kind);
    take_shape(typed, *meaning);
    typed.whole = &typed;
    typed.is_let = true;
    typed.make = [this, meaning = meaning](const At &at) { return make(*meaning, at); };
    return &typed;
}

const Typed *Lowering::base(const PgkmTerm &term)
{
    const Typed *const typed = type(term);
    if (typed->dimensions > 2)
        raise(sqlstate::wrong_type, term.place, "what has more than two dimensions has no subscripts and no lengths");
    return typed;
}

const Typed *Lowering::type_subscript(const PgkmTerm &term)
{
    const PgkmTerm &name = *term.arguments[0];
    if (name.kind != PGKM_TERM_NAME && name.kind != PGKM_TERM_OLD)
        raise(sqlstate::unsupported, name.place, "only a name can have subscripts");
    const Typed *const whole = base(name);
    const int n = term.n_arguments - 1;
    if (n > whole->dimensions)
        raise(sqlstate::wrong_type, name.place,
              quoted(name.name) + " is " + shape_name(whole->dimensions) + " and has too many subscripts");
    std::vector<const Typed *> subscripts;
    for (int i = 1; i <= n; ++i)
        subscripts.push_back(number(*term.arguments[i]));

    Typed &typed = add(term, whole->kind);
    take_shape(typed, *whole);
    typed.dimensions = whole->dimensions - n;
    typed.extent = {typed.dimensions == 0 ? 1 : whole->extent[at(n)], 1};
    typed.make = [this, whole, subscripts](const At &at) {
        At inner;
        for (const Typed *const subscript : subscripts) {
            const std::int32_t made = make(*subscript);
            if (whole->is_let)
                check_inside(*whole, inner.n, *subscript, made);
            inner.index[pgkm::at(inner.n++)] = made;
        }
        for (int i = 0; inner.n < whole->dimensions; ++i)
            inner.index[pgkm::at(inner.n++)] = at.index[pgkm::at(i)];
        return make(*whole, inner);
    };
    return &typed;
}

// An expression has no subscript that is checked when it runs: its place must be known to be inside.
void Lowering::check_inside(const Typed &whole, int dimension, const Typed &subscript, std::int32_t expression) const
{
    const std::int64_t extent = whole.extent[at(dimension)];
    const PgkmExpression &own = program_[expression];
    if (subscript.count >= 0 && subscript.count <= extent)
        return;
    if (own.operation != PGKM_CONSTANT)
        raise(sqlstate::unsupported, subscript.term->place,
              "a subscript of " + quoted(whole.term->name) +
                  " must be a number, or the index of a loop no longer than it");
    if (!(own.number >= 0.0 && own.number < static_cast<double>(extent) && own.number == std::floor(own.number)))
        raise(sqlstate::out_of_range, subscript.term->place,
              "subscript " + with_digits(own.number) + " is out of range");
}

const Typed *Lowering::type_length(const PgkmTerm &term, const Word &word)
{
    const Typed *const of = base(*term.arguments[0]);
    const int dimension = word.meaning == Meaning::cardinality ? 0 : static_cast<int>(term.arguments[1]->number);
    if (of->dimensions == 0 || dimension > of->dimensions)
        raise(sqlstate::wrong_type, term.place, shape_name(of->dimensions) + " has no such length");
    return constant(term, Kind::number,
                    dimension == 0 ? static_cast<double>(of->extent[0]) * static_cast<double>(of->extent[1])
                                   : static_cast<double>(of->extent[at(dimension - 1)]));
}

} // namespace pgkm::reduction
