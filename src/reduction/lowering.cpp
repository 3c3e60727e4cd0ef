// lowering.cpp - what each term is, and the expressions it becomes.
#include "reduction/lowering.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pgkm::reduction {
namespace {

constexpr int most_steps_of_lowering = 2000000; // an end to texts that would take for ever
constexpr double most_steps_of_row = static_cast<double>(std::int64_t{1} << 40);
constexpr std::size_t most_loops = 1024;

const Typed *as_truth(const Typed *typed)
{
    if (typed->kind == Kind::number)
        raise(sqlstate::wrong_type, typed->term->place, "a condition is expected here, not a number");
    return typed;
}

bool takes_truths(PgkmOperation operation)
{
    return operation == PGKM_AND || operation == PGKM_OR || operation == PGKM_NOT;
}

bool gives_truth(PgkmOperation operation)
{
    return takes_truths(operation) || (operation >= PGKM_EQUAL && operation <= PGKM_LESS_EQUAL);
}

bool may_be_empty(PgkmOperation operation)
{
    return operation == PGKM_SUM || operation == PGKM_PROD || operation == PGKM_COUNT;
}

} // namespace

std::string shape_name(int dimensions)
{
    static const char *const names[] = {"a number", "a vector", "a matrix", "a vector of matrices"};
    return names[std::min(dimensions, 3)];
}

const Typed *as_number(const Typed *typed)
{
    if (typed->kind == Kind::truth)
        raise(sqlstate::wrong_type, typed->term->place, "a number is expected here, not a condition");
    return typed;
}

void raise_shape(const Typed &typed)
{
    const PgkmTerm &term = *typed.whole->term;
    const bool has_name = term.kind == PGKM_TERM_NAME || term.kind == PGKM_TERM_OLD;
    raise(sqlstate::wrong_type, term.place,
          (has_name ? quoted(term.name) : "this") + " is " + shape_name(typed.whole->dimensions) + ": it needs " +
              (typed.whole->dimensions == 1 ? "a subscript" : "subscripts") + " here");
}

// --- what all terms share ---

// A term more to type, or an expression more to make.
void Lowering::step(const PgkmTerm &term)
{
    if (++made_ > most_steps_of_lowering)
        raise(sqlstate::too_large, term.place, "reduction is too large");
    if (made_ % 256 == 0 && give_up_ != nullptr && give_up_() != 0)
        raise(sqlstate::cancelled, -1, "canceling statement due to user request");
}

// One level deeper; not left again after an error.
void Lowering::nest(const PgkmTerm &term)
{
    if (nested_ == PGKM_MOST_NESTED)
        raise_nested(term.place);
    ++nested_;
}

Typed &Lowering::add(const PgkmTerm &term, Kind kind)
{
    Typed &typed = (in_let_ ? of_lets_ : of_item_).emplace_back();
    typed.term = &term;
    typed.kind = kind;
    return typed;
}

void Lowering::take_shape(Typed &typed, const Typed &from)
{
    typed.dimensions = from.dimensions;
    typed.extent = from.extent;
    typed.whole = from.whole;
}

std::int32_t Lowering::make(const Typed &typed, const At &at)
{
    step(*typed.term);
    nest(*typed.term);
    const std::int32_t expression = typed.make(at);
    --nested_;
    return expression;
}

const Typed *Lowering::constant(const PgkmTerm &term, Kind kind, double number)
{
    Typed &typed = add(term, kind);
    typed.make = [this, &term, number](const At &) { return program_.constant(term.place, number); };
    return &typed;
}

const Typed *Lowering::type(const PgkmTerm &term, bool by_lines)
{
    step(term);
    nest(term);
    const Typed *const typed = [&] {
        switch (term.kind) {
        case PGKM_TERM_NUMBER:
        case PGKM_TERM_TRUTH:
            return constant(term, term.kind == PGKM_TERM_TRUTH ? Kind::truth : Kind::number, term.number);
        case PGKM_TERM_NAME:
        case PGKM_TERM_OLD:
            return type_name(term);
        case PGKM_TERM_SUBSCRIPT:
            return type_subscript(term);
        default:
            break;
        }
        const Word &word = word_of(term);
        switch (word.meaning) {
        case Meaning::itself:
            return type(*term.arguments[0]);
        case Meaning::pi:
            return constant(term, Kind::number, std::numbers::pi);
        case Meaning::loop:
            return type_loop(term, word);
        case Meaning::vector:
            return type_vector(term, by_lines);
        case Meaning::cardinality:
        case Meaning::array_length:
            return type_length(term, word);
        default:
            return type_operation(term, word);
        }
    }();
    --nested_;
    return typed;
}

const Typed *Lowering::scalar(const PgkmTerm &term)
{
    const Typed *const typed = type(term);
    if (typed->dimensions > 0)
        raise_shape(*typed);
    return typed;
}

const Typed *Lowering::number(const PgkmTerm &term)
{
    return as_number(scalar(term));
}

const Typed *Lowering::truth(const PgkmTerm &term)
{
    return as_truth(scalar(term));
}

std::int64_t Lowering::count_of(const PgkmTerm &term, std::int64_t least, std::int64_t most)
{
    const std::int32_t before = program_.size();
    const Typed *const typed = scalar(term);
    program_.folds_parameters = true;
    const PgkmExpression made = program_[make(*typed)];
    program_.folds_parameters = false;
    program_.cut(before);
    if (typed->kind == Kind::truth || made.operation != PGKM_CONSTANT)
        raise(sqlstate::invalid, term.place, "a count must be made of numbers and parameters alone");
    const double value = made.number;
    if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most) && value == std::floor(value)))
        raise(sqlstate::invalid, term.place,
              "a count must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                  ", not " + with_digits(value));
    return static_cast<std::int64_t>(value);
}

// --- operations ---

// Numbers go with anything, vectors with vectors as long.
const Typed *Lowering::type_operation(const PgkmTerm &term, const Word &word)
{
    std::vector<const Typed *> arguments;
    Typed &typed = add(term, gives_truth(word.operation) ? Kind::truth : Kind::number);
    for (int i = 0; i < term.n_arguments; ++i) {
        const Typed *const next = arguments.emplace_back(type(*term.arguments[i]));
        if (next->dimensions > 0 && typed.dimensions > 0 &&
            (next->dimensions != typed.dimensions || next->extent != typed.extent))
            raise(sqlstate::wrong_type, term.place, "vectors or matrices of different sizes meet");
        if (next->dimensions > 0 && typed.dimensions == 0)
            take_shape(typed, *next);
    }
    if (word.operation == PGKM_CASE) {
        const Kind yes = arguments[1]->kind, no = arguments[2]->kind;
        as_truth(arguments[0]);
        if (yes != no && yes != Kind::either && no != Kind::either)
            raise(sqlstate::wrong_type, term.place, "CASE has both numbers and conditions as results");
        typed.kind = yes == Kind::either ? no : yes;
    } else {
        for (const Typed *const argument : arguments)
            takes_truths(word.operation) ? as_truth(argument) : as_number(argument);
    }
    typed.make = [this, &term, word, arguments = std::move(arguments)](const At &at) {
        std::array<std::int32_t, 3> a = {-1, -1, -1};
        if (word.meaning == Meaning::chain) {
            a[0] = make(*arguments[0], at);
            for (std::size_t i = 1; i < arguments.size(); ++i)
                a[0] = program_.operation(word.operation, term.place, a[0], make(*arguments[i], at));
            return a[0];
        }
        for (std::size_t i = 0; i < arguments.size(); ++i)
            a[i] = make(*arguments[i], at);
        if (word.meaning == Meaning::swapped)
            std::swap(a[0], a[1]);
        return program_.operation(word.operation, term.place, a[0], a[1], a[2]);
    };
    return &typed;
}

// --- loops ---

// A loop of so many steps that does not run around the term: the same ones again, so that equal bodies are equal
// expressions. Loops over the elements of items are others than those within.
std::int32_t Lowering::enter_loop(std::int64_t count, bool of_item, std::int32_t place)
{
    std::size_t loop = 0;
    while (loop < running_.size() && (program_.loops[loop] != count || running_[loop] || of_items_[loop] != of_item))
        ++loop;
    steps_ *= static_cast<double>(std::max(count, std::int64_t{1}));
    if (loop == most_loops || steps_ > most_steps_of_row)
        raise(sqlstate::too_large, place, "loops of a reduction have too many steps");
    if (loop == running_.size()) {
        program_.loops.push_back(count);
        running_.push_back(true);
        of_items_.push_back(of_item);
    }
    running_[loop] = true;
    return static_cast<std::int32_t>(loop);
}

void Lowering::leave_loop(std::int32_t loop)
{
    running_[at(loop)] = false;
    steps_ /= static_cast<double>(std::max(program_.loops[at(loop)], std::int64_t{1}));
}

const Typed *Lowering::type_within(const char *index, const Typed &binder, const PgkmTerm &body, bool by_lines)
{
    const Scope scope = {index, &binder, scope_};
    scope_ = &scope;
    const Typed *const typed = type(body, by_lines);
    scope_ = scope.outer;
    return typed;
}

const Typed *Lowering::type_loop(const PgkmTerm &term, const Word &word)
{
    const bool named = binds(word, term);
    Typed &typed = add(term);
    const Typed *body;
    if (named) {
        typed.count = count_of(*term.arguments[1], may_be_empty(word.operation) ? 0 : 1, INT32_MAX);
        body = type_within(term.arguments[0]->name, typed, *term.arguments[2], false);
        if (body->dimensions > 0)
            raise_shape(*body);
    } else {
        body = type(*term.arguments[0]);
        typed.count = body->extent[0];
        if (body->dimensions != 1)
            raise(sqlstate::wrong_type, term.place, "a vector is expected here, not " + shape_name(body->dimensions));
    }
    if (body->kind == (word.operation == PGKM_COUNT ? Kind::number : Kind::truth))
        raise(sqlstate::wrong_type, term.place,
              word.operation == PGKM_COUNT ? "count is over a condition"
                                           : "a loop is over numbers, not over conditions");
    typed.make = [this, &term, &typed, operation = word.operation, named, body](const At &) {
        const std::int32_t loop = enter_loop(typed.count, false, term.place);
        typed.index = program_.index(term.place, loop);
        const std::int32_t made = make(*body, named ? At{} : At{1, {typed.index, -1}});
        leave_loop(loop);
        return program_.over_loop(operation, term.place, loop, made);
    };
    return &typed;
}

// By lines: a value, whose lines may differ in length. The shape is that of the first.
const Typed *Lowering::type_vector(const PgkmTerm &term, bool by_lines)
{
    const std::int64_t count = count_of(*term.arguments[1], 1, INT32_MAX);
    Typed &typed = add(term);
    typed.count = count;
    typed.first_line = by_lines;
    const Typed *const body = type_within(term.arguments[0]->name, typed, *term.arguments[2], by_lines);
    typed.kind = body->kind;
    typed.dimensions = body->dimensions + 1;
    typed.extent = {count, body->extent[0]};
    typed.whole = &typed;
    typed.make = [this, &typed, body](const At &at) {
        typed.index = at.index[0];
        return make(*body, {at.n - 1, {at.index[1], -1}});
    };
    return &typed;
}

} // namespace pgkm::reduction
