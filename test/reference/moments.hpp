// moments.hpp - the sums of PCA in the plainest code: one row after the other. In long
// double, so that the comparison shows a backend's rounding and not the reference's.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

template <typename T>
void reference_moments_of(const PgkmPoints &points, const PgkmProblem &problem, PgkmMoments &out)
{
    const auto d = static_cast<std::size_t>(points.d);
    std::vector<long double> sums(d), cross(d * (d + 1) / 2);
    long double mass = 0.0;
    for (std::int64_t i = 0; i < problem.n_rows; ++i) {
        const T *const x = static_cast<const T *>(points.values) + (problem.first_row + i) * points.d;
        const long double weight = points.weights == nullptr ? 1.0 : points.weights[problem.first_row + i];
        std::vector<double> deviation;
        mass += weight;
        for (std::size_t f = 0; f < d; ++f)
            deviation.push_back(static_cast<double>(x[f]) - out.shift[f]);
        for (std::size_t a = 0, at = 0; a < d; ++a) {
            sums[a] += weight * deviation[a];
            for (std::size_t b = 0; b <= a; ++b, ++at)
                cross[at] += weight * deviation[a] * deviation[b];
        }
    }
    const auto rounded = [](long double sum) { return static_cast<double>(sum); };
    out.mass = rounded(mass);
    std::transform(sums.begin(), sums.end(), out.sums, rounded);
    std::transform(cross.begin(), cross.end(), out.cross, rounded);
}

} // namespace pgkm
