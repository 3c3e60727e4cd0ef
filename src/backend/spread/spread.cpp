// spread.cpp - the functions of the table: each cuts problems into shares and puts together what comes of them.
#include "backend/spread/spread.hpp"

#include <algorithm>
#include <iterator>

#include "backend/spread/calls.hpp"
#include "backend/spread/exchange.hpp"
#include "backend/spread/model_sums.hpp"
#include "numeric/error.hpp"

namespace pgkm::spread {
namespace {

std::size_t size_of(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

// --- the table ---

PgkmStatus spread_probe(PgkmDevice *, std::int32_t, std::int32_t *count, PgkmError *error)
{
    *count = 0;
    return set_error(error, PGKM_OK, "");
}

const char *const *spread_strategies(const char *)
{
    static const char *const none[] = {nullptr};
    return none;
}

PgkmStatus spread_open(const PgkmOpen *, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return set_error(error, PGKM_UNSUPPORTED, "several devices are opened by spread::open()");
}

void spread_close(PgkmContext *context)
{
    delete reinterpret_cast<Contexts *>(context);
}

PgkmStatus spread_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        *data = reinterpret_cast<PgkmData *>(new Rows(*reinterpret_cast<Contexts *>(context), *points));
    });
}

void spread_unload(PgkmData *data)
{
    delete reinterpret_cast<Rows *>(data);
}

// --- statistics and labels ---

struct Ranges {
    PgkmSummary view;
    std::vector<double> min, max;
};

// Means and variances cannot be merged to the bits of one device.
PgkmStatus spread_summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                            std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        call_shares<Ranges>(
            self(data), problems, n_problems, [&](std::int64_t) { return want_moments != 0; },
            [&](const Shares::Origin &of, const PgkmProblem &) {
                Ranges made = {summaries[of.problem], {}, {}};
                if (of.whole)
                    return made;
                made.view.min = room(made.min, made.view.min, self(data).points().d);
                made.view.max = room(made.max, made.view.max, self(data).points().d);
                return made;
            },
            [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, Ranges *found,
                PgkmError *why) {
                std::vector<PgkmSummary> views = views_of(found, count);
                const PgkmStatus status = inner.summarise(there, own, count, want_moments, views.data(), why);
                for (std::int64_t i = 0; i < count; ++i)
                    found[i].view.max_weight = views[size_of(i)].max_weight;
                return status;
            },
            [&](std::int64_t problem, bool first, const Ranges &found) {
                PgkmSummary &to = summaries[problem];
                for (std::size_t f = 0; f < found.min.size(); ++f) {
                    to.min[f] = first ? found.min[f] : std::min(to.min[f], found.min[f]);
                    to.max[f] = first ? found.max[f] : std::max(to.max[f], found.max[f]);
                }
                to.max_weight = first ? found.view.max_weight : std::max(to.max_weight, found.view.max_weight);
            });
    });
}

struct Assigned {
    PgkmAssignment view;
    std::vector<PgkmInt128> totals, masses, within;
    std::vector<std::int64_t> sizes;
};

PgkmStatus spread_assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                         PgkmAssignment *assignments, PgkmError *error)
{
    if (are_of_same_rows(problems, n_problems)) { // one after the other, each in shares
        for (std::int64_t i = 0; i < n_problems; ++i)
            if (spread_assign(data, problems + i, 1, assignments + i, error) != PGKM_OK)
                break;
        return error->status;
    }
    return guarded(error, [&] {
        Rows &rows = self(data);
        call_shares<Assigned>(
            rows, problems, n_problems, [](std::int64_t) { return false; },
            [&](const Shares::Origin &of, const PgkmProblem &problem) {
                Assigned made = {assignments[of.problem], {}, {}, {}, {}};
                if (of.whole)
                    return made;
                PgkmAssignment &view = made.view;
                view.labels = behind(view.labels, of.skip);
                view.distances = behind(view.distances, of.skip);
                view.totals = room(made.totals, view.totals, std::int64_t{problem.k} * rows.points().d);
                view.masses = room(made.masses, view.masses, problem.k);
                view.within = room(made.within, view.within, problem.k);
                view.sizes = room(made.sizes, view.sizes, problem.k);
                return made;
            },
            [](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, Assigned *found,
               PgkmError *why) {
                std::vector<PgkmAssignment> views = views_of(found, count);
                return inner.assign(there, own, count, views.data(), why);
            },
            [&](std::int64_t problem, bool first, const Assigned &found) {
                const PgkmAssignment &to = assignments[problem];
                add(to.totals, found.totals, first);
                add(to.masses, found.masses, first);
                add(to.within, found.within, first);
                add(to.sizes, found.sizes, first);
            });
    });
}

// --- first centroids and iterations ---

PgkmStatus spread_seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                       PgkmError *error)
{
    return guarded(error, [&] {
        call_whole(self(data), problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count,
                       const Shares::Origin *of, PgkmError *why) {
                       PgkmSeedParams all = *params;
                       all.restart += own[0].restart; // of groups 0
                       const PgkmStatus status = inner.seed(there, own, count, &all, why);
                       for (std::int64_t i = 0; status == PGKM_OK && i < count; ++i)
                           problems[of[i].problem].k = own[i].k;
                       return status;
                   });
    });
}

void take_result(const PgkmProblem &from, PgkmProblem &to)
{
    to.n_iter = from.n_iter;
    to.converged = from.converged;
    to.shift = from.shift;
}

// All peers begin with the same centroids and come to the same ones; the caller's are the first one's.
void fit_by_peers(Rows &rows, const std::vector<Share> &shares, PgkmProblem &problem, const PgkmFitParams &params)
{
    Contexts &contexts = rows.contexts();
    Exchange exchange(static_cast<std::int32_t>(shares.size()), problem.n_rows, contexts.host(), contexts.failed());
    const std::size_t bytes = size_of(problem.k) * size_of(rows.points().d) * rows.element_bytes();
    std::vector<PgkmProblem> own;
    std::vector<std::vector<char>> centroids(shares.size());
    std::vector<std::size_t> which;
    std::vector<std::size_t> share_on(contexts.count());
    for (std::size_t i = 0; i < shares.size(); ++i) {
        PgkmProblem &one = own.emplace_back(shares[i].problem);
        one.peers = exchange.peers_of(static_cast<std::int32_t>(i));
        if (i > 0) {
            const char *const given = static_cast<const char *>(problem.centroids);
            centroids[i].assign(given, given + bytes);
            one.centroids = centroids[i].data();
        }
        share_on[shares[i].context] = i;
        which.push_back(shares[i].context);
    }
    contexts.run(which, [&](std::size_t context, PgkmError *error) {
        PgkmData *const data = rows.data(context, error);
        if (data == nullptr)
            return error->status;
        const PgkmStatus status = contexts.inner().fit(data, &own[share_on[context]], 1, &params, error);
        return status == PGKM_CANCELLED && exchange.out_of_memory()
                   ? set_error(error, PGKM_OUT_OF_MEMORY, "out of memory")
                   : status;
    });
    take_result(own[0], problem);
}

void fit_in_shares(Rows &rows, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams &params)
{
    Shares shares(rows, problems, n_problems, always);
    rows.contexts().run(shares.contexts(), [&](std::size_t context, PgkmError *why) {
        Shares::OnContext &on = shares.on(context);
        PgkmData *const there = rows.data(context, why);
        return there == nullptr
                   ? why->status
                   : rows.contexts().inner().fit(there, on.problems.data(), std::ssize(on.problems), &params, why);
    });
    for (const std::size_t context : shares.contexts())
        for (std::size_t i = 0; i < shares.on(context).of.size(); ++i)
            take_result(shares.on(context).problems[i], problems[shares.on(context).of[i].problem]);
    for (const Shares::Rest &rest : shares.rest())
        fit_by_peers(rows, rest.shares, problems[rest.problem], params);
}

// Problems of the same rows, each by one context that has all of them. Says which it has fitted: not those for which
// the context had too little memory after all.
std::vector<char> fit_apart(Rows &rows, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams &params)
{
    std::vector<char> fitted(size_of(n_problems), 0);
    if (!rows.have_room(problems[0]))
        return fitted;
    deal(rows.contexts(), fitted.size(), [&](std::size_t context, std::size_t i, PgkmError *error) {
        PgkmProblem whole = problems[i];
        const std::size_t bytes = size_of(whole.k) * size_of(rows.points().d) * rows.element_bytes();
        char *const given = static_cast<char *>(whole.centroids);
        std::vector<char> centroids(given, given + bytes);
        PgkmData *const data = rows.gather(context, whole, error);
        whole.first_row = 0;
        whole.centroids = centroids.data();
        const PgkmStatus status =
            data == nullptr ? error->status : rows.contexts().inner().fit(data, &whole, 1, &params, error);
        if (status == PGKM_LIMIT || status == PGKM_OUT_OF_MEMORY) {
            rows.release(context);
            return set_error(error, PGKM_OK, "");
        }
        std::copy(centroids.begin(), centroids.end(), given);
        take_result(whole, problems[i]);
        fitted[i] = 1;
        return status;
    });
    return fitted;
}

PgkmStatus spread_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                      PgkmError *error)
{
    return guarded(error, [&] {
        Rows &rows = self(data);
        rows.give_back();
        if (!are_of_same_rows(problems, n_problems))
            return fit_in_shares(rows, problems, n_problems, *params);
        const std::vector<char> fitted = fit_apart(rows, problems, n_problems, *params);
        for (std::int64_t i = 0; i < n_problems; ++i)
            if (fitted[size_of(i)] == 0)
                fit_in_shares(rows, problems + i, 1, *params);
    });
}

PgkmStatus spread_reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                         const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
{
    if (data == nullptr) // asked whether the function is there
        return set_error(error, PGKM_OK, "");
    return guarded(error, [&] {
        call_whole(self(data), problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count,
                       const Shares::Origin *of, PgkmError *why) {
                       std::vector<PgkmReduced> views;
                       for (std::int64_t i = 0; i < count; ++i)
                           views.push_back(reduced[of[i].problem]);
                       const PgkmStatus status = inner.reduce(there, own, count, reduction, views.data(), why);
                       for (std::int64_t i = 0; i < count; ++i) // also of one that failed: which row it was
                           reduced[of[i].problem] = views[size_of(i)];
                       return status;
                   });
    });
}

} // namespace

PgkmStatus open(const PgkmBackend &inner, const PgkmOpen &options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] { *context = reinterpret_cast<PgkmContext *>(new Contexts(inner, options)); });
}

const PgkmBackend *table()
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI,  sizeof(PgkmBackend), "spread",       spread_probe,
                                      spread_strategies, spread_open,         spread_close,   spread_load,
                                      spread_unload,     spread_summarise,    spread_seed,    spread_fit,
                                      spread_assign,     spread_moments,      spread_em_step, spread_reduce};
    return &table;
}

} // namespace pgkm::spread
