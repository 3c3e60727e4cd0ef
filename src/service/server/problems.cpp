// problems.cpp - checks the problems of a call and runs it on the plugin's table.
#include "service/server/problems.hpp"

#include <algorithm>
#include <string>

#include "backend/reduction_program.hpp"
#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

// A copy in place of an array in the arena: what is checked there cannot change any more.
template <typename T>
void copy_array(std::vector<T> &copy, const T *&array, std::int64_t n)
{
    copy.assign(array, array + n);
    array = copy.data();
}

} // namespace

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
    if (call_.function == Function::reduce)
        copy_program();
    for (std::size_t i = 0; i < room_.problems.size(); ++i) {
        problem_fields(reader_, call_, static_cast<std::int64_t>(i));
        keep(i);
        work_ += work_of(i);
    }
    asked_ = room_.problems;
}

// Copied, and then checked as the engine checks it.
void Problems::copy_program()
{
    PgkmReduction &program = call_.reduction;
    program.exact = program.exact != 0 ? 1 : 0;
    copy_array(expressions_, program.expressions, program.n_expressions);
    copy_array(loops_, program.loops, program.n_loops);
    copy_array(parameters_, program.parameters, program.n_parameters);
    copy_array(items_, program.items, program.n_items);
    copy_array(objects_, program.objects, program.n_objects);
    check_program(program, rows_.d);
    call_.values = values_in(program);
    call_.cells = cells_in(program);
}

// What is checked beside the fields, and what has to outlive a call.
void Problems::keep(std::size_t problem)
{
    if (call_.function == Function::em_step) {
        PgkmMixture &mixture = room_.mixtures[problem];
        if (mixture.labels != nullptr)
            keep_labels(mixture, room_.problems[problem].n_rows);
        if (mixture.labels != nullptr ? room_.sums[problem].masses == nullptr : mixture.factors == nullptr)
            refuse("a mixture without labels or factors, or without sums to find");
    }
    if (call_.function == Function::reduce)
        room_.reduced[problem].row = room_.reduced[problem].expression = -1;
    if (call_.function == Function::fit) {
        const auto *at = static_cast<const char *>(room_.problems[problem].centroids);
        const std::int64_t values = std::int64_t{room_.problems[problem].k} * rows_.d;
        centroids_.emplace_back(at, at + values * static_cast<std::int64_t>(rows_.element_bytes()));
    }
}

// They are places in arrays: checked, and out of the client's reach.
void Problems::keep_labels(PgkmMixture &mixture, std::int64_t n)
{
    given_labels_.emplace_back();
    copy_array(given_labels_.back(), mixture.labels, n);
    if (std::any_of(mixture.labels, mixture.labels + n,
                    [&](std::int32_t label) { return label < 0 || label >= mixture.k; }))
        refuse("a label of no component");
}

double Problems::work_of(std::size_t problem) const
{
    const auto n = static_cast<double>(room_.problems[problem].n_rows);
    const double d = rows_.d, values = n * d;
    switch (call_.function) {
    case Function::summarise:
        return values;
    case Function::moments:
        return values * d;
    case Function::reduce:
        return n * program_work(call_.reduction).row;
    case Function::em_step: {
        const PgkmMixture &mixture = room_.mixtures[problem];
        return values * mixture.k * (mixture.covariance_type == PGKM_COVARIANCE_FULL ? d : 2.0);
    }
    default:
        break;
    }
    const double of_k = values * room_.problems[problem].k;
    return call_.function == Function::fit ? of_k * std::clamp(call_.fit.max_iter, 1, 30)
                                           : of_k; // few need more passes
}

void Problems::restore()
{
    room_.problems = asked_; // in place
    for (std::size_t i = 0; i < centroids_.size(); ++i)
        std::copy(centroids_[i].begin(), centroids_[i].end(), static_cast<char *>(room_.problems[i].centroids));
}

void Problems::write_back()
{
    ArenaFields writer(Leg::write_results, rows_, arena_, reader_.numbers(), reader_.bytes());
    fields(writer, call_);
}

} // namespace pgkm::service
