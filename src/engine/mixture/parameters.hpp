// parameters.hpp - weights, means and covariances of a Gaussian mixture, from the sums of an E step.
#pragma once

#include <vector>

#include "engine/api.h"
#include "numeric/large_array.hpp"
#include "numeric/platform.hpp"
#include "engine/job/poll.hpp"

namespace pgkm {

struct MixtureParameters {
    PgkmCovariance type = PGKM_COVARIANCE_FULL;
    std::int32_t k = 0;
    std::int32_t d = 0;
    std::vector<double> weights;    // k
    std::vector<double> means;      // k x d
    LargeArray<double> covariances; // pgkm_covariance_size()
};

// The sums of an E step with the memory they stand in.
struct MixtureSums {
    MixtureSums(PgkmCovariance type, std::int64_t k, std::int32_t d);
    double mass() const; // of all components

    PgkmCovariance type;
    std::vector<double> masses, first; // shapes as in PgkmMixtureSums
    LargeArray<double> second;
    double mean_weight = 1.0; // of a row
    PgkmMixtureSums view;
};

// The rows' mean and their sums of products of deviations from it, divided by their mass (d x d): what the
// tied covariance is made of.
struct TotalCovariance {
    std::vector<double> mean, matrix; // d, d x d
};

// M step: replaces the parameters, about whose means the sums were taken. A component without mass keeps its mean and
// gets the covariance reg_covar; its weight is next to 0. Throws Error(PGKM_INVALID) when a value leaves the range of
// float64.
//
// Tied: from sums of that type and `total`, which nothing else reads, or from sums of type full. False, and nothing is
// replaced, where the components lie so far apart that only the latter keep the covariance's digits.
bool maximise(MixtureParameters &parameters, const MixtureSums &sums, const TotalCovariance &total, double reg_covar,
              const Poll &poll);

// Free parameters of a mixture: what AIC and BIC count.
double parameter_count(PgkmCovariance type, std::int64_t k, std::int64_t d);

} // namespace pgkm
