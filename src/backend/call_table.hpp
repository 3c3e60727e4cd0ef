// call_table.hpp - calls of a table's functions as values (calls.hpp): run on a table, copied, and a table whose seven
// functions are one that takes a call.
#pragma once

#include <tuple>
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
class CallRoom {
  public:
    // Room for n problems.
    void make(std::size_t n);
    // Problem i becomes that of `from`.
    void set(std::size_t i, const Call &from);

    Call call = {};

  private:
    std::tuple<std::vector<PgkmProblem>, std::vector<PgkmSummary>, std::vector<PgkmAssignment>,
               std::vector<PgkmMoments>, std::vector<PgkmMixture>, std::vector<PgkmMixtureSums>,
               std::vector<PgkmReduced>>
        room_;
};

// The functions of a table that all come to run(data, call, error). Problems and mixtures that are not to change are
// not changed there. A question whether reduce() is there has no data.
template <PgkmStatus (*run)(PgkmData *, Call, PgkmError *)>
struct CallTable {
    // With probe(), strategies() and open() of a backend that has no device of its own.
    static PgkmBackend table(const char *name, decltype(PgkmBackend::close) close, decltype(PgkmBackend::load) load,
                             decltype(PgkmBackend::unload) unload)
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
        table.close = close;
        table.load = load;
        table.unload = unload;
        table.summarise = Entry<Function::summarise, decltype(table.summarise)>::call;
        table.seed = Entry<Function::seed, decltype(table.seed)>::call;
        table.fit = Entry<Function::fit, decltype(table.fit)>::call;
        table.assign = Entry<Function::assign, decltype(table.assign)>::call;
        table.moments = Entry<Function::moments, decltype(table.moments)>::call;
        table.em_step = Entry<Function::em_step, decltype(table.em_step)>::call;
        table.reduce = Entry<Function::reduce, decltype(table.reduce)>::call;
        return table;
    }

  private:
    template <Function function, typename Pointer>
    struct Entry;
    // A function of the table: its arguments behind the problems, and the error.
    template <Function function, typename Problem, typename... Arguments>
    struct Entry<function, PgkmStatus (*)(PgkmData *, Problem *, std::int64_t, Arguments...)> {
        static PgkmStatus call(PgkmData *data, Problem *problems, std::int64_t n_problems, Arguments... arguments)
        {
            Asked asked;
            asked.call.function = function;
            asked.call.n_problems = n_problems;
            asked.call.problems = const_cast<PgkmProblem *>(problems);
            (asked.take(arguments), ...);
            return run(data, asked.call, asked.error);
        }
    };
    struct Asked {
        Call call = {};
        PgkmError *error = nullptr;

        void take(std::int32_t want_moments) { call.want_moments = want_moments; }
        void take(PgkmSummary *summaries) { call.summaries = summaries; }
        void take(const PgkmSeedParams *params) { call.seed = *params; }
        void take(const PgkmFitParams *params) { call.fit = *params; }
        void take(PgkmAssignment *assignments) { call.assignments = assignments; }
        void take(PgkmMoments *moments) { call.moments = moments; }
        void take(const PgkmMixture *mixtures) { call.mixtures = const_cast<PgkmMixture *>(mixtures); }
        void take(PgkmMixtureSums *sums) { call.sums = sums; }
        void take(PgkmReduced *reduced) { call.reduced = reduced; }
        void take(PgkmError *where) { error = where; }
        void take(const PgkmReduction *reduction)
        {
            if (reduction == nullptr)
                return;
            call.reduction = *reduction;
            call.values = values_in(*reduction);
            call.cells = cells_in(*reduction);
        }
    };
};

} // namespace pgkm
