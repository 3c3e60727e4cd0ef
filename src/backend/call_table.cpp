// call_table.cpp - a call run on a table, and copies of its problems.
#include "backend/call_table.hpp"

namespace pgkm {

PgkmStatus run_call(const PgkmBackend &table, PgkmData *data, const Call &call, PgkmError *error)
{
    switch (call.function) {
    case Function::summarise:
        return table.summarise(data, call.problems, call.n_problems, call.want_moments, call.summaries, error);
    case Function::seed:
        return table.seed(data, call.problems, call.n_problems, &call.seed, error);
    case Function::fit:
        return table.fit(data, call.problems, call.n_problems, &call.fit, error);
    case Function::assign:
        return table.assign(data, call.problems, call.n_problems, call.assignments, error);
    case Function::moments:
        return table.moments(data, call.problems, call.n_problems, call.moments, error);
    case Function::em_step:
        return table.em_step(data, call.problems, call.n_problems, call.mixtures, call.sums, error);
    case Function::reduce:
        return table.reduce(data, call.problems, call.n_problems, &call.reduction, call.reduced, error);
    }
    return set_error(error, PGKM_INTERNAL, "a call of no function");
}

Call call_of_one(Call call, std::int64_t i)
{
    const auto go_on = [i](auto *&array) { array = array == nullptr ? nullptr : array + i; };
    call.n_problems = 1;
    go_on(call.problems);
    go_on(call.summaries);
    go_on(call.assignments);
    go_on(call.moments);
    go_on(call.mixtures);
    go_on(call.sums);
    go_on(call.reduced);
    return call;
}

void CallRoom::make(std::size_t n)
{
    const auto room = [&](auto &of, Function function) {
        of.resize(call.function == function ? n : 0);
        return of.data();
    };
    problems.resize(n);
    call.n_problems = static_cast<std::int64_t>(n);
    call.problems = problems.data();
    call.summaries = room(summaries, Function::summarise);
    call.assignments = room(assignments, Function::assign);
    call.moments = room(moments, Function::moments);
    call.mixtures = room(mixtures, Function::em_step);
    call.sums = room(sums, Function::em_step);
    call.reduced = room(reduced, Function::reduce);
}

void CallRoom::set(std::size_t i, const Call &from)
{
    const auto copy = [i](auto &to, const auto *one) {
        if (!to.empty())
            to[i] = *one;
    };
    copy(problems, from.problems);
    copy(summaries, from.summaries);
    copy(assignments, from.assignments);
    copy(moments, from.moments);
    copy(mixtures, from.mixtures);
    copy(sums, from.sums);
    copy(reduced, from.reduced);
}

} // namespace pgkm
