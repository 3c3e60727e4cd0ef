// options.hpp - checks of what a request may ask for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Whether a fit goes on from option init_model.
template <typename Options>
bool model_is_given(const Options &options)
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

// Whether clusters must keep within bounds.
inline bool sizes_are_bounded(const PgkmOptions &options)
{
    return pgkm_bound_given(&options) != nullptr;
}

// Whether these differ from cluster to cluster.
inline bool bounds_differ(const PgkmOptions &options)
{
    return options.min_sizes.dimensions > 0 || options.max_sizes.dimensions > 0 || options.min_weights.dimensions > 0 ||
           options.max_weights.dimensions > 0;
}

// Whether they are bounds of weights.
bool weights_are_bounded(const PgkmOptions &options);

// Of each of k clusters over n rows; of the n that there are where these are fewer. Below 1 an option is a share of the
// rows: a least size is rounded up then, a most down, so that sizes keep within the share. No cluster is empty. Bounds
// of weights are in units (backend/size_units.hpp), and 2^-40 of them wider. weights: n, or NULL with bounds of rows.
// Throws Error(PGKM_INVALID) saying why it cannot be.
std::vector<PgkmSizeBounds> size_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k,
                                        const double *weights = nullptr);

// How first centroids of such a fit are chosen: the options' init, or by size where that is automatic. k-means++ goes
// through the rows k times, so it takes up to 2^33 values of rows times clusters; k-means|| a few times, whatever k is.
// Rows of bits have k-means++ alone.
PgkmInit init_of(const PgkmOptions &options, double n, double d, double k);

// What clusters and mixtures have in common. Throws Error(PGKM_INVALID) naming the option and what it takes.
void check_iterations(std::int64_t k, std::int32_t n_init, std::int32_t max_iter, double tol);

// A model of clusters, say, of d features, from which a fit goes on: means and units. Throws likewise.
void check_given_model(const PgkmGivenModel &model, const char *clusters, bool standardized, std::int32_t d);

// What metric hamming does without: Error(PGKM_UNSUPPORTED). Error(PGKM_INVALID) where given centroids are not of bits.
void check_hamming(const PgkmOptions &options);

// All of kmeans_options but sizes, for k clusters of d features. Throws likewise.
void check_options(const PgkmOptions &options, std::int64_t k, std::int32_t d);

} // namespace pgkm
