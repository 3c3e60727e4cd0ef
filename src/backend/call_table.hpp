// call_table.hpp - calls of a table's functions as values (calls.hpp): run on a table, copied, and a table whose seven
// functions are one that takes a call.
#pragma once

#include <vector>

#include "backend/calls.hpp"
#include "backend/reduction_program.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Calls the function on the table.
PgkmStatus run_call(const PgkmBackend &table, PgkmData *data, const Call &call, PgkmError *error);

// The call for its problem i alone, in place.
Call call_of_one(Call call, std::int64_t i);

// A call's problems and what is asked about them, with memory of their own; arrays within are the caller's.
struct CallRoom {
    // Room for n problems of the call's function.
    void make(std::size_t n);
    // Problem i becomes that of `from`.
    void set(std::size_t i, const Call &from);

    Call call = {};
    std::vector<PgkmProblem> problems;
    std::vector<PgkmSummary> summaries;
    std::vector<PgkmAssignment> assignments;
    std::vector<PgkmMoments> moments;
    std::vector<PgkmMixture> mixtures;
    std::vector<PgkmMixtureSums> sums;
    std::vector<PgkmReduced> reduced;
};

// The functions of a table that all come to run(data, call, error). Problems and mixtures that are not to change are
// not changed there. A question whether reduce() is there has no data.
template <PgkmStatus (*run)(PgkmData *, Call, PgkmError *)>
struct CallTable {
    // With probe(), strategies() and open() of a backend that has no device of its own; the rest is to be filled in.
    static PgkmBackend table(const char *name)
    {
        PgkmBackend table = {};
        table.abi = PGKM_BACKEND_ABI;
        table.struct_size = sizeof table;
        table.name = name;
        table.probe = [](PgkmDevice *, std::int32_t, std::int32_t *count, PgkmError *error) {
            *count = 0;
            return set_error(error, PGKM_OK, "");
        };
        table.strategies = [](const char *) -> const char *const * {
            static const char *const none[] = {nullptr};
            return none;
        };
        table.open = [](const PgkmOpen *, PgkmContext **context, PgkmError *error) {
            *context = nullptr;
            return set_error(error, PGKM_UNSUPPORTED, "this backend is opened by a function of its own");
        };
        table.summarise = summarise;
        table.seed = seed;
        table.fit = fit;
        table.assign = assign;
        table.moments = moments;
        table.em_step = em_step;
        table.reduce = reduce;
        return table;
    }

  private:
    static Call call_of(Function function, const PgkmProblem *problems, std::int64_t n_problems)
    {
        Call call = {};
        call.function = function;
        call.n_problems = n_problems;
        call.problems = const_cast<PgkmProblem *>(problems);
        return call;
    }
    static PgkmStatus summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                                std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
    {
        Call call = call_of(Function::summarise, problems, n_problems);
        call.want_moments = want_moments;
        call.summaries = summaries;
        return run(data, call, error);
    }
    static PgkmStatus seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                           PgkmError *error)
    {
        Call call = call_of(Function::seed, problems, n_problems);
        call.seed = *params;
        return run(data, call, error);
    }
    static PgkmStatus fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                          PgkmError *error)
    {
        Call call = call_of(Function::fit, problems, n_problems);
        call.fit = *params;
        return run(data, call, error);
    }
    static PgkmStatus assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                             PgkmAssignment *assignments, PgkmError *error)
    {
        Call call = call_of(Function::assign, problems, n_problems);
        call.assignments = assignments;
        return run(data, call, error);
    }
    static PgkmStatus moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *sums,
                              PgkmError *error)
    {
        Call call = call_of(Function::moments, problems, n_problems);
        call.moments = sums;
        return run(data, call, error);
    }
    static PgkmStatus em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                              const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
    {
        Call call = call_of(Function::em_step, problems, n_problems);
        call.mixtures = const_cast<PgkmMixture *>(mixtures);
        call.sums = sums;
        return run(data, call, error);
    }
    static PgkmStatus reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                             const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
    {
        Call call = call_of(Function::reduce, problems, n_problems);
        if (data == nullptr)
            return run(data, call, error);
        call.reduction = *reduction;
        call.values = values_in(*reduction);
        call.cells = cells_in(*reduction);
        call.reduced = reduced;
        return run(data, call, error);
    }
};

} // namespace pgkm
