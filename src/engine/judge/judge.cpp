// judge.cpp - how good labels are that are given: the indices of each cluster and of all, the silhouettes of rows.
#include <algorithm>
#include <cmath>

#include "engine/kmeans/fitter.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/quality.hpp"
#include "engine/kmeans/sweep.hpp"
#include "engine/kmeans/work.hpp"
#include "engine/rows/batch_order.hpp"
#include "engine/rows/silhouette.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// Rows of each cluster that has so many whose silhouettes are taken: one has no standard error.
constexpr std::int64_t least_of_cluster = 2;

struct Judgement : Models {
    void get(std::int64_t, PgkmResult *result) const override
    {
        result->k = model.k;
        result->d = model.d;
        result->n = model.n;
        result->inertia = model.inertia;
        result->quality = model.quality;
        result->sizes = model.sizes.data();
        result->within_ss = model.within_ss.data();
        result->clusters = clusters.data();
        result->silhouettes = data_or_null(silhouettes);
    }

    Model model;
    std::vector<PgkmClusterQuality> clusters;   // k
    std::vector<PgkmRowSilhouette> silhouettes; // n, or empty
};

// Rows whose silhouettes are taken, one cluster behind the other.
struct Sample {
    std::vector<std::int64_t> rows;
    std::vector<std::size_t> first = {0}; // k + 1: where each cluster's begin
};

// Of each cluster as many as its share of `wanted`, the first in batch order.
Sample draw(const LabelledRows &rows, const std::vector<std::int64_t> &sizes, std::int64_t wanted, std::uint64_t seed)
{
    Sample sample;
    const std::int64_t n = rows.points.n;
    for (const std::int64_t size : sizes) {
        const auto share = static_cast<std::int64_t>(Int128{wanted} * size / n);
        sample.first.push_back(sample.first.back() + at(std::min(size, std::max(share, least_of_cluster))));
    }
    sample.rows.resize(sample.first.back());
    std::vector<std::size_t> next = sample.first;
    for (const std::int64_t row : batch_order(rows.points, 0, n, seed, rows.poll, rows.labels))
        if (const std::size_t j = at(rows.labels[row]); next[j] < sample.first[j + 1])
            sample.rows[next[j]++] = row;
    return sample;
}

// The mean of all rows is that of the clusters' means by their masses.
void take_silhouettes(const LabelledRows &rows, const Sample &sample, double reach, Judgement &judgement)
{
    Model &model = judgement.model;
    const std::vector<PgkmRowSilhouette> found =
        silhouettes(rows.points, {{rows.labels, model.masses}}, sample.rows, reach, rows.pool, rows.poll);
    const double mass = mass_of_all(model.masses);
    double mean = 0.0, variance = 0.0;
    for (std::size_t j = 0; j < at(model.k); ++j) {
        const std::size_t first = sample.first[j], count = sample.first[j + 1] - first;
        const Silhouette one =
            mean_silhouette(rows.points, {sample.rows.data() + first, count}, found.data() + first, model.sizes[j]);
        judgement.clusters[j].silhouette = one.mean;
        judgement.clusters[j].silhouette_error = one.error;
        mean += model.masses[j] / mass * one.mean;
        variance += std::pow(model.masses[j] / mass * one.error, 2.0);
    }
    model.quality.silhouette = mean;
    model.quality.silhouette_error = std::sqrt(variance);
    for (std::size_t i = 0; i < found.size(); ++i)
        judgement.silhouettes[at(sample.rows[i])] = found[i];
}

void check(const PgkmRequest &request, const PgkmGroup &group)
{
    if (request.n_groups > 0 || is_spread(request) || request.labels == nullptr || request.kmeans.batch_size > 0 ||
        centroids_are_given(request.kmeans))
        throw Error(PGKM_INVALID, "labels are judged of all rows on one server, without mini-batches and centroids");
    if (group.k < 1 || group.k > std::min<std::int64_t>(group.n, INT32_MAX))
        throw Error(PGKM_INVALID, "there must be between 1 and 2147483647 labels, each of a row");
}

double silhouettes_in(const PgkmRequest &request, const Shape &shape)
{
    const auto wanted = static_cast<double>(silhouette_rows(request, static_cast<std::int64_t>(shape.n)));
    return wanted == 0.0 ? 0.0 : std::min(shape.n, wanted + least_of_cluster * shape.k);
}

Work work_of_labels(const PgkmRequest &request, const PgkmGroup &group)
{
    const Shape shape = shape_of(group, request.points.d);
    const double sums = shape.n * (10.0 * shape.d + 100.0) + shape.k * (shape.k + 40.0) * shape.d;
    const double all = sums + silhouettes_in(request, shape) * shape.n * (shape.d + cost_of_root);
    return {time_of(all), time_of(fixed_operations + all), true};
}

double bytes_of_labels(const PgkmRequest &request, const PgkmGroup &group)
{
    const Shape shape = shape_of(group, request.points.d);
    const bool weighted = group.weights != nullptr;
    const double sampled = silhouettes_in(request, shape), all = sampled == 0.0 ? 0.0 : shape.n;
    const int threads = silhouette_threads(pgkm_cpu_threads(&request.settings), group.k);
    return bytes_of_fit(shape, request.points.element, weighted, are_copied(request.kmeans)) +
           all * (bytes_per_ordered_row + sizeof(PgkmRowSilhouette)) + sampled * 24.0 +
           shape.k * (100.0 + silhouette_bytes_per_cluster * threads);
}

std::unique_ptr<Models> fit(const PgkmRequest &request, Workplace *place, Monitor &monitor)
{
    const std::shared_ptr<const LoadedRows> rows = rows_in(*place, request, request.kmeans, monitor);
    FitTask task = {request.kmeans, {request.k}, true, false, request.settings.memory_limit};
    task.options.n_init = 1;
    task.want_means = true;
    task.labels = request.labels;
    auto found = std::make_unique<Judgement>();
    Model &model = found->model;
    model = std::move(fit_loaded(*rows, task, place->session, monitor)[0]);

    ThreadPool &pool = place->session.pool();
    const LabelledRows labelled = {rows->points(), model.labels.data(), model.k, pool, [&] { monitor.poll(); }};
    std::vector<double> ratios;
    const auto spreads = [&] { return labelled.spreads(model.means.data(), nullptr); };
    model.quality = quality_of(model, spreads, pool, monitor, &ratios);
    ratios.resize(at(model.k), NAN);
    for (std::size_t j = 0; j < ratios.size(); ++j)
        found->clusters.push_back({model.masses[j], ratios[j], NAN, NAN});
    if (const std::int64_t wanted = silhouette_rows(request, model.n); wanted > 0) {
        found->silhouettes.resize(at(model.n), {NAN, -1});
        if (has_silhouette(model.masses))
            take_silhouettes(labelled, draw(labelled, model.sizes, wanted, request.kmeans.seed),
                             reach_of(rows->groups()[0], rows->d(), monitor), *found);
    }
    place->session.unload(); // a copy goes now
    return found;
}

} // namespace

const Algorithm judging = {"the quality of labels",
                           check,
                           work_of_labels,
                           [](const PgkmRequest &, double) { return 1e6; },
                           bytes_of_labels,
                           nullptr,
                           fit};

} // namespace pgkm
