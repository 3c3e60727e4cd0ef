// problems.cpp - checks the problems of a call and runs it on the plugin's table.
#include "service/server/problems.hpp"

#include <algorithm>
#include <string>

#include "backend/reduction_program.hpp"
#include "numeric/error.hpp"

namespace pgkm::service {

void refuse(const char *what)
{
    throw Error(PGKM_INVALID, std::string("the GPU service got ") + what);
}

Problems::Problems(const CallRequest &request, const PgkmPoints &points, const Arena &arena)
    : rows_(shape_of(points)), arena_(arena.get()),
      reader_(Leg::read_call, rows_, arena.get(), request.numbers, arena.bytes())
{
    call_.function = request.function;
    call_.n_problems = request.n_problems;
    if (call_.function > Function::reduce)
        refuse("a call of no function");
    // Each has its range among the numbers.
    if (call_.n_problems < 1 || static_cast<std::uint64_t>(call_.n_problems) > request.numbers / 2)
        refuse("a number of problems that cannot be");
    room_.make(static_cast<std::size_t>(call_.n_problems));
    call_fields(reader_, call_);
    if (call_.function == Function::reduce) {
        call_.reduction.exact = call_.reduction.exact != 0 ? 1 : 0;
        check_program(call_.reduction, rows_.d);
        call_.values = values_in(call_.reduction);
        call_.cells = cells_in(call_.reduction);
    }
    for (std::int64_t i = 0; i < call_.n_problems; ++i) {
        problem_fields(reader_, call_, i);
        check(i);
        work_ += work_of(i);
        if (call_.function == Function::reduce)
            call_.reduced[i].row = call_.reduced[i].expression = -1;
    }
}

// Beside the fields: labels are places in arrays.
void Problems::check(std::int64_t problem) const
{
    if (call_.function != Function::em_step)
        return;
    const PgkmMixture &mixture = call_.mixtures[problem];
    const std::int32_t *const labels = mixture.labels;
    if (labels != nullptr ? call_.sums[problem].masses == nullptr : mixture.factors == nullptr)
        refuse("a mixture without labels or factors, or without sums to find");
    if (labels != nullptr && std::any_of(labels, labels + call_.problems[problem].n_rows,
                                         [&](std::int32_t label) { return label < 0 || label >= mixture.k; }))
        refuse("a label of no component");
}

double Problems::work_of(std::int64_t problem) const
{
    const auto n = static_cast<double>(call_.problems[problem].n_rows);
    const double d = rows_.d, values = n * d;
    switch (call_.function) {
    case Function::summarise:
        return values;
    case Function::moments:
        return values * d;
    case Function::reduce:
        return n * program_work(call_.reduction).row;
    case Function::em_step: {
        const PgkmMixture &mixture = call_.mixtures[problem];
        return em_step_products(mixture.covariance_type, n, mixture.k, d);
    }
    default:
        break;
    }
    const double of_k = values * call_.problems[problem].k;
    return call_.function == Function::fit ? of_k * std::clamp(call_.fit.max_iter, 1, 30)
                                           : of_k; // few need more passes
}

void Problems::write_back()
{
    reader_.put_back();
    ArenaFields writer(Leg::write_results, rows_, arena_, reader_.numbers(), reader_.bytes());
    fields(writer, call_);
}

} // namespace pgkm::service
