// options.hpp - limits of gmm_options.
#pragma once

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Throws Error(PGKM_INVALID) naming the option that is out of its range or of the wrong shape.
void check_mixture_options(const PgkmMixtureOptions &options, std::int64_t k, std::int32_t d);

// Whether the first parameters, by a model or one by one, or some of these are given.
bool all_given(const PgkmMixtureOptions &options);
bool any_given(const PgkmMixtureOptions &options);

// The k-means that a mixture begins with, unless all is given: its options, but for the seed.
PgkmOptions first_clusters(const PgkmMixtureOptions &options);

} // namespace pgkm
