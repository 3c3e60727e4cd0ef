// moments.hpp - count, mean and products of deviations of rows, in a form that merges.
//
// Merged as in Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing
// sample variances" (1979): deviations are always from the mean of the rows at hand, so that an
// offset of the data, however wide, does not cancel their digits.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"
#include "engine/job/poll.hpp"

namespace pgkm {

// Lower triangle by rows: element (a, b), b <= a, at a (a + 1) / 2 + b.
inline std::int64_t triangle_size(std::int64_t d)
{
    return d * (d + 1) / 2;
}

// Of n rows of d features; `mean` and `cross` are the caller's.
struct MomentView {
    std::int64_t n;
    std::int32_t d;
    double *mean;  // d
    double *cross; // triangle_size(d): sums of (x - mean) (x - mean)'
};

// Adds `count` rows, row-major. Rows are added up in blocks as they come: the same calls in the
// same order give the same bits. `poll` may throw, and then the moments mean nothing.
void add_rows(MomentView &moments, const double *rows, std::int64_t count, const Poll &poll);

// Adds the rows of `other`, which has the same d.
void merge_moments(MomentView &moments, const MomentView &other);

// The mean of up to a thousand rows spread over all of them: a shift for a backend's moments(). A
// shift amid the rows is as good as their mean: what the difference costs is less than a factor of
// n / 1000 on a rounding of 1e-16, in the worst case that these rows are the outliers.
std::vector<double> sample_mean(const PgkmPoints &points);

} // namespace pgkm
