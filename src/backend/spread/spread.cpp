// spread.cpp - the functions of the table: each problem by the contexts that have its rows.
#include "backend/spread/spread.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <vector>

#include "backend/shares.hpp"
#include "backend/spread/exchange.hpp"
#include "backend/spread/rows.hpp"
#include "numeric/error.hpp"

namespace pgkm::spread {
namespace {

bool is_short_of_memory(PgkmStatus status)
{
    return status == PGKM_LIMIT || status == PGKM_OUT_OF_MEMORY;
}

// What peers do at once, each with its own rows, and come to the same.
bool is_for_peers(Function function)
{
    return function == Function::summarise || function == Function::seed || function == Function::fit;
}

PgkmStatus run_inner(const Rows &rows, PgkmData *data, Call call, PgkmError *error)
{
    if (data == nullptr)
        return error->status;
    call.seed.restart += call.problems[0].restart; // of groups 0
    return run_call(rows.contexts().inner(), data, call, error);
}

// A reduction that fails says in which row.
bool has_results(PgkmStatus status, const Call &call)
{
    return status == PGKM_OK || call.function == Function::reduce;
}

// --- one problem ---

// By all contexts that have its rows at once: as peers, or each by itself, and what they find is added in their order.
void call_in_shares(Rows &rows, Call whole, const std::vector<Share> &shares)
{
    Contexts &contexts = rows.contexts();
    const bool peers = is_for_peers(whole.function);
    Exchange exchange(static_cast<std::int32_t>(shares.size()), whole.problems->n_rows, contexts.host(),
                      contexts.failed());
    std::vector<std::optional<ShareCall>> calls(shares.size()); // each is made in its thread: they copy what is given
    std::vector<std::size_t> which, share_on(contexts.count());
    for (std::size_t i = 0; i < shares.size(); ++i) {
        which.push_back(shares[i].context);
        share_on[shares[i].context] = i;
    }
    contexts.run(which, [&](std::size_t context, PgkmError *error) {
        const std::size_t i = share_on[context];
        PgkmProblem &own = calls[i].emplace(whole, rows.shape(), shares[i].skip, shares.size() == 1).problem();
        own.first_row = shares[i].problem.first_row;
        own.n_rows = shares[i].problem.n_rows;
        if (peers && shares.size() > 1)
            own.peers = exchange.peers_of(static_cast<std::int32_t>(i));
        const PgkmStatus status = run_inner(rows, rows.data(context, error), calls[i]->room.call, error);
        return status == PGKM_CANCELLED && exchange.out_of_memory()
                   ? set_error(error, PGKM_OUT_OF_MEMORY, "out of memory")
                   : status;
    });
    Results results(rows.shape());
    for (std::size_t i = 0; i < (peers ? 1 : shares.size()); ++i)
        results.give(*calls[i], whole, i == 0);
}

// By one context, to which its rows are brought.
PgkmStatus call_on(std::size_t context, Rows &rows, Call whole, PgkmError *error)
{
    ShareCall all(whole, rows.shape(), 0, true); // an attempt that fails leaves what was given
    PgkmData *const data = rows.gather(context, all.problem(), error);
    all.problem().first_row = 0;
    const PgkmStatus status = run_inner(rows, data, all.room.call, error);
    if (has_results(status, whole))
        Results(rows.shape()).give(all, whole, true);
    return status;
}

void call_together(Rows &rows, const Call &whole, std::size_t on)
{
    rows.contexts().run({on}, [&](std::size_t context, PgkmError *error) {
        const PgkmStatus status = call_on(context, rows, whole, error);
        if (!is_short_of_memory(status))
            return status;
        rows.unload_own(context);
        set_error(error, PGKM_OK, "");
        return call_on(context, rows, whole, error);
    });
}

// Whether to add up sums in float64 would take longer than to bring the rows together.
bool has_few_rows(const Call &one, std::int64_t d)
{
    const std::int64_t n = one.problems->n_rows;
    return one.function == Function::moments ? (d + 1) / 2 > n
                                             : second_size(one.mixtures->covariance_type, one.mixtures->k, d) > n * d;
}

// same: it is one of several problems of the same rows, whose sums in float64 are those of one context.
void call_one(Rows &rows, const Call &one, bool same)
{
    const std::vector<Share> shares = rows.shares_of(*one.problems);
    const bool floating = one.function == Function::moments || one.function == Function::em_step;
    if (shares.size() > 1 &&
        (one.function == Function::reduce || (floating && (same || has_few_rows(one, rows.points().d)))))
        return call_together(rows, one, shares[0].context);
    try {
        call_in_shares(rows, one, shares);
    } catch (const Error &error) {
        const bool is_short = is_short_of_memory(error.status());
        if (!is_for_peers(one.function) || one.function == Function::summarise ||
            (error.status() != PGKM_UNSUPPORTED && !is_short))
            throw;
        try { // peers want that, or have too little memory
            call_together(rows, one, shares[0].context);
        } catch (const Error &together) {
            // Of two lacks the first is the cause: together the rows only need more.
            throw is_short && is_short_of_memory(together.status()) ? error : together;
        }
    }
}

// --- all problems ---

// Restarts, and each k of a sweep; others do not overlap.
bool are_of_same_rows(const Call &call)
{
    return call.n_problems > 1 && call.problems[0].first_row == call.problems[1].first_row;
}

// Problems of the same rows: whichever context is free takes the next. Those for which it has too little memory after
// all are not done.
void call_apart(Rows &rows, const Call &call, std::vector<char> &done)
{
    std::vector<std::size_t> which(std::min(rows.contexts().count(), done.size()));
    std::iota(which.begin(), which.end(), std::size_t{0});
    std::atomic<std::size_t> next{0};
    rows.contexts().run(which, [&](std::size_t context, PgkmError *error) {
        PgkmStatus status = PGKM_OK;
        for (std::size_t i; status == PGKM_OK && (i = next.fetch_add(1)) < done.size();) {
            status = call_on(context, rows, call_of_one(call, static_cast<std::int64_t>(i)), error);
            done[i] = status == PGKM_OK ? 1 : 0;
            if (is_short_of_memory(status)) {
                rows.unload_gathered(context);
                status = set_error(error, PGKM_OK, "");
            }
        }
        return status;
    });
}

// Those problems whose rows lie on one context each, all contexts at once.
void call_whole(Rows &rows, Call &call, std::vector<char> &done)
{
    struct Part {
        CallRoom room;
        std::vector<std::int64_t> of, first_rows; // as the context counts them
    };
    std::vector<Part> parts(rows.contexts().count());
    for (std::int64_t i = 0; i < call.n_problems; ++i)
        if (const std::vector<Share> shares = rows.shares_of(call.problems[i]); shares.size() == 1) {
            Part &part = parts[shares[0].context];
            part.of.push_back(i);
            part.first_rows.push_back(shares[0].problem.first_row);
            done[static_cast<std::size_t>(i)] = 1;
        }
    std::vector<std::size_t> which;
    for (std::size_t context = 0; context < parts.size(); ++context) {
        auto &[room, of, first_rows] = parts[context];
        room.call = call;
        room.make(of.size());
        for (std::size_t i = 0; i < of.size(); ++i) {
            room.set(i, call_of_one(call, of[i]));
            room.call.problems[i].first_row = first_rows[i];
        }
        if (!of.empty())
            which.push_back(context);
    }
    rows.contexts().run(which, [&](std::size_t context, PgkmError *error) {
        auto &[room, of, first_rows] = parts[context];
        const PgkmStatus status = run_inner(rows, rows.data(context, error), room.call, error);
        Results results(rows.shape());
        for (std::size_t i = 0; has_results(status, call) && i < of.size(); ++i)
            results.give(room.call, static_cast<std::int64_t>(i), call, of[i], true);
        return status;
    });
}

// --- the table ---

PgkmStatus run(PgkmData *data, Call call, PgkmError *error)
{
    if (data == nullptr) // asked whether reduce() is there
        return set_error(error, PGKM_OK, "");
    return guarded(error, [&] {
        Rows &rows = *reinterpret_cast<Rows *>(data);
        std::vector<char> done(static_cast<std::size_t>(call.n_problems), 0);
        const bool same = are_of_same_rows(call);
        if (call.function == Function::fit)
            rows.make_room_for_fit();
        if (!same)
            call_whole(rows, call, done);
        else if (call.function != Function::summarise && call.function != Function::assign &&
                 have_room({call.problems[0].n_rows, rows.shape().d, rows.shape().element},
                           static_cast<std::int64_t>(rows.contexts().count()), rows.contexts().device_memory()))
            call_apart(rows, call, done);
        for (std::size_t i = 0; i < done.size(); ++i)
            if (done[i] == 0)
                call_one(rows, call_of_one(call, static_cast<std::int64_t>(i)), same);
    });
}

void close(PgkmContext *context)
{
    delete reinterpret_cast<Contexts *>(context);
}

PgkmStatus load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        *data = reinterpret_cast<PgkmData *>(new Rows(*reinterpret_cast<Contexts *>(context), *points));
    });
}

void unload(PgkmData *data)
{
    delete reinterpret_cast<Rows *>(data);
}

} // namespace

PgkmStatus open(const PgkmBackend &inner, const PgkmOpen &options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] { *context = reinterpret_cast<PgkmContext *>(new Contexts(inner, options)); });
}

std::uint64_t device_memory(PgkmContext *context)
{
    return reinterpret_cast<Contexts *>(context)->device_memory();
}

bool have_room(const RowShape &rows, std::int64_t contexts, std::uint64_t device_memory)
{
    const std::int64_t most = (rows.n + contexts - 1) / contexts; // of their own
    return static_cast<std::uint64_t>(most + 4 * rows.n) * rows.row_bytes() <= device_memory;
}

const PgkmBackend *table()
{
    static const PgkmBackend table = CallTable<run>::table("spread", close, load, unload);
    return &table;
}

} // namespace pgkm::spread
