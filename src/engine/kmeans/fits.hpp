// fits.hpp - the fits of one run over loaded rows: problems of the backend with their centroids, and assignments to
// them.
#pragma once

#include <vector>

#include "engine/kmeans/fitter.hpp"
#include "numeric/contract.hpp"
#include "numeric/large_array.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// What an assignment of one problem shall return, as PgkmAssignment; an empty array is not wanted.
struct Assigned {
    LargeArray<std::int32_t> labels;
    LargeArray<double> distances;
    std::vector<PgkmInt128> totals, masses, within;
    std::vector<std::int64_t> sizes;

    PgkmAssignment view()
    {
        const auto of = [](auto &array) { return array.empty() ? nullptr : array.data(); };
        return {of(labels), of(distances), of(totals), of(masses), of(within), of(sizes)};
    }
};

// T is the points' element type. All functions throw Error.
template <typename T>
struct Fits {
    const LoadedRows &rows;
    const FitTask &task;
    Session &session;
    Monitor &monitor;
    std::vector<PgkmProblem> problems;     // of each group, or each k; with restarts at once those of each
    std::vector<std::vector<T>> centroids; // of each problem, where it looks for them: at least k x d

    std::int32_t d() const { return rows.d(); }

    // Up to so many iterations of some problems.
    void iterate(std::vector<PgkmProblem> &some, std::int32_t most) const
    {
        const PgkmFitParams params = {task.options.metric, most};
        session.run(&PgkmBackend::fit, some, &params);
    }

    // Some problems' rows to the nearest of the centroids there.
    void assign(std::vector<PgkmProblem> &some, std::vector<Assigned> &assigned) const
    {
        std::vector<PgkmAssignment> wanted;
        for (Assigned &one : assigned)
            wanted.push_back(one.view());
        session.run(&PgkmBackend::assign, some, wanted.data());
    }

    // What rows of a problem count for, from the sum of their masses.
    double mass_of(const PgkmProblem &problem, Int128 sum) const
    {
        const int exponent = rows.points().weights == nullptr ? 0 : problem.weight_exponent + lower_limb_bits;
        return scale_by(to_double(sum), -exponent);
    }

    // For sums of squares about the problem's centroids.
    void set_distance_exponent(PgkmProblem &problem) const
    {
        problem.distance_exponent = square_exponent(
            distance_bound(rows.group_of(problem), d(), static_cast<const T *>(problem.centroids), problem.k, monitor));
    }
};

} // namespace pgkm
