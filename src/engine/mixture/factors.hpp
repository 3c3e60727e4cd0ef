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

} // namespace pgkm
