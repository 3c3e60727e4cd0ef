// fitter.hpp - EM in one session: the mixtures of all groups of a request side by side.
//
// An iteration is one call of the backend for all groups that have not converged, and M steps that
// threads share out; what a group's model becomes does not depend on the others.
#pragma once

#include <vector>

#include "engine/job/algorithm.hpp"
#include "engine/mixture/parameters.hpp"
#include "engine/rows/prepare.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct MixtureModel {
    MixtureParameters parameters;
    std::int64_t n = 0;
    double mass = 0.0;     // of the rows: n without weights
    Standardization units; // of the rows as fitted; empty: those of the data
    double log_likelihood = 0.0;
    std::vector<double> trace; // one per iteration
    bool converged = false;
    std::vector<std::int32_t> labels; // n, or empty
};

// A model for each group of a checked request, whose rows are loaded into the place unless they are there. Throws
// Error.
std::vector<MixtureModel> fit_mixtures(const PgkmRequest &request, Workplace &place, Monitor &monitor);

} // namespace pgkm
