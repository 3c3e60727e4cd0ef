// moments.hpp - count, mean and products of deviations of rows, in a form that merges.
//
// Merged as in Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances" (1979): deviations are always from the mean of the rows at hand, so that an
// offset of the data, however wide, does not cancel their digits.
#pragma once

#include <cstdint>

#include "engine/api.h"
#include "engine/backends/moments.hpp"
#include "engine/job/poll.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Adds `count` rows, row-major, and their weights, or NULL. Rows are added up in blocks as they come: the same calls in
// the same order give the same bits. `poll` may throw, and then the moments mean nothing.
void add_rows(PgkmRowMoments &moments, const double *rows, const double *weights, std::int64_t count, const Poll &poll);

// Adds the rows of `other`, which has the same d.
void merge_moments(PgkmRowMoments &moments, const PgkmRowMoments &other);

} // namespace pgkm
