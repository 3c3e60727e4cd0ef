// moments.cpp - means and products of deviations, by a backend's moments().
#include "engine/backends/moments.hpp"

#include <algorithm>

#include "numeric/index.hpp"

namespace pgkm {
namespace {

constexpr std::int64_t most_sampled = 1000;

template <typename T>
std::vector<double> sample_mean(const T *rows, std::int64_t n, std::int32_t d)
{
    MeanOfSample mean(n, d);
    mean.add(0, n, [&](std::int64_t i, double *row) { std::copy_n(rows + i * d, d, row); });
    return mean.mean();
}

std::vector<double> shift_of(const PgkmPoints &points, const PgkmProblem &problem)
{
    const std::int64_t first = problem.first_row * points.d;
    return points.element == PGKM_FLOAT32
               ? sample_mean(static_cast<const float *>(points.values) + first, problem.n_rows, points.d)
               : sample_mean(static_cast<const double *>(points.values) + first, problem.n_rows, points.d);
}

} // namespace

MeanOfSample::MeanOfSample(std::int64_t n, std::int32_t d)
    : n_(n), count_(std::min(n, most_sampled)), mean_(at(d)), row_(at(d))
{
}

void MeanOfSample::add(std::int64_t first, std::int64_t n, const std::function<void(std::int64_t, double *)> &get)
{
    for (; next_ < count_; ++next_) {
        // Without the product next_ * n_, which could overflow.
        const std::int64_t number = n_ / count_ * next_ + n_ % count_ * next_ / count_;
        if (number >= first + n)
            return;
        get(number - first, row_.data());
        for (std::size_t f = 0; f < mean_.size(); ++f)
            mean_[f] += row_[f] / static_cast<double>(count_);
    }
}

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

std::vector<CrossMoments> moments_of(Session &session, const PgkmPoints &points, std::vector<PgkmProblem> &problems,
                                     const std::vector<double> &shift)
{
    std::vector<CrossMoments> found;
    std::vector<PgkmMoments> views;
    for (const PgkmProblem &problem : problems) {
        // Rows of other servers are not here to be sampled; their sums of integers are as good.
        const bool all_here = problem.first_row + problem.n_rows <= points.n;
        found.push_back({problem.n_rows, 0.0,
                         !shift.empty() ? shift
                         : all_here     ? shift_of(points, problem)
                                        : session.summarise(problems, true)[0].mean,
                         std::vector<double>(at(points.d)), LargeArray<double>(at(triangle_size(points.d)))});
        views.push_back({found.back().mean.data(), found.back().sums.data(), found.back().cross.data(), 0.0});
    }
    session.run(&PgkmBackend::moments, problems, views.data());
    for (std::size_t i = 0; i < views.size(); ++i)
        found[i].mass = views[i].mass;
    return found;
}

} // namespace pgkm
