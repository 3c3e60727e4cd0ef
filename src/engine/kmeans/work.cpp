// work.cpp - how much work and memory k-means takes.
#include "engine/kmeans/work.hpp"

#include <algorithm>
#include <cmath>

#include "backend/spread/spread.hpp"
#include "engine/kmeans/fit.hpp"
#include "engine/kmeans/loaded_rows.hpp"
#include "engine/kmeans/options.hpp"
#include "engine/kmeans/refine.hpp"
#include "engine/kmeans/sweep.hpp"
#include "engine/nodes/nodes.hpp"
#include "engine/rows/batch_order.hpp"
#include "engine/rows/silhouette.hpp"
#include "numeric/contract.hpp"

namespace pgkm {
namespace {

double distances(const Shape &fit)
{
    return fit.n * fit.k * fit.d;
}

double trials(const Shape &fit)
{
    return greedy_trials(static_cast<int>(fit.k));
}

double seeding(const Shape &fit, PgkmInit init)
{
    if (init == PGKM_INIT_KMEANS_PLUS_PLUS)
        return distances(fit) * trials(fit);
    if (init == PGKM_INIT_OPTIMAL)
        return 50.0 * fit.n * fit.k * std::log2(fit.n + 1.0);
    if (init != PGKM_INIT_KMEANS_PARALLEL)
        return fit.k * (fit.d + 100.0);
    const double sampled = std::min(fit.n, fit.k * oversampling_factor * oversampling_rounds + 1.0);
    return fit.d * sampled * (fit.n + fit.k * trials(fit));
}

// Clusters after a split: at most.
double clusters_of_split(double k)
{
    return k + std::ceil(k / clusters_per_split);
}

// What bounds of sizes add to an iteration: other assignments, the search for paths between clusters, rows that move.
double sizes_per_iteration(const Shape &fit)
{
    return 3.0 * distances(fit) + 10.0 * fit.k * fit.k + 0.1 * fit.n * (fit.k * fit.d + 100.0);
}

// Labels, squares and places of rows in canonical order; pairs of clusters, and moves between near ones. With weights
// their units, the last labels, and two lists of the rows that may move.
double bytes_of_sizes(const Shape &fit, bool weighted)
{
    return fit.n * (weighted ? 224.0 : 96.0) + fit.k * (64.0 * fit.k + 100.0 * std::min(fit.k, 256.0));
}

// Figures of all fits, and the models that may be suggested; the order of rows, of which silhouettes take a sample, the
// labels of fits that are judged together, and each thread's sums of distances.
double bytes_of_sweep(const PgkmRequest &request, const PgkmGroup &group, const Shape &fit)
{
    const double figures = static_cast<double>(sweep_count(request, group) - 1) * sizeof(Model);
    const double together = static_cast<double>(judged_together(request));
    const double models = request.suggest == 0 ? 0.0 : (together + 3.0) * fit.k * (8.0 * fit.d + 16.0);
    if (request.silhouette_rows == 0 || is_spread(request))
        return figures + models;
    const double clusters = together * fit.k;
    const int threads = silhouette_threads(pgkm_cpu_threads(&request.settings), static_cast<std::int64_t>(clusters));
    return figures + models + fit.n * (bytes_per_ordered_row + 4.0 * together) +
           silhouette_bytes_per_cluster * clusters * (request.n_groups > 0 ? 1 : threads);
}

// A round of the search that `refine` asks for: iterations, two assignments, the join.
double refine_round(const Shape &fit, double iteration)
{
    const double joined = clusters_of_split(fit.k);
    return (split_iterations + join_iterations + 2) * 1.2 * iteration + joined * (joined * fit.d + 300.0);
}

// One call after the other, for all rows; the others have calls for some of the rows, or iterate here.
bool is_plain(const PgkmOptions &options)
{
    return options.refine == 0 && options.batch_size == 0 && !sizes_are_bounded(options);
}

// One way for all k of a sweep.
PgkmOptions settled_options(const PgkmRequest &request, const PgkmGroup &group)
{
    PgkmOptions options = request.kmeans;
    const std::int64_t most = request.k_last == 0 ? group.k : sweep_last(request, group);
    options.init = init_of(options, static_cast<double>(group.n), request.points.d, static_cast<double>(most));
    return options;
}

// The fits of a request for a group. A sweep may have 2^31 of them: as many times the one in the middle.
struct Fits {
    double count;
    Shape each;
};

Fits fits_of(const PgkmRequest &request, const PgkmGroup &group)
{
    const std::int64_t count = request.k_last == 0 ? 1 : sweep_count(request, group);
    const std::int64_t middle = request.k_last == 0 ? group.k : sweep_k(request, group, (count - 1) / 2);
    return {static_cast<double>(count), shape_of({nullptr, nullptr, group.n, middle}, request.points.d)};
}

Extent extent_of(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmOptions options = settled_options(request, group);
    const auto [fits, fit] = fits_of(request, group);
    const double restarts = fits * restarts_of(options);
    const bool apart = is_plain(options) && options.max_radius == 0.0 && request.n_groups == 0 && !is_spread(request);
    const PgkmInit init = centroids_are_given(options) ? PGKM_INIT_FIRST : options.init; // which take no time
    // A round of k-means|| is an assignment to 2 k rows.
    const double rounds = init == PGKM_INIT_KMEANS_PARALLEL ? 2.0 * oversampling_rounds : 0.0;
    return {fit.n,
            fit.d,
            fit.k,
            restarts * (std::min<double>(options.max_iter, usual_iterations) + rounds),
            request.points.element == PGKM_FLOAT32 ? 4.0 : 8.0,
            apart ? restarts : 1.0,
            init == PGKM_INIT_KMEANS_PLUS_PLUS ? restarts * fit.k : 0.0};
}

std::int32_t at_once(const PgkmRequest &request, const PgkmGroup &group, std::int32_t devices,
                     std::uint64_t device_memory)
{
    constexpr double per_device = 4.0; // some end early
    const Extent fit = extent_of(request, group);
    const RowShape rows = {group.n, request.points.d, request.points.element};
    return restarts_pay_apart(fit, devices) && spread::have_room(rows, devices, device_memory)
               ? static_cast<std::int32_t>(std::min(fit.restarts, per_device * devices))
               : 1;
}

// What the models of restarts at once take more than that of one, here and on the way: the arrays of k x d.
double bytes_of_restarts(const PgkmRequest &request, const PgkmGroup &group, const Shape &fit)
{
    const PgkmSettings &settings = request.settings;
    if (settings.backend == PGKM_BACKEND_CPU || settings.device >= 0 || request.n_groups > 0)
        return 0.0;
    const Extent extent = extent_of(request, group);
    const std::int32_t devices = settings.n_devices > 0 ? settings.n_devices : devices_worth(extent, PGKM_MOST_DEVICES);
    const std::uint64_t device_memory = settings.gpu_memory_limit == 0 ? UINT64_MAX : settings.gpu_memory_limit;
    return (at_once(request, group, devices, device_memory) - 1.0) * fit.k * fit.d * (8.0 + 2.0 * extent.value_bytes);
}

// Three indices, by distances to all centroids and among these; silhouettes by distances of rows.
double quality(const Shape &fit, double silhouettes)
{
    return 2.0 * distances(fit) + fit.k * fit.k * fit.d + silhouettes * fit.n * (fit.d + cost_of_root);
}

} // namespace

Shape shape_of(const PgkmGroup &group, std::int32_t d)
{
    return {static_cast<double>(group.n), static_cast<double>(d), static_cast<double>(std::min(group.k, group.n))};
}

double operations_of_fit(const Shape &fit, const PgkmOptions &options)
{
    const double summary = 10.0 * fit.n * fit.d;
    const double centroids = 40.0 * fit.k * fit.d; // divisions of 128-bit sums, the model
    const double iteration = distances(fit) + centroids + 10.0 * fit.n + step_operations;
    const double bounded = sizes_are_bounded(options) ? sizes_per_iteration(fit) : 0.0;
    const double labelling = iteration + bounded + summary;
    const double refinement =
        options.refine == 0 ? 0.0 : most_refine_rounds * refine_round(fit, iteration) + options.max_iter * iteration;
    return fixed_operations + summary +
           options.n_init * (seeding(fit, init_of(options, fit.n, fit.d, fit.k)) +
                             options.max_iter * (iteration + bounded) + refinement + labelling);
}

double bytes_of_fit(const Shape &fit, PgkmElement element, bool weighted, bool copied)
{
    // Per row: label, previous label, nearest distance, two bounds; D^2 masks and weights while
    // seeding. Per centroid coordinate: the value, its predecessor, integer totals, packed copies.
    const double size = element == PGKM_FLOAT32 ? 4.0 : 8.0;
    const double per_row = 40.0 + (weighted ? 8.0 : 0.0) + (copied ? size * fit.d : 0.0);
    return fit.n * per_row + fit.k * fit.d * (64.0 + 2.0 * size);
}

std::int32_t restarts_at_once(const PgkmRequest &request, std::int32_t devices, std::uint64_t device_memory)
{
    return request.n_groups > 0 ? 1 : at_once(request, groups_of(request)[0], devices, device_memory);
}

Work work_of_clusters(const PgkmRequest &request, const PgkmGroup &group)
{
    const PgkmOptions options = settled_options(request, group);
    const auto [fits, fit] = fits_of(request, group);
    const double refined = options.refine == 0 ? 0.0 : usual_iterations;
    const double silhouettes = static_cast<double>(silhouette_rows(request, group.n)) /
                               static_cast<double>(request.k_last == 0 ? 1 : judged_together(request));
    const double rounds = std::min<double>(options.max_iter, usual_iterations) + trials(fit) + refined;
    return {time_of(fits * distances(fit) * rounds * options.n_init),
            time_of(fits * (operations_of_fit(fit, options) + (request.k_last == 0 ? 0.0 : quality(fit, silhouettes)))),
            request.points.element == PGKM_BIT,
            is_plain(options) ? devices_worth(extent_of(request, group), PGKM_MOST_DEVICES) : 1};
}

double bytes_of_clusters(const PgkmRequest &request, const PgkmGroup &group)
{
    const std::int64_t most = request.k_last == 0 ? group.k : sweep_last(request, group);
    const Shape fit = shape_of({nullptr, nullptr, group.n, most}, request.points.d);
    const double swept = request.k_last == 0 ? 0.0 : bytes_of_sweep(request, group, fit);
    // Groups are copied anyway.
    const bool in_batches = request.kmeans.batch_size > 0;
    const bool copied = (are_transformed(request.kmeans) && request.n_groups == 0) || in_batches;
    const bool weighted = group.weights != nullptr;
    const double ordered = in_batches ? fit.n * bytes_per_ordered_row : 0.0;
    const double bounded = sizes_are_bounded(request.kmeans) ? bytes_of_sizes(fit, weighted) : 0.0;
    const double labelled = request.kmeans.max_radius > 0.0 ? 12.0 * fit.n : bytes_of_restarts(request, group, fit);
    const double calls = nodes::bytes_of_calls(request, 8.0 * fit.k * fit.d, 16.0 * fit.k * (fit.d + 1.0));
    const double beside = swept + bounded + labelled + calls;
    if (request.kmeans.refine == 0)
        return bytes_of_fit(fit, request.points.element, weighted, copied) + ordered + beside;
    // More clusters, two copies of the centroids, and one in float64 with its figures.
    const Shape split = {fit.n, fit.d, clusters_of_split(fit.k)};
    return bytes_of_fit(split, request.points.element, weighted, copied) + beside + split.k * (fit.d * 32.0 + 200.0);
}

} // namespace pgkm
