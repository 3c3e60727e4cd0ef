// factors.hpp - covariances in the form that an E step reads.
#pragma once

#include <vector>

#include "engine/job/poll.hpp"
#include "engine/mixture/parameters.hpp"

namespace pgkm {

// PgkmMixture with the memory it stands in.
struct MixtureFactors {
    PgkmCovariance type = PGKM_COVARIANCE_FULL;
    std::vector<double> log_weights, factors, log_determinants; // shapes as in PgkmMixture
    PgkmMixture view(const MixtureParameters &parameters) const;
    // Tied: the same densities as a full mixture.
    void make_full(std::int32_t d, const Poll &poll);
};

// Cholesky factors, inverted; or factors for given precisions (inverse covariances, pgkm_covariance_size() values).
// Throws Error(PGKM_INVALID): naming the component whose covariance is singular to working precision, or when
// precisions are not positive definite.
MixtureFactors factorise(const MixtureParameters &parameters, const Poll &poll, const double *precisions = nullptr);

// A symmetric d x d matrix becomes L^-1 with L L' = matrix, zeros above its diagonal. Returns the logarithm of L's
// determinant; NaN, and a matrix that means nothing, where it is not positive definite to working precision.
double invert_factor(double *matrix, std::int64_t d, const Poll &poll);

} // namespace pgkm
