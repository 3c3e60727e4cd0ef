#include "reference/reference.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "reference/mixture.hpp"
#include "reference/moments.hpp"
#include "reference/reduction.hpp"
#include "reference/seed.hpp"
#include "backend/update.hpp"

namespace pgkm {
namespace {

// What hides behind PgkmContext and PgkmData here.
struct Context {
    PgkmHost host;
};

struct Data {
    PgkmHost host;
    PgkmPoints points;
};

Context *self(PgkmContext *context)
{
    return reinterpret_cast<Context *>(context);
}
Data *self(PgkmData *data)
{
    return reinterpret_cast<Data *>(data);
}

void poll(const Data &data)
{
    if (data.host.cancelled != nullptr && data.host.cancelled(data.host.arg) != 0)
        throw Error(PGKM_CANCELLED, "cancelled");
}

// Calls body(T{}) with the points' element type.
template <typename Body>
void with_element(const Data &data, Body &&body)
{
    if (data.points.element == PGKM_FLOAT32)
        body(float{});
    else
        body(double{});
}

// ---- statistics ----

template <typename T>
void summarise_problem(const PgkmPoints &points, const PgkmProblem &problem, bool want_moments, PgkmSummary &out)
{
    const auto *values = static_cast<const T *>(points.values) + problem.first_row * points.d;
    const double *weights = points.weights == nullptr ? nullptr : points.weights + problem.first_row;
    out.max_weight = weights == nullptr ? 1.0 : *std::max_element(weights, weights + problem.n_rows);
    for (std::int32_t f = 0; f < points.d; ++f) {
        out.min[f] = std::numeric_limits<double>::infinity();
        out.max[f] = -out.min[f];
        for (std::int64_t i = 0; i < problem.n_rows; ++i) {
            const double value = static_cast<double>(values[i * points.d + f]);
            out.min[f] = std::min(out.min[f], value);
            out.max[f] = std::max(out.max[f], value);
        }
        if (!want_moments)
            continue;
        const MomentScale scale = moment_scale(out.min[f], out.max[f]);
        Int128 sum = 0, square = 0;
        for (std::int64_t i = 0; i < problem.n_rows; ++i) {
            const double centred = static_cast<double>(values[i * points.d + f]) - scale.middle;
            const Limbs limbs = quantise_square(centred * centred, power_of_two(scale.square_exponent));
            sum += quantise(centred, power_of_two(scale.value_exponent));
            square += join_limbs(limbs.hi, limbs.lo);
        }
        const Moments moments = moments_of(scale, sum, square, problem.n_rows);
        out.mean[f] = moments.mean;
        out.variance[f] = moments.variance;
    }
}

// ---- one assignment ----

template <typename T>
void assign_problem(const PgkmPoints &points, const PgkmProblem &problem, PgkmAssignment &out)
{
    const std::int32_t d = points.d;
    const auto *values = static_cast<const T *>(points.values);
    const auto *centroids = static_cast<const T *>(problem.centroids);
    Sums sums;
    sums.reset(problem.k, d);
    std::vector<Int128> within(static_cast<std::size_t>(problem.k), 0);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(problem.k), 0);
    for (std::int64_t i = 0; i < problem.n_rows; ++i) {
        const std::int64_t row = problem.first_row + i;
        double best = std::numeric_limits<double>::infinity();
        std::int32_t label = 0;
        for (std::int32_t j = 0; j < problem.k; ++j) {
            const double distance = exact_distance(values + row * d, centroids + std::int64_t{j} * d, d);
            if (distance < best) {
                best = distance;
                label = j;
            }
        }
        const auto cluster = static_cast<std::size_t>(label);
        sums.masses[cluster] += row_mass(points, problem, row);
        for (std::int32_t f = 0; f < d; ++f)
            sums.totals[cluster * static_cast<std::size_t>(d) + static_cast<std::size_t>(f)] +=
                row_feature<T>(points, problem, row, f);
        if (out.within != nullptr) {
            const double weighted = points.weights == nullptr ? best : points.weights[row] * best;
            const Limbs limbs = quantise_square(weighted, power_of_two(problem.distance_exponent));
            within[cluster] += join_limbs(limbs.hi, limbs.lo);
        }
        ++sizes[cluster];
        if (out.labels != nullptr)
            out.labels[i] = label;
        if (out.distances != nullptr)
            out.distances[i] = best;
    }
    for (std::size_t j = 0; j < sizes.size(); ++j) {
        if (out.masses != nullptr)
            out.masses[j] = split(sums.masses[j]);
        if (out.within != nullptr)
            out.within[j] = split(within[j]);
        if (out.sizes != nullptr)
            out.sizes[j] = sizes[j];
    }
    if (out.totals != nullptr)
        std::transform(sums.totals.begin(), sums.totals.end(), out.totals, split);
}

// ---- Lloyd's iterations ----

template <typename T>
void fit_problem(const Data &data, PgkmProblem &problem, const PgkmFitParams &params)
{
    const PgkmPoints &points = data.points;
    const auto n = static_cast<std::size_t>(problem.n_rows);
    std::vector<std::int32_t> labels(n), previous(n, -1);
    std::vector<double> distances(n);
    Sums sums;
    std::vector<PgkmInt128> totals(static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(points.d));
    std::vector<PgkmInt128> masses(static_cast<std::size_t>(problem.k));
    problem.n_iter = 0;
    problem.converged = 0;
    problem.shift = 0.0;
    while (problem.n_iter < params.max_iter && problem.converged == 0) {
        poll(data);
        PgkmAssignment out = {labels.data(), distances.data(), totals.data(), masses.data(), nullptr, nullptr};
        assign_problem<T>(points, problem, out);
        sums.reset(problem.k, points.d);
        std::transform(totals.begin(), totals.end(), sums.totals.begin(), join);
        std::transform(masses.begin(), masses.end(), sums.masses.begin(), join);
        std::vector<FarRow> far;
        for (std::size_t i = 0; i < n; ++i)
            if (distances[i] > 0.0)
                far.push_back({distances[i], static_cast<std::int64_t>(i), labels[i]});
        relocate_empty_clusters<T>(points, problem, far, sums);
        problem.shift = update_centroids<T>(problem, points.d, params.metric, sums);
        ++problem.n_iter;
        problem.converged = labels == previous || problem.shift <= problem.tol;
        previous = labels;
    }
}

// ---- the table ----

PgkmStatus reference_probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error)
{
    return guarded(error, [&] {
        *count = 1;
        if (capacity > 0) {
            devices[0] = {};
            devices[0].usable = 1;
            devices[0].units = 1;
            std::snprintf(devices[0].name, sizeof devices[0].name, "reference");
        }
    });
}

const char *const *reference_strategies(const char *)
{
    static const char *const none[] = {nullptr};
    return none;
}

PgkmStatus reference_open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    return guarded(error, [&] { *context = reinterpret_cast<PgkmContext *>(new Context{options->host}); });
}

void reference_close(PgkmContext *context)
{
    delete self(context);
}

PgkmStatus reference_load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    return guarded(error, [&] { *data = reinterpret_cast<PgkmData *>(new Data{self(context)->host, *points}); });
}

void reference_unload(PgkmData *data)
{
    delete self(data);
}

PgkmStatus reference_summarise(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                               std::int32_t want_moments, PgkmSummary *summaries, PgkmError *error)
{
    return guarded(error, [&] {
        with_element(*self(data), [&](auto element) {
            for (std::int64_t p = 0; p < n_problems; ++p)
                summarise_problem<decltype(element)>(self(data)->points, problems[p], want_moments != 0, summaries[p]);
        });
    });
}

PgkmStatus reference_seed(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params,
                          PgkmError *error)
{
    return guarded(error, [&] {
        with_element(*self(data), [&](auto element) {
            for (std::int64_t p = 0; p < n_problems; ++p) {
                poll(*self(data));
                reference_seed_problem<decltype(element)>(self(data)->points, problems[p], *params);
            }
        });
    });
}

PgkmStatus reference_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams *params,
                         PgkmError *error)
{
    return guarded(error, [&] {
        with_element(*self(data), [&](auto element) {
            for (std::int64_t p = 0; p < n_problems; ++p)
                fit_problem<decltype(element)>(*self(data), problems[p], *params);
        });
    });
}

PgkmStatus reference_assign(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                            PgkmAssignment *assignments, PgkmError *error)
{
    return guarded(error, [&] {
        with_element(*self(data), [&](auto element) {
            for (std::int64_t p = 0; p < n_problems; ++p) {
                poll(*self(data));
                assign_problem<decltype(element)>(self(data)->points, problems[p], assignments[p]);
            }
        });
    });
}

PgkmStatus reference_moments(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments,
                             PgkmError *error)
{
    return guarded(error, [&] {
        for (std::int64_t p = 0; p < n_problems; ++p)
            with_element(*self(data), [&](auto element) {
                reference_moments_of<decltype(element)>(self(data)->points, problems[p], moments[p]);
            });
    });
}

PgkmStatus reference_em_step(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                             const PgkmMixture *mixtures, PgkmMixtureSums *sums, PgkmError *error)
{
    return guarded(error, [&] {
        for (std::int64_t p = 0; p < n_problems; ++p)
            with_element(*self(data), [&](auto element) {
                reference_em_step_of<decltype(element)>(self(data)->points, problems[p], mixtures[p], sums[p]);
            });
    });
}

PgkmStatus reference_reduce(PgkmData *data, const PgkmProblem *problems, std::int64_t n_problems,
                            const PgkmReduction *reduction, PgkmReduced *reduced, PgkmError *error)
{
    return guarded(error, [&] {
        for (std::int64_t p = 0; p < n_problems; ++p)
            with_element(*self(data), [&](auto element) {
                reference_reduce_of<decltype(element)>(self(data)->points, problems[p], *reduction, reduced[p]);
            });
    });
}

} // namespace

const PgkmBackend *reference_backend()
{
    static const PgkmBackend table = {PGKM_BACKEND_ABI,
                                      sizeof(PgkmBackend),
                                      "reference",
                                      reference_probe,
                                      reference_strategies,
                                      reference_open,
                                      reference_close,
                                      reference_load,
                                      reference_unload,
                                      reference_summarise,
                                      reference_seed,
                                      reference_fit,
                                      reference_assign,
                                      reference_moments,
                                      reference_em_step,
                                      reference_reduce,
                                      nullptr};
    return &table;
}

} // namespace pgkm
