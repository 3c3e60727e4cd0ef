// fit.hpp - from a request to models: the choice of a backend, and what follows when it fails.
#pragma once

#include <cstdint>
#include <cmath>
#include <string>
#include <vector>

#include "engine/api.h"
#include "numeric/large_array.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct Model {
    std::int32_t              k = 0;
    std::int32_t              d = 0;
    std::int64_t              n = 0;
    std::vector<double>       centroids; // k x d, in the space of the distance
    std::vector<std::int64_t> sizes;     // k
    std::vector<double>       within_ss; // k
    double                    inertia = 0.0;
    std::int32_t              n_iter = 0;
    bool                      converged = false;
    std::vector<double>       center; // d, or empty
    std::vector<double>       scale;  // d, or empty
    LargeArray<std::int32_t>  labels;    // n, or empty
    LargeArray<double>        distances; // n, or empty
    PgkmQuality               quality = {NAN, NAN, NAN};
};

struct Fits {
    std::vector<Model> models; // one per group of the request, or per k of its sweep up to last_fit()
    std::string        backend;
    std::string        notice;
};

// Runs all fits of a request on the first backend that can; with backend = auto a device that
// fails on the way is followed by the CPU, which gives the same models, and the notice says so.
// The monitor learns of every step. Throws Error.
Fits fit_models(const PgkmFitRequest &request, Monitor &monitor);

// The groups of a request: its own, or its points as the only one.
std::vector<PgkmGroup> groups_of(const PgkmFitRequest &request);

// The last k of a sweep whose fit is not the one before: more clusters than rows are as many as rows.
std::int64_t last_fit(const PgkmFitRequest &request);

} // namespace pgkm
