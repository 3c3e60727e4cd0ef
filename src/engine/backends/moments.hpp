// moments.hpp - means and products of deviations, by a backend's moments(): what covariances are made of.
#pragma once

#include <functional>
#include <vector>

#include "backend/calls.hpp"
#include "engine/backends/session.hpp"
#include "numeric/large_array.hpp"

namespace pgkm {

// Of the n rows of one problem.
struct CrossMoments {
    std::int64_t n;
    double mass;              // the sum of their weights, n without
    std::vector<double> mean; // d: at first of some rows, by centre() of all
    std::vector<double> sums; // d: of weighted deviations from that mean
    LargeArray<double> cross; // triangle_size(d): sums of weighted products of deviations

    // One pass takes deviations from a mean of some rows; this goes over to the mean of all. Asks poll(),
    // which may throw.
    void centre(const std::function<void()> &poll);
};

// The mean of up to a thousand rows spread over all n, which may come in pieces. As a shift it is as good as their
// mean: the difference costs less than a factor of n / 1000 on a rounding of 1e-16, in the worst case that these rows
// are the outliers.
class MeanOfSample {
  public:
    MeanOfSample(std::int64_t n, std::int32_t d);

    // Of rows [first, first + n), which follow those of the call before: get(i, values) gives d values of row first +
    // i.
    void add(std::int64_t first, std::int64_t n, const std::function<void(std::int64_t, double *)> &get);

    const std::vector<double> &mean() const { return mean_; }

  private:
    const std::int64_t n_, count_;
    std::int64_t next_ = 0; // of count_
    std::vector<double> mean_, row_;
};

// Those of problems over `points`, which are loaded; not centred yet. shift: of one problem, if it is known. Throws
// Error.
std::vector<CrossMoments> moments_of(Session &session, const PgkmPoints &points, std::vector<PgkmProblem> &problems,
                                     const std::vector<double> &shift = {});

} // namespace pgkm
