// long_job.hpp - a problem whose iteration takes a second on a CPU; on request one that a GPU, too,
// works on for a while (7e10 distances); with PGKM_SMALL, one for what is as slow as that is meant for.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "backend/backend.h"
#include "generate.hpp"

namespace conformance {

struct LongJob {
    static constexpr std::int32_t d = 8;
    const bool small = std::getenv("PGKM_SMALL") != nullptr;
    const std::int64_t n;
    const std::int32_t k;

    // Rows repeat after the first `distinct` ones, if that is not 0.
    explicit LongJob(bool for_gpu = false, std::int64_t distinct = 0)
        : n(small     ? 20'000
            : for_gpu ? 4'194'304
                      : 200'000),
          k(small     ? 500
            : for_gpu ? 16'384
                      : 3000),
          values(static_cast<std::size_t>(n * d)), scales(d, PgkmFeatureScale{0.0, 44})
    {
        Generator random(8);
        for (float &value : values)
            value = static_cast<float>(random.uniform(0.0, 1.0));
        for (std::int64_t row = distinct; distinct > 0 && row < n; ++row)
            std::copy_n(values.begin() + row % distinct * d, d, values.begin() + row * d);
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
        problem.feature_scales = scales.data();
        problem.distance_exponent = 40;
    }
    PgkmPoints points() const { return {values.data(), PGKM_FLOAT32, n, d, nullptr}; }

    std::vector<float> values, centroids;
    std::vector<PgkmFeatureScale> scales;
    PgkmProblem problem;
};

} // namespace conformance
