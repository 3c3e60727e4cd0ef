// spread.cpp - the functions of the table: each cuts problems into pieces and puts together what comes of them.
#include "backend/spread/spread.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <type_traits>

#include "backend/spread/calls.hpp"
#include "backend/spread/exchange.hpp"
#include "backend/update.hpp"
#include "numeric/error.hpp"

namespace pgkm::spread {
namespace {

Places &self(PgkmContext *context)
{
    return *reinterpret_cast<Places *>(context);
}
Rows &self(PgkmData *data)
{
    return *reinterpret_cast<Rows *>(data);
}

std::size_t size_of(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

void add(PgkmInt128 *to, const std::vector<PgkmInt128> &from)
{
    for (std::size_t i = 0; to != nullptr && i < from.size(); ++i)
        to[i] = split(join(to[i]) + join(from[i]));
}

// The first piece sets what the others add to.
template <typename Number>
void add(Number *to, const std::vector<Number> &from, bool first)
{
    if (first && to != nullptr)
        std::fill_n(to, from.size(), Number{});
    if constexpr (std::is_same_v<Number, PgkmInt128>)
        add(to, from);
    else if (to != nullptr)
        std::transform(from.begin(), from.end(), to, to, std::plus<>());
}

// Room for what a piece adds, of as many numbers as are wanted.
template <typename Number>
Number *room(std::vector<Number> &own, const Number *wanted, std::int64_t count)
{
    if (wanted == nullptr)
        return nullptr;
    own.resize(size_of(count));
    return own.data();
}

template <typename V>
V *behind(V *array, std::int64_t skip)
{
    return array == nullptr ? nullptr : array + skip;
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
    delete reinterpret_cast<Places *>(context);
}

PgkmStatus spread_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] { *data = reinterpret_cast<PgkmData *>(new Rows(self(context), *points)); });
}

void spread_unload(PgkmData *data)
{
    delete reinterpret_cast<Rows *>(data);
}

// --- statistics and labels ---

struct Ranges {
    std::vector<double> min, max;
    double max_weight = 1.0;
};

void find_ranges(Rows &rows, const PgkmProblem *problems, std::int64_t n_problems, PgkmSummary *summaries)
{
    const auto d = size_of(rows.points().d);
    call_pieces<Ranges>(
        rows, problems, n_problems,
        [&](const Pieces::Origin &, const PgkmProblem &) {
            return Ranges{std::vector<double>(d), std::vector<double>(d)};
        },
        [](const PgkmBackend &inner, PgkmData *data, PgkmProblem *own, std::int64_t count, Ranges *found,
           PgkmError *error) {
            std::vector<PgkmSummary> views;
            for (std::int64_t i = 0; i < count; ++i)
                views.push_back({found[i].min.data(), found[i].max.data(), nullptr, nullptr, 1.0});
            const PgkmStatus status = inner.summarise(data, own, count, 0, views.data(), error);
            for (std::int64_t i = 0; i < count; ++i)
                found[i].max_weight = views[size_of(i)].max_weight;
            return status;
        },
        [&](std::int64_t problem, bool first, const Ranges &found) {
            PgkmSummary &to = summaries[problem];
            for (std::size_t f = 0; f < d; ++f) {
                to.min[f] = first ? found.min[f] : std::min(to.min[f], found.min[f]);
                to.max[f] = first ? found.max[f] : std::max(to.max[f], found.max[f]);
            }
            to.max_weight = first ? found.max_weight : std::max(to.max_weight, found.max_weight);
        });
}

PgkmStatus spread_summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                            std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        if (want_moments == 0)
            return find_ranges(self(data), problems, n_problems, summaries);
        call_whole(self(data), problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *there, std::vector<PgkmProblem> &own,
                       const std::vector<std::int64_t> &of, PgkmError *why) {
                       std::vector<PgkmSummary> views;
                       for (const std::int64_t problem : of)
                           views.push_back(summaries[problem]);
                       const PgkmStatus status =
                           inner.summarise(there, own.data(), std::ssize(own), 1, views.data(), why);
                       for (std::size_t i = 0; i < of.size(); ++i)
                           summaries[of[i]].max_weight = views[i].max_weight;
                       return status;
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
    return guarded(error, [&] {
        Rows &rows = self(data);
        call_pieces<Assigned>(
            rows, problems, n_problems,
            [&](const Pieces::Origin &of, const PgkmProblem &problem) {
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
                std::vector<PgkmAssignment> views;
                for (std::int64_t i = 0; i < count; ++i)
                    views.push_back(found[i].view);
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
                   [&](const PgkmBackend &inner, PgkmData *there, std::vector<PgkmProblem> &own,
                       const std::vector<std::int64_t> &of, PgkmError *why) {
                       const PgkmStatus status = inner.seed(there, own.data(), std::ssize(own), params, why);
                       for (std::size_t i = 0; status == PGKM_OK && i < of.size(); ++i)
                           problems[of[i]].k = own[i].k;
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

// All parts begin with the same centroids and come to the same ones; the caller's are the first part's.
void fit_in_parts(Rows &rows, const std::vector<Piece> &pieces, PgkmProblem &problem, const PgkmFitParams &params)
{
    Places &places = rows.places();
    Exchange exchange(static_cast<std::int32_t>(pieces.size()), problem.n_rows, places.host(), places.failed());
    const std::size_t bytes = size_of(problem.k) * size_of(rows.points().d) * rows.element_bytes();
    std::vector<PgkmProblem> parts;
    std::vector<std::vector<char>> centroids(pieces.size());
    std::vector<std::size_t> which;
    std::vector<std::size_t> part_on(places.count());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        PgkmProblem &part = parts.emplace_back(pieces[i].problem);
        part.peers = exchange.peers_of(static_cast<std::int32_t>(i));
        if (i > 0) {
            const char *const given = static_cast<const char *>(problem.centroids);
            centroids[i].assign(given, given + bytes);
            part.centroids = centroids[i].data();
        }
        part_on[pieces[i].place] = i;
        which.push_back(pieces[i].place);
    }
    places.run(which, [&](std::size_t place, PgkmError *error) {
        PgkmData *const data = rows.data(place, error);
        if (data == nullptr)
            return error->status;
        const PgkmStatus status = places.inner().fit(data, &parts[part_on[place]], 1, &params, error);
        return status == PGKM_CANCELLED && exchange.out_of_memory()
                   ? set_error(error, PGKM_OUT_OF_MEMORY, "out of memory")
                   : status;
    });
    take_result(parts[0], problem);
}

PgkmStatus spread_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                      PgkmError *error)
{
    return guarded(error, [&] {
        Rows &rows = self(data);
        rows.give_back();
        Pieces pieces(rows, problems, n_problems, false);
        rows.places().run(pieces.places(), [&](std::size_t place, PgkmError *why) {
            Pieces::OnPlace &on = pieces.on(place);
            PgkmData *const there = rows.data(place, why);
            return there == nullptr
                       ? why->status
                       : rows.places().inner().fit(there, on.problems.data(), std::ssize(on.problems), params, why);
        });
        for (const std::size_t place : pieces.places())
            for (std::size_t i = 0; i < pieces.on(place).of.size(); ++i)
                take_result(pieces.on(place).problems[i], problems[pieces.on(place).of[i].problem]);
        for (const Pieces::Rest &rest : pieces.rest())
            fit_in_parts(rows, rest.pieces, problems[rest.problem], *params);
    });
}

// --- sums in float64, and reductions ---

struct Moments {
    std::vector<double> sums, cross;
    PgkmMoments view;
};

PgkmStatus spread_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                          PgkmError *error)
{
    if (data == nullptr) // asked whether the function is there
        return set_error(error, PGKM_OK, "");
    return guarded(error, [&] {
        Rows &rows = self(data);
        const std::int64_t d = rows.points().d;
        call_pieces<Moments>(
            rows, problems, n_problems,
            [&](const Pieces::Origin &of, const PgkmProblem &) {
                Moments made = {{}, {}, moments[of.problem]};
                if (of.whole)
                    return made;
                made.view.sums = room(made.sums, made.view.sums, d);
                made.view.cross = room(made.cross, made.view.cross, d * (d + 1) / 2);
                return made;
            },
            [](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, Moments *found,
               PgkmError *why) {
                std::vector<PgkmMoments> views;
                for (std::int64_t i = 0; i < count; ++i)
                    views.push_back(found[i].view);
                const PgkmStatus status = inner.moments(there, own, count, views.data(), why);
                for (std::int64_t i = 0; i < count; ++i)
                    found[i].view.mass = views[size_of(i)].mass;
                return status;
            },
            [&](std::int64_t problem, bool first, const Moments &found) {
                moments[problem].mass = (first ? 0.0 : moments[problem].mass) + found.view.mass;
                add(moments[problem].sums, found.sums, first);
                add(moments[problem].cross, found.cross, first);
            });
    });
}

struct MixtureSums {
    std::vector<double> masses, means, squares;
    PgkmMixture mixture;
    PgkmMixtureSums view;
};

std::int64_t squares_of(const PgkmMixture &mixture, std::int64_t d)
{
    switch (mixture.covariance_type) {
    case PGKM_COVARIANCE_FULL:
        return mixture.k * (d * (d + 1) / 2);
    case PGKM_COVARIANCE_TIED:
        return 0;
    default:
        return mixture.k * d;
    }
}

PgkmStatus spread_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                          const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    if (data == nullptr) // asked whether the function is there
        return set_error(error, PGKM_OK, "");
    return guarded(error, [&] {
        Rows &rows = self(data);
        const std::int64_t d = rows.points().d;
        const bool few_rows = std::any_of(problems, problems + n_problems, [&](const PgkmProblem &problem) {
            return squares_of(mixtures[&problem - problems], d) > problem.n_rows * d;
        });
        if (few_rows) // to add up the pieces' sums would take longer than to bring the rows together
            return call_whole(rows, problems, n_problems,
                              [&](const PgkmBackend &inner, PgkmData *there, std::vector<PgkmProblem> &own,
                                  const std::vector<std::int64_t> &of, PgkmError *why) {
                                  std::vector<PgkmMixture> given;
                                  std::vector<PgkmMixtureSums> views;
                                  for (const std::int64_t problem : of) {
                                      given.push_back(mixtures[problem]);
                                      views.push_back(sums[problem]);
                                  }
                                  const PgkmStatus status = inner.em_step(there, own.data(), std::ssize(own),
                                                                          given.data(), views.data(), why);
                                  for (std::size_t i = 0; i < of.size(); ++i)
                                      sums[of[i]].log_likelihood = views[i].log_likelihood;
                                  return status;
                              });
        call_pieces<MixtureSums>(
            rows, problems, n_problems,
            [&](const Pieces::Origin &of, const PgkmProblem &) {
                MixtureSums made = {{}, {}, {}, mixtures[of.problem], sums[of.problem]};
                if (of.whole)
                    return made;
                made.mixture.labels = behind(made.mixture.labels, of.skip);
                made.view.labels = behind(made.view.labels, of.skip);
                made.view.masses = room(made.masses, made.view.masses, made.mixture.k);
                made.view.first = room(made.means, made.view.first, made.mixture.k * d);
                made.view.second = room(made.squares, made.view.second, squares_of(made.mixture, d));
                return made;
            },
            [&](const PgkmBackend &inner, PgkmData *there, PgkmProblem *own, std::int64_t count, MixtureSums *found,
                PgkmError *why) {
                std::vector<PgkmMixture> given;
                std::vector<PgkmMixtureSums> views;
                for (std::int64_t i = 0; i < count; ++i) {
                    given.push_back(found[i].mixture);
                    views.push_back(found[i].view);
                }
                const PgkmStatus status = inner.em_step(there, own, count, given.data(), views.data(), why);
                for (std::int64_t i = 0; i < count; ++i)
                    found[i].view.log_likelihood = views[size_of(i)].log_likelihood;
                return status;
            },
            [&](std::int64_t problem, bool first, const MixtureSums &found) {
                PgkmMixtureSums &to = sums[problem];
                to.log_likelihood = (first ? 0.0 : to.log_likelihood) + found.view.log_likelihood;
                add(to.masses, found.masses, first);
                add(to.first, found.means, first);
                add(to.second, found.squares, first);
            });
    });
}

PgkmStatus spread_reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                         const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
{
    if (data == nullptr) // asked whether the function is there
        return set_error(error, PGKM_OK, "");
    return guarded(error, [&] {
        call_whole(self(data), problems, n_problems,
                   [&](const PgkmBackend &inner, PgkmData *there, std::vector<PgkmProblem> &own,
                       const std::vector<std::int64_t> &of, PgkmError *why) {
                       std::vector<PgkmReduced> views;
                       for (const std::int64_t problem : of)
                           views.push_back(reduced[problem]);
                       const PgkmStatus status =
                           inner.reduce(there, own.data(), std::ssize(own), reduction, views.data(), why);
                       for (std::size_t i = 0; i < of.size(); ++i)
                           reduced[of[i]] = views[i];
                       return status;
                   });
    });
}

} // namespace

PgkmStatus open(const PgkmBackend &inner, const PgkmOpen &options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] { *context = reinterpret_cast<PgkmContext *>(new Places(inner, options)); });
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
