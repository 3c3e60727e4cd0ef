// options.cpp - defaults and limits of gmm_options.
#include "engine/mixture/options.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "backend/covariance.hpp"
#include "engine/kmeans/options.hpp"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"

namespace pgkm {
namespace {

void check_shape(const char *name, const PgkmGiven &given, const std::vector<std::int64_t> &shape)
{
    if (given.values == nullptr)
        return;
    bool fits = given.dimensions == static_cast<std::int32_t>(shape.size());
    std::string wanted;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        fits = fits && given.extent[i] == shape[i];
        wanted += (i == 0 ? "" : " x ") + std::to_string(shape[i]);
        count *= shape[i];
    }
    if (!fits)
        throw Error(PGKM_INVALID, std::string("option ") + name + " must be an array of " + wanted + " values");
    for (std::int64_t i = 0; i < count; ++i)
        if (!(std::fabs(given.values[i]) <= max_magnitude))
            throw Error(PGKM_INVALID, std::string("option ") + name + " must hold finite values");
}

void check_weights(const PgkmGiven &given)
{
    double sum = 0.0;
    for (std::int32_t j = 0; given.values != nullptr && j < given.extent[0]; ++j) {
        if (given.values[j] < 0.0)
            throw Error(PGKM_INVALID, "option weights_init must hold values of at least 0");
        sum += given.values[j];
    }
    if (given.values != nullptr && !(std::fabs(sum - 1.0) <= 1e-6))
        throw Error(PGKM_INVALID, "option weights_init must hold values whose sum is 1");
}

} // namespace

void check_mixture_options(const PgkmMixtureOptions &options, std::int64_t k, std::int32_t d)
{
    check_iterations(k, options.n_init, options.max_iter, options.tol);
    if (!(options.reg_covar >= 0.0) || std::isinf(options.reg_covar))
        throw Error(PGKM_INVALID, "option reg_covar must be a finite number of at least 0");
    check_shape("weights_init", options.weights_init, {k});
    check_weights(options.weights_init);
    check_shape("means_init", options.means_init, {k, d});
    if (options.standardize != 0 && options.precisions_init.values != nullptr)
        throw Error(PGKM_INVALID, "option precisions_init must be null with standardize");
    check_shape("precisions_init", options.precisions_init, CovarianceShape(options.covariance_type).extents(k, d));
    if (!model_is_given(options))
        return;
    const PgkmGivenModel &model = options.init_model;
    if (any_given(options))
        throw Error(PGKM_INVALID, "first parameters and init_model must not both be given");
    if (model.covariance_type != options.covariance_type)
        throw Error(PGKM_INVALID, "option covariance_type must be that of init_model");
    check_given_model(model, "components", options.standardize != 0, d);
    if (model.centroids.extent[0] != k)
        throw Error(PGKM_INVALID, "option init_model has " + std::to_string(model.centroids.extent[0]) +
                                      " components, but k is " + std::to_string(k));
    check_shape("init_model", model.weights, {k});
    check_shape("init_model", model.covariances, CovarianceShape(options.covariance_type).extents(k, d));
}

bool all_given(const PgkmMixtureOptions &options)
{
    return model_is_given(options) || (options.weights_init.values != nullptr && options.means_init.values != nullptr &&
                                       options.precisions_init.values != nullptr);
}

bool any_given(const PgkmMixtureOptions &options)
{
    return options.weights_init.values != nullptr || options.means_init.values != nullptr ||
           options.precisions_init.values != nullptr;
}

PgkmOptions first_clusters(const PgkmMixtureOptions &options)
{
    PgkmOptions clusters;
    pgkm_options_default(&clusters);
    clusters.standardize = options.standardize;
    clusters.init_model = options.init_model; // its units are those of the rows
    return clusters;
}

} // namespace pgkm

void pgkm_mixture_options_default(PgkmMixtureOptions *options)
{
    *options = {};
    options->covariance_type = PGKM_COVARIANCE_FULL;
    options->tol = 1e-3;
    options->reg_covar = 1e-6;
    options->max_iter = 100;
    options->n_init = 1;
}
