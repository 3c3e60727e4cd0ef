// program.cpp (generate) - one walk over the expressions, front to back.
#include "backend/generate/program.hpp"

#include <algorithm>
#include <cmath>

#include "backend/reduction_walk.hpp"
#include "numeric/error.hpp"

namespace pgkm::generate {
namespace {

// Whole numbers stay in 32 bits, so that they can be subscripts.
constexpr std::int64_t most_whole = (std::int64_t{1} << 31) - 1;

bool fits(std::int64_t least, std::int64_t most)
{
    return least >= -most_whole && most <= most_whole;
}

// Of finite arguments.
bool is_always_finite(PgkmOperation operation)
{
    switch (operation) {
    case PGKM_CONSTANT:
    case PGKM_COLUMN:
    case PGKM_PARAMETER:
    case PGKM_NEGATE:
    case PGKM_ABS:
    case PGKM_FLOOR:
    case PGKM_CEIL:
    case PGKM_ROUND:
    case PGKM_TRUNC:
    case PGKM_SIN:
    case PGKM_COS:
    case PGKM_ATAN:
    case PGKM_TANH:
    case PGKM_ATAN2:
    case PGKM_LEAST:
    case PGKM_GREATEST:
    case PGKM_CASE:
    case PGKM_MIN:
    case PGKM_MAX:
        return true;
    default:
        return false;
    }
}

double cost_of(PgkmOperation operation)
{
    if (is_slow(operation) || operation == PGKM_POWER)
        return 40;
    return operation == PGKM_DIVIDE || operation == PGKM_SQRT ? 10 : 1;
}

} // namespace

Set &Set::operator|=(const Set &other)
{
    for (std::size_t i = 0; i < words_.size(); ++i)
        words_[i] |= other.words_[i];
    return *this;
}

Set &Set::operator&=(const Set &other)
{
    for (std::size_t i = 0; i < words_.size(); ++i)
        words_[i] &= other.words_[i];
    return *this;
}

Set &Set::operator-=(const Set &other)
{
    for (std::size_t i = 0; i < words_.size(); ++i)
        words_[i] &= ~other.words_[i];
    return *this;
}

Program::Program(const PgkmReduction &reduction) : source_(reduction)
{
    constexpr std::int32_t most_expressions = 8192; // each with a set of them
    if (reduction.n_expressions > most_expressions)
        throw Error(PGKM_UNSUPPORTED, "the reduction is too long for the GPU");
    facts_.resize(static_cast<std::size_t>(reduction.n_expressions));
    for (std::int32_t e = 0; e < reduction.n_expressions; ++e)
        learn(e);
}

bool Program::is_square(std::int32_t e) const
{
    return pgkm::is_square(source_, at(e));
}

bool Program::is_product(std::int32_t e) const
{
    return at(e).operation == PGKM_MULTIPLY || is_square(e);
}

bool Program::is_whole_quotient(std::int32_t e) const
{
    const std::int32_t a = at(e).a[0];
    if ((at(e).operation != PGKM_FLOOR && at(e).operation != PGKM_TRUNC) || at(a).operation != PGKM_DIVIDE)
        return false;
    const Facts &above = facts(at(a).a[0]), &below = facts(at(a).a[1]);
    return above.kind == Kind::whole && above.least >= 0 && below.kind == Kind::whole && below.least >= 1;
}

void Program::learn(std::int32_t e)
{
    const PgkmExpression &x = at(e);
    Facts &facts = facts_[static_cast<std::size_t>(e)];
    facts.loops = Set(std::max(source_.n_loops, 1));
    facts.finite = is_always_finite(x.operation);
    facts.dealt = x.operation == PGKM_COLUMN;
    facts.cost = is_square(e) ? 1.0 : cost_of(x.operation);
    for (const std::int32_t a : x.a) {
        if (a < 0)
            continue;
        const Facts &argument = this->facts(a);
        facts.loops |= argument.loops;
        facts.dealt |= argument.dealt;
        facts.cost += argument.cost;
    }
    if (x.operation == PGKM_INDEX)
        facts.loops.add(x.loop);
    if (goes_over_loop(x.operation)) {
        facts.loops.drop(x.loop);
        facts.cost *= static_cast<double>(std::max<std::int64_t>(count(x.loop), 1));
    }
    learn_whole(e, facts);
    facts.finite |= facts.kind != Kind::number;
    learn_needed(e, facts);
}

void Program::learn_whole(std::int32_t e, Facts &to) const
{
    const PgkmExpression &x = at(e);
    const Facts none;
    const Facts &a = x.a[0] < 0 ? none : facts(x.a[0]), &b = x.a[1] < 0 ? none : facts(x.a[1]);
    const auto whole = [&](std::int64_t least, std::int64_t most) {
        if (!fits(least, most))
            return;
        to.kind = Kind::whole;
        to.least = least;
        to.most = most;
    };
    const bool one = a.kind == Kind::whole, both = one && b.kind == Kind::whole;
    switch (x.operation) {
    case PGKM_CONSTANT:
        // -0 is no whole number, since 0 as an integer has no sign.
        if (std::fabs(x.number) <= static_cast<double>(most_whole) && x.number == std::trunc(x.number) &&
            !(x.number == 0 && std::signbit(x.number)))
            whole(static_cast<std::int64_t>(x.number), static_cast<std::int64_t>(x.number));
        break;
    case PGKM_INDEX:
    case PGKM_ARGMIN:
    case PGKM_ARGMAX:
        whole(0, std::max<std::int64_t>(count(x.loop), 1) - 1);
        break;
    case PGKM_COUNT:
        whole(0, count(x.loop));
        break;
    case PGKM_ADD:
        if (both)
            whole(a.least + b.least, a.most + b.most);
        break;
    case PGKM_SUBTRACT:
        if (both)
            whole(a.least - b.most, a.most - b.least);
        break;
    case PGKM_MULTIPLY:
        if (both && a.least >= 0 && b.least >= 0) // else -0 could come out
            whole(a.least * b.least, a.most * b.most);
        break;
    case PGKM_MODULO:
        if (both && a.least >= 0 && b.least >= 1)
            whole(0, std::min(a.most, b.most - 1));
        break;
    case PGKM_ABS:
        if (one)
            whole(a.least > 0 ? a.least : 0, std::max(a.most, -a.least));
        break;
    case PGKM_FLOOR:
    case PGKM_TRUNC:
        if (is_whole_quotient(e))
            whole(0, facts(at(x.a[0]).a[0]).most / facts(at(x.a[0]).a[1]).least);
        [[fallthrough]];
    case PGKM_CEIL:
    case PGKM_ROUND:
        if (one)
            whole(a.least, a.most);
        break;
    case PGKM_SIGN:
        whole(-1, 1);
        break;
    case PGKM_LEAST:
        if (both)
            whole(std::min(a.least, b.least), std::min(a.most, b.most));
        break;
    case PGKM_GREATEST:
        if (both)
            whole(std::max(a.least, b.least), std::max(a.most, b.most));
        break;
    case PGKM_CASE: {
        const Facts &c = facts(x.a[2]);
        if (b.kind == Kind::whole && c.kind == Kind::whole)
            whole(std::min(b.least, c.least), std::max(b.most, c.most));
        else if (b.kind == Kind::truth && c.kind == Kind::truth)
            to.kind = Kind::truth;
        break;
    }
    case PGKM_NOT:
    case PGKM_EQUAL:
    case PGKM_NOT_EQUAL:
    case PGKM_LESS:
    case PGKM_LESS_EQUAL:
    case PGKM_AND:
    case PGKM_OR:
        to.kind = Kind::truth;
        break;
    default:
        break;
    }
}

// What a scope that needs e evaluates: e's arguments, of a CASE what both branches need, of a loop what does not
// depend on its index. The rest belongs to scopes within.
void Program::learn_needed(std::int32_t e, Facts &to) const
{
    const PgkmExpression &x = at(e);
    to.needed = Set(size());
    to.needed.add(e);
    if (x.operation == PGKM_CASE) {
        Set both = facts(x.a[1]).needed;
        both &= facts(x.a[2]).needed;
        to.needed |= both;
        to.needed |= facts(x.a[0]).needed;
    } else if (goes_over_loop(x.operation)) {
        if (count(x.loop) > 0)
            for (std::int32_t i = 0; i < e; ++i)
                if (facts(x.a[0]).needed.has(i) && !facts(i).loops.has(x.loop))
                    to.needed.add(i);
    } else {
        for (const std::int32_t a : x.a)
            if (a >= 0)
                to.needed |= facts(a).needed;
    }
}

} // namespace pgkm::generate
