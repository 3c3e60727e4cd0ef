// mixture.hpp - Gaussian mixtures by expectation and maximisation (Dempster, Laird, Rubin 1977;
// Ma and Agrawal 2009 for its shape), with the conventions of scikit-learn's GaussianMixture, as an algorithm of jobs.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

extern const Algorithm mixtures;

} // namespace pgkm
