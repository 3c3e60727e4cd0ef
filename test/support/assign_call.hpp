// assign_call.hpp - a call of assign for one problem.
#pragma once

#include "backend/calls.hpp"

namespace pgkm::test {

inline Call assign_call(PgkmProblem &problem, PgkmAssignment &wanted)
{
    Call call = {};
    call.function = Function::assign;
    call.n_problems = 1;
    call.problems = &problem;
    call.assignments = &wanted;
    return call;
}

} // namespace pgkm::test
