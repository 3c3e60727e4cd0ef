// prepare.hpp - brings rows into the space in which they are clustered: standardized
// features, unit length for the cosine metric.
//
// Every value is computed in float64 and rounded once to the points' type, the same for a
// row of the fit, for an initial centroid and for a row of kmeans_predict.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// (value - center) / scale for every feature; empty vectors: as it is.
struct Standardization {
    std::vector<double> center; // d
    std::vector<double> scale;  // d, never 0: a constant feature has scale 1
};

// From means and variances (d values each); a feature without spread keeps scale 1 (as scikit-learn's
// StandardScaler does).
Standardization standardization_of(const std::vector<double> &mean, const std::vector<double> &variance);

// One row of d values in place; center and scale: d values, or NULL. False when a zero vector was to be normalised.
template <typename T>
bool transform_row(T *row, std::int32_t d, const double *center, const double *scale, PgkmMetric metric);

// All rows (n x d), transformed, to `result`, which may be `rows` themselves. Throws Error(PGKM_INVALID)
// naming the row (from 1) of a zero vector under the cosine metric. Asks poll(), which may throw, every few
// milliseconds.
template <typename T>
void transform_rows(const T *rows, std::int64_t n, std::int32_t d, const Standardization &standardization,
                    PgkmMetric metric, const std::function<void()> &poll, T *result);

} // namespace pgkm
