// problem_call.hpp - a call of the table for one problem.
#pragma once

#include "backend/calls.hpp"

namespace pgkm::test {

inline Call problem_call(Function function, PgkmProblem &problem)
{
    Call call = {};
    call.function = function;
    call.n_problems = 1;
    call.problems = &problem;
    return call;
}

inline Call assign_call(PgkmProblem &problem, PgkmAssignment &wanted)
{
    Call call = problem_call(Function::assign, problem);
    call.assignments = &wanted;
    return call;
}

} // namespace pgkm::test
