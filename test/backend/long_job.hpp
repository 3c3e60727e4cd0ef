// long_job.hpp - a problem that takes seconds on a CPU; with PGKM_SMALL, on what is as slow as
// that is meant for.
#pragma once

#include <cstdlib>
#include <vector>

#include "backend/backend.h"
#include "generate.hpp"

namespace conformance {

struct LongJob {
    static constexpr std::int32_t d = 8;
    const bool small = std::getenv("PGKM_SMALL") != nullptr;
    const std::int32_t k = small ? 500 : 3000;
    const std::int64_t n = small ? 20'000 : 200'000;

    LongJob() : values(static_cast<std::size_t>(n * d)), exponents(d, 44)
    {
        Generator random(8);
        for (float &value : values)
            value = static_cast<float>(random.uniform(0.0, 1.0));
        reset();
    }
    LongJob(const LongJob &) = delete;

    // Back to the initial centroids: the first k rows.
    void reset()
    {
        centroids.assign(values.begin(), values.begin() + k * d);
        problem = {};
        problem.n_rows = n;
        problem.k = k;
        problem.centroids = centroids.data();
        problem.feature_exponent = exponents.data();
        problem.distance_exponent = 40;
    }
    PgkmPoints points() const { return {values.data(), PGKM_FLOAT32, n, d, nullptr}; }

    std::vector<float> values, centroids;
    std::vector<std::int32_t> exponents;
    PgkmProblem problem;
};

} // namespace conformance
