// kept_iteration.cpp - iterations that a caller has made one at a time: bounds and sums last to the next one.
#include "cpu/operations.hpp"

#include <algorithm>

#include "cpu/fit/iteration.hpp"
#include "cpu/for_problems.hpp"

namespace pgkm::cpu {
namespace {

template <typename T>
struct KeptIteration {
    KeptIteration(Data &data, const PgkmProblem &problem, std::int32_t *labels)
        : k(problem.k),
          iteration(data, is_small(data, problem) ? alone : data.context.pool, problem, Purpose::iterations, labels)
    {
    }
    static bool is_small(const Data &data, const PgkmProblem &problem)
    {
        return static_cast<double>(problem.n_rows) * problem.k * data.points.d < small_work;
    }

    std::int32_t k;
    ThreadPool alone{1};
    Iteration<T> iteration;
};

template <typename T>
bool go_on(Data &data, const PgkmProblem &problem, bool first, KeptLabels &labels, PgkmAssignment &out)
{
    auto kept = std::static_pointer_cast<KeptIteration<T>>(data.iteration);
    LargeArray<std::int32_t> before; // where nothing is kept
    if (first || kept == nullptr || kept.get() != labels.kept || kept->k != problem.k) {
        kept.reset();
        data.iteration.reset();
        before = std::move(labels.values);
        labels.values.assign(static_cast<std::size_t>(problem.n_rows), -1);
        data.iteration = kept = std::make_shared<KeptIteration<T>>(data, problem, labels.values.data());
    }
    labels.kept = nullptr; // if it fails, nothing goes on from it
    bool changed = kept->iteration.run(static_cast<const T *>(problem.centroids));
    if (!first && !before.empty())
        changed = before != labels.values;
    labels.kept = kept.get();
    const ClusterSums<T> &sums = kept->iteration.sums();
    std::transform(sums.totals().begin(), sums.totals().end(), out.totals, split);
    std::transform(sums.masses().begin(), sums.masses().end(), out.masses, split);
    return changed;
}

} // namespace

bool iterate_on(Data &data, const PgkmProblem &problem, bool first, KeptLabels &labels, PgkmAssignment &sums)
{
    bool changed = false;
    with_element(data.points,
                 [&](auto element) { changed = go_on<decltype(element)>(data, problem, first, labels, sums); });
    return changed;
}

} // namespace pgkm::cpu
