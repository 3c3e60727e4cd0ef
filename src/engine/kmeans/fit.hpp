// fit.hpp - what a fit of k-means finds.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/api.h"
#include "engine/job/algorithm.hpp"
#include "numeric/large_array.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

inline constexpr PgkmQuality no_quality = {NAN, NAN, NAN, NAN, NAN, NAN};

// What a model has beside its arrays.
struct Figures {
    std::int32_t k = 0;
    std::int32_t d = 0;
    std::int64_t n = 0;
    double inertia = 0.0;
    PgkmInit init = PGKM_INIT_AUTO;
    std::int32_t n_iter = 0;
    bool converged = false;
    PgkmQuality quality = no_quality;
    const char *suggestion = nullptr;
};

struct Model : Figures {
    Model() = default;
    explicit Model(const Figures &figures) : Figures(figures) {}

    std::vector<double> centroids;   // k x d, in the space of the distance
    std::vector<std::int64_t> sizes; // k
    std::vector<double> within_ss;   // k
    std::vector<double> center;      // d, or empty
    std::vector<double> scale;       // d, or empty
    std::vector<double> mean;        // d: of the rows, unless standardized; empty where it is not known (tol 0)
    std::vector<double> deviation;   // likewise: the standard deviation
    std::vector<double> means;       // k x d: of each cluster's rows, or empty
    std::vector<double> masses;      // k: what they count for, or empty
    LargeArray<std::int32_t> labels; // n, or empty
    LargeArray<double> distances;    // n, or empty
};

} // namespace pgkm
