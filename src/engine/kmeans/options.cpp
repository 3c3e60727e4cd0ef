// options.cpp - defaults and limits of kmeans_options.
#include "engine/kmeans/options.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "backend/size_units.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/index.hpp"

namespace pgkm {
namespace {

// A share of 0.07 means 7 of 100 rows, though 0.07 * 100 is a little more in float64.
constexpr double margin = 0x1p-50;

// Numbers of rows are exact in float64.
std::int64_t least_of(double option, std::int64_t n)
{
    const double rows = option < 1.0 ? std::ceil(option * static_cast<double>(n) * (1.0 - margin)) : option;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(rows));
}

std::int64_t most_of(double option, std::int64_t n)
{
    if (option == 0.0)
        return n;
    const double rows = option < 1.0 ? std::floor(option * static_cast<double>(n) * (1.0 + margin)) : option;
    return std::min(n, static_cast<std::int64_t>(rows));
}

std::string clusters(std::int64_t k)
{
    return std::to_string(k) + (k == 1 ? " cluster" : " clusters");
}

std::string rows(std::int64_t n)
{
    return std::to_string(n) + (n == 1 ? " row" : " rows");
}

void check_finite(const PgkmGiven &given, const char *option)
{
    std::int64_t count = given.dimensions > 0 ? 1 : 0;
    for (std::int32_t i = 0; i < given.dimensions; ++i)
        count *= given.extent[i];
    for (std::int64_t i = 0; i < count; ++i)
        if (!(std::fabs(given.values[i]) <= max_magnitude))
            throw Error(PGKM_INVALID, std::string("option ") + option + " must hold finite values");
}

void check_init_centroids(const PgkmGiven &given, std::int64_t k, std::int32_t d)
{
    if (given.dimensions != 2 || given.extent[0] != k || given.extent[1] != d)
        throw Error(PGKM_INVALID, "option init_centroids must be an array of " + std::to_string(k) + " x " +
                                      std::to_string(d) + " values (clusters x features), not " +
                                      std::to_string(given.extent[0]) + " x " + std::to_string(given.extent[1]));
    check_finite(given, "init_centroids");
}

bool counts_are_bounded(const PgkmOptions &options)
{
    return options.min_size != 0.0 || options.max_size != 0.0 || options.min_sizes.dimensions > 0 ||
           options.max_sizes.dimensions > 0;
}

void check_of_each(const PgkmGiven &given, std::int64_t k, const char *option)
{
    if (given.dimensions > 0 && (given.dimensions != 1 || given.extent[0] != k))
        throw Error(PGKM_INVALID, std::string("option ") + option + " must be an array of " + std::to_string(k) +
                                      " values, one for each cluster");
}

// What cannot be, whatever the rows are. total: of all clusters.
template <typename Text>
void check_sums(const std::vector<PgkmSizeBounds> &bounds, std::int64_t total, Text &&text)
{
    Int128 least = 0, most = 0;
    for (std::size_t j = 0; j < bounds.size(); ++j) {
        if (bounds[j].least > bounds[j].most)
            throw Error(PGKM_INVALID, "cluster " + std::to_string(j) + " cannot have at least " +
                                          text(bounds[j].least) + " and at most " + text(bounds[j].most));
        least += bounds[j].least;
        most += bounds[j].most;
    }
    if (least > total)
        throw Error(PGKM_INVALID, clusters(std::ssize(bounds)) + " of at least " + text(least) +
                                      " in all cannot be made of " + text(total));
    if (most < total)
        throw Error(PGKM_INVALID,
                    clusters(std::ssize(bounds)) + " of at most " + text(most) + " in all cannot hold " + text(total));
}

// Weights such as 0.1 are rounded, so that 3 of them are more than 0.3.
std::vector<PgkmSizeBounds> weight_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k,
                                          const double *weights)
{
    constexpr double rounded = 0x1p-40, most_units = 0x1p61;
    const double heaviest = *std::max_element(weights, weights + n);
    const int exponent = size_exponent(n, scale_exponent(heaviest));
    std::int64_t total = 0, widest = 0;
    for (std::int64_t i = 0; i < n; ++i)
        total += size_units(weights[i], exponent);
    check_of_each(options.min_weights, k, "min_weights");
    check_of_each(options.max_weights, k, "max_weights");
    const bool fewer = !bounds_differ(options) && !centroids_are_given(options);
    std::vector<PgkmSizeBounds> bounds(at(fewer ? std::min(n, k) : k));
    for (std::size_t j = 0; j < bounds.size(); ++j) {
        const auto units = [&](const PgkmGiven &each, double same, double factor) {
            return std::min(most_units, std::ldexp(each.dimensions > 0 ? each.values[j] : same, exponent) * factor);
        };
        const double least = units(options.min_weights, options.min_weight, 1.0 - rounded);
        const double most = units(options.max_weights, options.max_weight, 1.0 + rounded);
        bounds[j].least = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(least)));
        bounds[j].most = most == 0.0 ? total : std::min(total, static_cast<std::int64_t>(most));
        widest = std::max(widest, bounds[j].most);
    }
    const auto text = [&](Int128 units) { return "weight " + weight_text(to_double(units), exponent); };
    check_sums(bounds, total, text);
    if (size_units(heaviest, exponent) > widest)
        throw Error(PGKM_INVALID, "a row of " + text(size_units(heaviest, exponent)) +
                                      " is heavier than any cluster may be, which is " + text(widest) + " at most");
    return bounds;
}

void check_init_model(const PgkmOptions &options, std::int32_t d)
{
    if (options.init_centroids.dimensions > 0)
        throw Error(PGKM_INVALID, "options init_centroids and init_model must not both be given");
    if (options.init_model.metric != options.metric)
        throw Error(PGKM_INVALID, "option metric must be that of init_model");
    check_given_model(options.init_model, "clusters", options.standardize != 0, d);
}

} // namespace

void check_given_model(const PgkmGivenModel &model, const char *clusters, bool standardized, std::int32_t d)
{
    const PgkmGiven &means = model.centroids;
    if (means.dimensions != 2 || means.extent[0] < 1 || means.extent[1] != d)
        throw Error(PGKM_INVALID, std::string("option init_model has ") + clusters + " of " +
                                      std::to_string(means.extent[1]) + " features, but rows have " +
                                      std::to_string(d));
    for (const PgkmGiven *units : {&model.center, &model.scale})
        if (units->dimensions != (standardized ? 1 : 0) || (standardized && units->extent[0] != d))
            throw Error(PGKM_INVALID, standardized ? "option init_model must have a center and a scale for each feature"
                                                   : "option standardize must be that of init_model");
    for (const PgkmGiven *array : {&means, &model.center, &model.scale})
        check_finite(*array, "init_model");
    for (std::int32_t f = 0; standardized && f < d; ++f)
        if (!(model.scale.values[f] > 0.0))
            throw Error(PGKM_INVALID, "option init_model must have positive scales");
}

PgkmInit init_of(const PgkmOptions &options, double n, double d, double k)
{
    constexpr double most_greedy = 0x1p33;
    if (options.init != PGKM_INIT_AUTO)
        return options.init;
    if (options.metric == PGKM_HAMMING)
        return PGKM_INIT_KMEANS_PLUS_PLUS;
    return n * d * std::min(n, k) <= most_greedy ? PGKM_INIT_KMEANS_PLUS_PLUS : PGKM_INIT_KMEANS_PARALLEL;
}

bool weights_are_bounded(const PgkmOptions &options)
{
    return options.min_weight != 0.0 || options.max_weight != 0.0 || options.min_weights.dimensions > 0 ||
           options.max_weights.dimensions > 0;
}

std::vector<PgkmSizeBounds> size_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k,
                                        const double *weights)
{
    if (weights_are_bounded(options))
        return weight_bounds(options, n, k, weights);
    const PgkmSizeBounds same = {least_of(options.min_size, n), most_of(options.max_size, n)};
    if (options.min_size != 0.0 && options.max_size != 0.0 && same.least > same.most)
        throw Error(PGKM_INVALID, "option min_size (" + std::to_string(same.least) +
                                      " rows) must not be above max_size (" + std::to_string(same.most) + " rows)");
    if (options.min_size != 0.0 && same.least > n / k)
        throw Error(PGKM_INVALID, "option min_size is too large: " + clusters(k) + " of at least " +
                                      std::to_string(same.least) + " rows cannot be made of " + rows(n));
    const std::int64_t found = std::min(n, k); // as many as there are without bounds
    if (same.most < (n - 1) / found + 1)
        throw Error(PGKM_INVALID, "option max_size is too small: " + clusters(found) + " of at most " +
                                      std::to_string(same.most) + " rows cannot hold " + rows(n));
    if (!bounds_differ(options) && !centroids_are_given(options))
        return std::vector<PgkmSizeBounds>(at(found), same);
    check_of_each(options.min_sizes, k, "min_sizes");
    check_of_each(options.max_sizes, k, "max_sizes");
    std::vector<PgkmSizeBounds> bounds(at(k), same);
    for (std::size_t j = 0; j < bounds.size(); ++j) {
        if (options.min_sizes.dimensions > 0)
            bounds[j].least = least_of(options.min_sizes.values[j], n);
        if (options.max_sizes.dimensions > 0)
            bounds[j].most = most_of(options.max_sizes.values[j], n);
    }
    check_sums(bounds, n, [](Int128 count) { return rows(static_cast<std::int64_t>(count)); });
    return bounds;
}

void check_iterations(std::int64_t k, std::int32_t n_init, std::int32_t max_iter, double tol)
{
    if (k < 1 || k > INT32_MAX)
        throw Error(PGKM_INVALID, "k must be between 1 and 2147483647");
    if (n_init < 1)
        throw Error(PGKM_INVALID, "option n_init must be at least 1");
    if (max_iter < 1)
        throw Error(PGKM_INVALID, "option max_iter must be at least 1");
    if (!(tol >= 0.0) || std::isinf(tol))
        throw Error(PGKM_INVALID, "option tol must be a finite number of at least 0");
}

void check_hamming(const PgkmOptions &options)
{
    const char *const refused = options.init == PGKM_INIT_KMEANS_PARALLEL ? "init 'k-means||'"
                                : options.init == PGKM_INIT_OPTIMAL       ? "init 'optimal'"
                                : options.standardize != 0                ? "standardize"
                                : options.refine != 0                     ? "refine"
                                : sizes_are_bounded(options)              ? pgkm_bound_given(&options)
                                : options.batch_size > 0                  ? "batch_size"
                                : options.max_radius > 0.0                ? "max_radius"
                                                                          : nullptr;
    if (refused != nullptr)
        throw Error(PGKM_UNSUPPORTED, std::string("option ") + refused + " is not for metric hamming");
    for (const PgkmGiven *given : {&options.init_centroids, &options.init_model.centroids})
        for (std::int64_t i = 0; given->dimensions == 2 && i < std::int64_t{given->extent[0]} * given->extent[1]; ++i)
            if (given->values[i] != 0.0 && given->values[i] != 1.0)
                throw Error(PGKM_INVALID, "centroids given for metric hamming must hold zeros and ones");
}

void check_options(const PgkmOptions &options, std::int64_t k, std::int32_t d)
{
    if (options.metric == PGKM_HAMMING)
        check_hamming(options);
    if (options.metric == PGKM_HAMMING && model_is_given(options) && options.init_model.centroids.extent[0] != k)
        throw Error(PGKM_UNSUPPORTED, "metric hamming goes on from a model with its k alone");
    check_iterations(k, options.n_init, options.max_iter, options.tol);
    if (options.batch_size < 0)
        throw Error(PGKM_INVALID, "option batch_size must be at least 1");
    if (options.batch_size > 0 && options.refine != 0)
        throw Error(PGKM_INVALID, "option refine must be false with batch_size");
    if (options.batch_size > 0 && sizes_are_bounded(options))
        throw Error(PGKM_INVALID, std::string("option batch_size must be null with ") + pgkm_bound_given(&options));
    if (options.batch_size > 0 && (options.init == PGKM_INIT_FIRST || options.init == PGKM_INIT_OPTIMAL))
        throw Error(PGKM_INVALID, "option init must not be 'first' or 'optimal' with batch_size");
    if (options.init == PGKM_INIT_OPTIMAL && d != 1)
        throw Error(PGKM_INVALID, "option init must not be 'optimal' with more than one feature");
    if (!(options.max_radius >= 0.0) || std::isinf(options.max_radius))
        throw Error(PGKM_INVALID, "option max_radius must be a finite number of at least 0");
    if (options.max_radius > 0.0 && (options.batch_size > 0 || sizes_are_bounded(options)))
        throw Error(PGKM_INVALID, "option max_radius must be 0 with batch_size and with bounds of clusters");
    if (weights_are_bounded(options) && counts_are_bounded(options))
        throw Error(PGKM_INVALID, "bounds of sizes and bounds of weights must not both be given");
    if (model_is_given(options))
        check_init_model(options, d);
    else if (centroids_are_given(options))
        check_init_centroids(options.init_centroids, k, d);
}

} // namespace pgkm

const char *pgkm_bound_given(const PgkmOptions *options)
{
    return options->min_size != 0.0              ? "min_size"
           : options->max_size != 0.0            ? "max_size"
           : options->min_sizes.dimensions > 0   ? "min_sizes"
           : options->max_sizes.dimensions > 0   ? "max_sizes"
           : options->min_weight != 0.0          ? "min_weight"
           : options->max_weight != 0.0          ? "max_weight"
           : options->min_weights.dimensions > 0 ? "min_weights"
           : options->max_weights.dimensions > 0 ? "max_weights"
                                                 : nullptr;
}

void pgkm_options_default(PgkmOptions *options)
{
    *options = {};
    options->init = PGKM_INIT_AUTO;
    options->n_init = 1;
    options->max_iter = 300;
    options->tol = 1e-4;
    options->metric = PGKM_L2;
}
