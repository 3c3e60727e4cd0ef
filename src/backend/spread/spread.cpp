// spread.cpp - the functions of the table: each cuts problems into shares and puts together what comes of them.
#include "backend/spread/spread.hpp"

#include <algorithm>
#include <iterator>

#include "backend/spread/calls.hpp"
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

// By peers: each has arrays of its own, and all come to the same.
void summarise_by_peers(Rows &rows, const Shares::Rest &rest, std::int64_t n_rows, std::int32_t want_moments,
                        PgkmSummary &summary)
{
    const std::size_t d = size_of(rows.points().d);
    std::vector<std::vector<double>> arrays(rest.shares.size());
    std::vector<PgkmSummary> found;
    for (std::vector<double> &own : arrays) {
        own.resize(4 * d);
        found.push_back({own.data(), own.data() + d, own.data() + 2 * d, own.data() + 3 * d, 0.0});
    }
    call_peers(rows, rest.shares, n_rows,
               [&](const PgkmBackend &inner, PgkmData *data, const PgkmProblem &own, std::size_t share,
                   PgkmError *error) { return inner.summarise(data, &own, 1, want_moments, &found[share], error); });
    std::copy_n(found[0].min, d, summary.min);
    std::copy_n(found[0].max, d, summary.max);
    if (want_moments != 0) {
        std::copy_n(found[0].mean, d, summary.mean);
        std::copy_n(found[0].variance, d, summary.variance);
    }
    summary.max_weight = found[0].max_weight;
}

PgkmStatus spread_summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                            std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        Rows &rows = self(data);
        Shares shares(rows, problems, n_problems, always);
        call_contexts(
            rows, shares, [&](const PgkmBackend &inner, PgkmData *there, Shares::OnContext &on, PgkmError *why) {
                std::vector<PgkmSummary> found;
                for (const Shares::Origin &of : on.of)
                    found.push_back(summaries[of.problem]);
                const PgkmStatus status =
                    inner.summarise(there, on.problems.data(), std::ssize(found), want_moments, found.data(), why);
                for (std::size_t i = 0; i < found.size(); ++i)
                    summaries[on.of[i].problem].max_weight = found[i].max_weight;
                return status;
            });
        for (const Shares::Rest &rest : shares.rest())
            summarise_by_peers(rows, rest, problems[rest.problem].n_rows, want_moments, summaries[rest.problem]);
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

void take_result(const PgkmProblem &from, PgkmProblem &to)
{
    to.k = from.k;
    to.n_iter = from.n_iter;
    to.converged = from.converged;
    to.shift = from.shift;
}

std::size_t bytes_of_centroids(const Rows &rows, const PgkmProblem &problem)
{
    return size_of(problem.k) * size_of(rows.points().d) * rows.element_bytes();
}

// Calls call(inner, data, problem, 1, error), which reads or writes centroids, for each share of a problem. All peers
// begin with the same ones and come to the same.
template <typename Call>
void call_peers_of(Rows &rows, const std::vector<Share> &shares, PgkmProblem &problem, Call &&call)
{
    char *const given = static_cast<char *>(problem.centroids);
    std::vector<std::vector<char>> centroids(shares.size(),
                                             std::vector<char>(given, given + bytes_of_centroids(rows, problem)));
    PgkmProblem first = {};
    call_peers(rows, shares, problem.n_rows,
               [&](const PgkmBackend &inner, PgkmData *data, PgkmProblem &own, std::size_t share, PgkmError *error) {
                   own.centroids = centroids[share].data();
                   const PgkmStatus status = call(inner, data, &own, 1, error);
                   if (share == 0)
                       first = own;
                   return status;
               });
    std::copy(centroids[0].begin(), centroids[0].end(), given);
    take_result(first, problem);
}

// The same by one context that has all rows, where the peers want that or have too little memory.
template <typename Call>
void call_together(Rows &rows, const Shares::Rest &rest, PgkmProblem &problem, Call &&call)
{
    try {
        return call_peers_of(rows, rest.shares, problem, call);
    } catch (const Error &error) {
        if (error.status() != PGKM_UNSUPPORTED && error.status() != PGKM_LIMIT && error.status() != PGKM_OUT_OF_MEMORY)
            throw;
    }
    char *const centroids = static_cast<char *>(problem.centroids);
    const std::vector<char> given(centroids, centroids + bytes_of_centroids(rows, problem));
    call_whole(rows, &problem, 1,
               [&](const PgkmBackend &inner, PgkmData *data, PgkmProblem *own, std::int64_t, const Shares::Origin *,
                   PgkmError *error) {
                   std::copy(given.begin(), given.end(), centroids); // an attempt may have ended with others
                   const PgkmStatus status = call(inner, data, own, 1, error);
                   if (status == PGKM_OK)
                       take_result(*own, problem);
                   return status;
               });
}

// Calls call(inner, data, problems, count, error) for the problems of each context, all contexts at once; then for each
// problem whose rows lie on several.
template <typename Call>
void call_in_shares(Rows &rows, PgkmProblem *problems, std::int64_t n_problems, Call &&call)
{
    Shares shares(rows, problems, n_problems, always);
    call_contexts(rows, shares, [&](const PgkmBackend &inner, PgkmData *data, Shares::OnContext &on, PgkmError *error) {
        const PgkmStatus status = call(inner, data, on.problems.data(), std::ssize(on.problems), error);
        for (std::size_t i = 0; status == PGKM_OK && i < on.of.size(); ++i)
            take_result(on.problems[i], problems[on.of[i].problem]);
        return status;
    });
    for (const Shares::Rest &rest : shares.rest())
        call_together(rows, rest, problems[rest.problem], call);
}

// Restarts and each k of a sweep by one context each, where these have room for all rows.
PgkmStatus spread_seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                       PgkmError *error)
{
    const auto seed = [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count,
                          PgkmError *why) {
        PgkmSeedParams all = *params;
        all.restart += own[0].restart; // of groups 0
        return inner.seed(there, own, count, &all, why);
    };
    return guarded(error, [&] {
        Rows &rows = self(data);
        if (!are_of_same_rows(problems, n_problems) || !rows.have_room(problems[0]))
            return call_in_shares(rows, problems, n_problems, seed);
        call_whole(rows, problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count,
                       const Shares::Origin *of, PgkmError *why) {
                       const PgkmStatus status = seed(inner, there, own, count, why);
                       for (std::int64_t i = 0; status == PGKM_OK && i < count; ++i)
                           problems[of[i].problem].k = own[i].k;
                       return status;
                   });
    });
}

void fit_in_shares(Rows &rows, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams &params)
{
    call_in_shares(rows, problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *data, PgkmProblem *own, std::int64_t count,
                       PgkmError *error) { return inner.fit(data, own, count, &params, error); });
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
        char *const given = static_cast<char *>(whole.centroids);
        std::vector<char> centroids(given, given + bytes_of_centroids(rows, whole));
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
