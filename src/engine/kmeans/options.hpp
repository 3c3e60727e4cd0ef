// options.hpp - checks of what a request may ask for.
#pragma once

#include <cstdint>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Whether a fit goes on from option init_model.
inline bool model_is_given(const PgkmOptions &options)
{
    return options.init_model.centroids.dimensions > 0;
}

// Whether a fit starts from option init_centroids or init_model.
inline bool centroids_are_given(const PgkmOptions &options)
{
    return options.init_centroids.dimensions > 0 || model_is_given(options);
}

// Those that differ: with given centroids, first ones and the optimum one is all of them.
inline std::int32_t restarts_of(const PgkmOptions &options)
{
    return centroids_are_given(options) || options.init == PGKM_INIT_FIRST || options.init == PGKM_INIT_OPTIMAL
               ? 1
               : options.n_init;
}

// Whether clusters must keep within a number of rows: options min_size and max_size.
inline bool sizes_are_bounded(const PgkmOptions &options)
{
    return options.min_size != 0.0 || options.max_size != 0.0;
}

// Of k clusters over n rows. Below 1 an option is a share of the rows: min_size is rounded up then, max_size down, so
// that sizes keep within the share. No cluster is empty. Throws Error(PGKM_INVALID) saying why it cannot be.
PgkmSizeBounds size_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k);

// How first centroids of such a fit are chosen: the options' init, or by size where that is automatic. k-means++ goes
// through the rows k times, so it takes up to 2^33 values of rows times clusters; k-means|| a few times, whatever k is.
PgkmInit init_of(const PgkmOptions &options, double n, double d, double k);

// What clusters and mixtures have in common. Throws Error(PGKM_INVALID) naming the option and what it takes.
void check_iterations(std::int64_t k, std::int32_t n_init, std::int32_t max_iter, double tol);

// All of kmeans_options but sizes, for k clusters of d features. Throws likewise.
void check_options(const PgkmOptions &options, std::int64_t k, std::int32_t d);

} // namespace pgkm
