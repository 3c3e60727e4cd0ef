// weighted_moments.hpp - moments of weighted rows by em_step(): they are the sums of a mixture of one component, to
// which all rows belong.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// labels(n): an array of n zeros, with data(). em_step(mixtures, sums) is the backend's, of these problems.
template <typename Labels, typename EmStep>
void weighted_moments(const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments, Labels &&labels,
                      EmStep &&em_step)
{
    std::int64_t most_rows = 0;
    for (std::int64_t p = 0; p < n_problems; ++p)
        most_rows = std::max(most_rows, problems[p].n_rows);
    const auto zeros = labels(static_cast<std::size_t>(most_rows));
    std::vector<PgkmMixture> mixtures;
    std::vector<PgkmMixtureSums> sums;
    for (std::int64_t p = 0; p < n_problems; ++p) {
        PgkmMoments &out = moments[p];
        mixtures.push_back({1, PGKM_COVARIANCE_FULL, nullptr, out.shift, nullptr, nullptr, zeros.data()});
        sums.push_back({0.0, &out.mass, out.sums, out.cross, nullptr});
    }
    em_step(mixtures.data(), sums.data());
}

} // namespace pgkm
