// moments.cpp - means and products of deviations, by a backend's moments().
#include "engine/backends/moments.hpp"

#include <algorithm>

#include "numeric/index.hpp"

namespace pgkm {
namespace {

// The mean of up to a thousand rows spread over all of the problem's. As a shift it is as good as their mean: the
// difference costs less than a factor of n / 1000 on a rounding of 1e-16, in the worst case that these rows are the
// outliers.
template <typename T>
std::vector<double> sample_mean(const T *rows, std::int64_t n, std::int32_t d)
{
    constexpr std::int64_t most_rows = 1000;
    const std::int64_t count = std::min(n, most_rows);
    std::vector<double> mean(at(d));
    for (std::int64_t i = 0; i < count; ++i) {
        // Without the product i * n, which could overflow.
        const T *const row = rows + (n / count * i + n % count * i / count) * d;
        for (std::int32_t f = 0; f < d; ++f)
            mean[at(f)] += static_cast<double>(row[f]) / static_cast<double>(count);
    }
    return mean;
}

std::vector<double> shift_of(const PgkmPoints &points, const PgkmProblem &problem)
{
    const std::int64_t first = problem.first_row * points.d;
    return points.element == PGKM_FLOAT32
               ? sample_mean(static_cast<const float *>(points.values) + first, problem.n_rows, points.d)
               : sample_mean(static_cast<const double *>(points.values) + first, problem.n_rows, points.d);
}

} // namespace

void CrossMoments::centre(const std::function<void()> &poll)
{
    const auto d = static_cast<std::int64_t>(mean.size());
    double *product = cross.data();
    for (std::int64_t a = 0; a < d; ++a) {
        poll();
        for (std::int64_t b = 0; b <= a; ++b)
            *product++ -= sums[at(a)] * (sums[at(b)] / mass);
    }
    for (std::int64_t f = 0; f < d; ++f)
        mean[at(f)] += sums[at(f)] / mass;
}

std::vector<CrossMoments> moments_of(Session &session, const PgkmPoints &points, std::vector<PgkmProblem> &problems)
{
    std::vector<CrossMoments> found;
    std::vector<PgkmMoments> views;
    for (const PgkmProblem &problem : problems) {
        // Rows of other servers are not here to be sampled; their sums of integers are as good.
        const bool all_here = problem.first_row + problem.n_rows <= points.n;
        found.push_back({problem.n_rows, 0.0,
                         all_here ? shift_of(points, problem) : session.summarise(problems, true)[0].mean,
                         std::vector<double>(at(points.d)), std::vector<double>(at(triangle_size(points.d)))});
        views.push_back({found.back().mean.data(), found.back().sums.data(), found.back().cross.data(), 0.0});
    }
    session.run(&PgkmBackend::moments, problems, views.data());
    for (std::size_t i = 0; i < views.size(); ++i)
        found[i].mass = views[i].mass;
    return found;
}

} // namespace pgkm
