// call_table.cpp - a call run on a table, and copies of its problems.
#include "backend/call_table.hpp"

namespace pgkm {
namespace {

// Calls body(array) for each that has an entry for each problem of a call of this function.
template <typename Body>
void for_arrays(Function function, Body &&body)
{
    body(&Call::problems);
    switch (function) {
    case Function::summarise:
        return body(&Call::summaries);
    case Function::seed:
    case Function::fit:
        return;
    case Function::assign:
        return body(&Call::assignments);
    case Function::moments:
        return body(&Call::moments);
    case Function::em_step:
        body(&Call::mixtures);
        return body(&Call::sums);
    case Function::reduce:
        return body(&Call::reduced);
    }
}

} // namespace

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
    call.n_problems = 1;
    for_arrays(call.function, [&](auto array) { call.*array = call.*array == nullptr ? nullptr : call.*array + i; });
    return call;
}

void CallRoom::make(std::size_t n)
{
    call.n_problems = static_cast<std::int64_t>(n);
    for_arrays(call.function, [&]<typename Entry>(Entry *Call::*array) {
        auto &room = std::get<std::vector<Entry>>(room_);
        room.resize(n);
        call.*array = room.data();
    });
}

void CallRoom::set(std::size_t i, const Call &from)
{
    for_arrays(call.function, [&](auto array) {
        if (from.*array != nullptr)
            (call.*array)[i] = *(from.*array);
    });
}

} // namespace pgkm
