// options.cpp - defaults and limits of kmeans_options.
#include "engine/kmeans/options.hpp"

#include <cmath>
#include <string>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"

namespace pgkm {
namespace {

void check_init_centroids(const PgkmOptions &options, std::int64_t k, std::int32_t d)
{
    const PgkmGiven &given = options.init_centroids;
    if (given.dimensions != 2 || given.extent[0] != k || given.extent[1] != d)
        throw Error(PGKM_INVALID, "option init_centroids must be an array of " + std::to_string(k) + " x " +
                                      std::to_string(d) + " values (clusters x features), not " +
                                      std::to_string(given.extent[0]) + " x " + std::to_string(given.extent[1]));
    for (std::int64_t i = 0; i < k * d; ++i)
        if (!(std::fabs(given.values[i]) <= max_magnitude))
            throw Error(PGKM_INVALID, "option init_centroids must hold finite values");
}

} // namespace

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

void check_options(const PgkmOptions &options, std::int64_t k, std::int32_t d)
{
    check_iterations(k, options.n_init, options.max_iter, options.tol);
    if (centroids_are_given(options))
        check_init_centroids(options, k, d);
}

} // namespace pgkm

void pgkm_options_default(PgkmOptions *options)
{
    *options = {};
    options->init = PGKM_INIT_KMEANS_PLUS_PLUS;
    options->n_init = 1;
    options->max_iter = 300;
    options->tol = 1e-4;
    options->metric = PGKM_L2;
}
