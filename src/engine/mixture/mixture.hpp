// mixture.hpp - Gaussian mixtures by expectation and maximisation (Dempster, Laird, Rubin 1977;
// Ma and Agrawal 2009 for its shape), with the conventions of scikit-learn's GaussianMixture.
#pragma once

#include <string>
#include <vector>

#include "engine/mixture/parameters.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct MixtureModel {
    MixtureParameters parameters;
    std::int64_t n = 0;
    double log_likelihood = 0.0;
    std::vector<double> trace; // one per iteration
    bool converged = false;
    std::vector<std::int32_t> labels; // n, or empty
};

struct MixtureFits {
    std::vector<MixtureModel> models; // one per group of the request
    std::string notice;
};

// All fits of a request on the first backend that can. Throws Error.
MixtureFits fit_mixtures(const PgkmMixtureRequest &request, Monitor &monitor);

// The groups of a request: its own, or its points as the only one.
std::vector<PgkmGroup> mixture_groups(const PgkmMixtureRequest &request);

} // namespace pgkm
