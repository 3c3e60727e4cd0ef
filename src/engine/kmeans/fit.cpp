#include "engine/kmeans/fit.hpp"

#include <algorithm>
#include <cstdio>

#include "engine/kmeans/fitter.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/quality.hpp"
#include "engine/kmeans/resident.hpp"
#include "engine/backends/session.hpp"
#include "engine/job/work.hpp"

namespace pgkm {
namespace {

// A model without its arrays: a sweep has many, and their sum may pass every limit.
Model figures_of(const Model &model)
{
    Model figures;
    figures.k = model.k;
    figures.d = model.d;
    figures.n = model.n;
    figures.inertia = model.inertia;
    figures.n_iter = model.n_iter;
    figures.converged = model.converged;
    figures.quality = model.quality;
    return figures;
}

// The figures of one k after the other, up to the last that differs, with their quality.
template <typename T>
std::vector<Model> sweep(Workplace<T> &place, FitTask task, const PgkmFitRequest &request, int threads, Monitor &monitor)
{
    std::vector<Model> models;
    const std::int64_t last = last_fit(request);
    models.reserve(static_cast<std::size_t>(last - request.k + 1));
    task.want_labels = true;
    task.want_distances = false;
    for (std::int64_t k = request.k; k <= last; ++k) {
        task.k = {k};
        Model model = std::move(fit_loaded(place.rows, task, place.session, monitor)[0]);
        model.quality = quality_of(place.rows.points(), model, threads, monitor.host());
        models.push_back(figures_of(model));
    }
    return models;
}

template <typename T>
std::vector<Model> fit_at(Workplace<T> &place, const PgkmFitRequest &request, int threads, Monitor &monitor)
{
    FitTask task = {request.options, {}, request.want_labels != 0, request.want_distances != 0};
    if (request.k_last != 0)
        return sweep(place, task, request, threads, monitor);
    for (const PgkmGroup &group : groups_of(request))
        task.k.push_back(group.k);
    return fit_loaded(place.rows, task, place.session, monitor);
}

template <typename T>
std::vector<Model> fit_as(const BackendChoice &choice, const PgkmOpen &open, const PgkmFitRequest &request,
                          Monitor &monitor)
{
    monitor.enter(PGKM_LOADING);
    if (request.resident == nullptr) {
        Workplace<T> place(choice, open, request, monitor);
        return fit_at(place, request, open.threads, monitor);
    }
    try {
        auto &place = request.resident->workplace<T>(choice, open, request, monitor);
        std::vector<Model> models = fit_at(place, request, open.threads, monitor);
        // Transformed rows are a copy, which would go on taking memory.
        if (request.options.standardize != 0 || request.options.metric == PGKM_COSINE)
            request.resident->drop();
        request.resident->rest();
        return models;
    } catch (...) {
        request.resident->drop();
        request.resident->rest();
        throw;
    }
}

std::vector<Model> fit_on(const BackendChoice &choice, const PgkmFitRequest &request, Monitor &monitor, const Work &work)
{
    monitor.begin_backend(choice.table->name);
    // What stays serves fits of any size: all threads, or the next one would need another workplace.
    const Work lasting = {INFINITY, INFINITY};
    PgkmOpen open = open_options(request.settings, monitor.host(), request.resident == nullptr ? work : lasting);
    open.segment = request.segment;
    return request.points.element == PGKM_FLOAT32 ? fit_as<float>(choice, open, request, monitor)
                                                  : fit_as<double>(choice, open, request, monitor);
}

void check_memory(const PgkmFitRequest &request, const std::vector<PgkmGroup> &groups)
{
    const std::uint64_t need = pgkm_request_estimate(&request);
    const std::uint64_t limit = request.settings.memory_limit;
    if (limit == 0 || need <= limit)
        return;
    std::int64_t n = 0, k = 0;
    for (const PgkmGroup &group : groups) {
        n += group.n;
        k = std::max(k, group.k);
    }
    char text[256];
    std::snprintf(text, sizeof text,
                  "clustering %lld rows of %d features into %lld clusters needs an estimated %llu kB, more than "
                  "pg_kmeans.memory_limit (%llu kB)",
                  static_cast<long long>(n), request.points.d, static_cast<long long>(k),
                  static_cast<unsigned long long>(need / 1024), static_cast<unsigned long long>(limit / 1024));
    throw Error(PGKM_LIMIT, text);
}

void check_sweep(const PgkmFitRequest &request)
{
    if (request.k_last == 0)
        return;
    if (request.n_groups > 0 || request.options.init == PGKM_INIT_GIVEN)
        throw Error(PGKM_INVALID, "a sweep has neither groups nor given centroids");
    if (request.k_last < request.k)
        throw Error(PGKM_INVALID, "a sweep must not end before it begins");
    check_options(request.options, request.k_last, request.points.d);
}

} // namespace

std::vector<PgkmGroup> groups_of(const PgkmFitRequest &request)
{
    if (request.n_groups > 0)
        return {request.groups, request.groups + request.n_groups};
    return {{request.points.values, request.points.weights, request.points.n, request.k}};
}

std::int64_t last_fit(const PgkmFitRequest &request)
{
    return std::max(request.k, std::min(request.k_last, request.points.n));
}

Fits fit_models(const PgkmFitRequest &request, Monitor &monitor)
{
    const std::vector<PgkmGroup> groups = groups_of(request);
    for (const PgkmGroup &group : groups) {
        if (group.n < 1 || request.points.d < 1)
            throw Error(PGKM_INVALID, "there are no rows to cluster");
        check_options(request.options, group.k, request.points.d);
    }
    check_sweep(request);
    check_memory(request, groups);
    const Work work = work_of(request);
    Fits fits;
    on_first_backend(request.settings, work, nullptr, &fits.notice, [&](const BackendChoice &choice) {
        fits.models = fit_on(choice, request, monitor, work);
        fits.backend = choice.table->name;
    });
    return fits;
}

} // namespace pgkm
