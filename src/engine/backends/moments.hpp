// moments.hpp - means and products of deviations, by a backend's moments(): what covariances are made of.
#pragma once

#include <functional>
#include <vector>

#include "engine/backends/session.hpp"

namespace pgkm {

// Values of a lower triangle d x d by rows: element (a, b), b <= a, at a (a + 1) / 2 + b.
inline std::int64_t triangle_size(std::int64_t d)
{
    return d * (d + 1) / 2;
}

// Values of PgkmMixtureSums.second.
inline std::int64_t second_size(PgkmCovariance type, std::int64_t k, std::int64_t d)
{
    return type == PGKM_COVARIANCE_FULL ? k * triangle_size(d) : type == PGKM_COVARIANCE_TIED ? 0 : k * d;
}

// Of the n rows of one problem.
struct CrossMoments {
    std::int64_t n;
    double mass;               // the sum of their weights, n without
    std::vector<double> mean;  // d: at first of some rows, by centre() of all
    std::vector<double> sums;  // d: of weighted deviations from that mean
    std::vector<double> cross; // triangle_size(d): sums of weighted products of deviations

    // One pass takes deviations from a mean of some rows; this goes over to the mean of all. Asks poll(),
    // which may throw.
    void centre(const std::function<void()> &poll);
};

// Those of problems over `points`, which are loaded; not centred yet. Throws Error.
std::vector<CrossMoments> moments_of(Session &session, const PgkmPoints &points, std::vector<PgkmProblem> &problems);

} // namespace pgkm
