// call.hpp - a call over problems: describes them in the arena, fills in what they give, asks
// the service, and takes the results.
#pragma once

#include <cstring>
#include <vector>

#include "backend/reduction_program.hpp"
#include "numeric/copy.h"
#include "service/wire/arrays.hpp"
#include "service/client/link.hpp"

namespace pgkm::service {

// PgkmData of the client's table.
struct LoadedRows {
    Link &link;
    Shape shape;
};

// What a problem is to calls that read its range of rows alone: the rest of it may not be set.
inline WireProblem wire_range(const PgkmProblem &from, std::uint32_t parts)
{
    WireProblem to = {};
    to.first_row = from.first_row;
    to.n_rows = from.n_rows;
    to.parts = parts;
    return to;
}

inline std::uint32_t part_if(const void *wanted, std::uint32_t part)
{
    return wanted != nullptr ? part : 0u;
}

// Nothing where there is no array on one side.
template <typename T>
void copy_array(T *to, const T *from, std::uint64_t count)
{
    if (to != nullptr && from != nullptr)
        pgkm_copy(to, from, count * sizeof(T));
}

class Call {
  public:
    Call(PgkmData *data, Op op, std::int64_t n_problems)
        : rows_(*reinterpret_cast<LoadedRows *>(data)), request_(request_of(op)), asked_(n_problems)
    {
        request_.call.n_problems = n_problems;
    }
    CallRequest &request() { return request_.call; }

    // The program of reduce(), before describe().
    void use(const PgkmReduction &program)
    {
        program_ = &program;
        request().program = {program.n_expressions, program.n_loops,    program.n_items,   program.n_objects,
                             program.n_parameters,  values_in(program), cells_in(program), program.exact};
    }

    // problem(i): problem i without its arrays. Then fill(i, arrays) for the places that they have.
    template <typename Describe, typename Fill>
    void describe(Describe &&problem, Fill &&fill)
    {
        Walk sizes(rows_.shape, n(), nullptr);
        if (program_ != nullptr)
            sizes.program(request().program);
        for (std::size_t i = 0; i < asked_.size(); ++i)
            sizes.next(asked_[i] = problem(i));
        rows_.link.check_memory(sizes.end());
        rows_.link.arena().grow(sizes.end());
        fill_program();
        each([&](std::size_t i, WireProblem &place, const Arrays &arrays) {
            place = asked_[i];
            fill(i, arrays);
        });
    }

    // Asks, then take(i, problem as it came back, arrays) for each; sizes are as they were asked.
    template <typename Take>
    void run(Take &&take)
    {
        ask();
        each(take);
    }
    // The same in two steps: a reduction that fails in a row has something to take, too.
    void ask()
    {
        rows_.link.check_cancelled();
        rows_.link.ask(request_);
    }
    template <typename Take>
    void take_each(Take &&take)
    {
        each(take);
    }

    std::uint64_t d() const { return static_cast<std::uint64_t>(rows_.shape.d); }
    std::size_t row_bytes() const { return static_cast<std::size_t>(d()) * rows_.shape.element_bytes(); }

  private:
    std::int64_t n() const { return static_cast<std::int64_t>(asked_.size()); }
    template <typename Visit>
    void each(Visit &&visit)
    {
        Walk walk(rows_.shape, n(), rows_.link.arena().get());
        if (program_ != nullptr)
            walk.program(request().program);
        for (std::size_t i = 0; i < asked_.size(); ++i)
            visit(i, walk.problems()[i], walk.next(asked_[i]));
    }

    void fill_program()
    {
        if (program_ == nullptr)
            return;
        Walk walk(rows_.shape, n(), rows_.link.arena().get());
        const ProgramArrays to = walk.program(request().program);
        const auto copy = [](auto *into, const auto *from, std::int64_t count) {
            copy_array(into, from, static_cast<std::uint64_t>(count));
        };
        copy(to.expressions, program_->expressions, program_->n_expressions);
        copy(to.loops, program_->loops, program_->n_loops);
        copy(to.parameters, program_->parameters, program_->n_parameters);
        copy(to.items, program_->items, program_->n_items);
        copy(to.objects, program_->objects, program_->n_objects);
    }

    LoadedRows &rows_;
    const PgkmReduction *program_ = nullptr;
    Request request_;
    std::vector<WireProblem> asked_;
};

} // namespace pgkm::service
