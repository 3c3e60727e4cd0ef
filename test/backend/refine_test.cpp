// Refined fits: the engine's search over each backend ends at the centroids of the reference.
#include <algorithm>
#include <cmath>

#include "compare.hpp"
#include "engine/kmeans/fitter.hpp"
#include "numeric/contract.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

constexpr std::int32_t iterations = 10;

class Refine : public Conformance {
  protected:
    std::vector<pgkm::Model> fit(std::int32_t threads)
    {
        pgkm::Monitor monitor;
        PgkmOpen open = {};
        open.threads = threads;
        open.device_memory_limit = subject().device_memory_limit;
        open.tuning = subject().tuning;
        open.host = monitor.host();
        pgkm::Session session({subject().table, subject().device, 0}, open);
        std::vector<PgkmGroup> groups;
        pgkm::FitTask task = {{}, {}, false, false};
        for (const Group &group : data().groups) {
            const auto *values =
                data().values.data() + static_cast<std::size_t>(group.first * data().d) * data().element_size();
            const double *weights = data().weights.empty() ? nullptr : data().weights.data() + group.first;
            groups.push_back({values, weights, group.n, group.k});
            task.k.push_back(group.k);
        }
        PgkmRequest request = {};
        request.points = data().points();
        request.groups = groups.data();
        request.n_groups = static_cast<std::int64_t>(groups.size());
        pgkm_options_default(&task.options);
        task.options.init = PGKM_INIT_RANDOM;
        task.options.seed = seed_params(PGKM_INIT_RANDOM, 0).seed;
        task.options.tol = data().tol;
        task.options.max_iter = iterations;
        task.options.refine = 1;
        // Rows of the cosine metric have unit length already, and another division could change them.
        const pgkm::LoadedRows rows(request, task.options, session, monitor);
        task.options.metric = data().metric;
        return pgkm::fit_loaded(rows, task, session, monitor);
    }
};

template <typename T>
testing::AssertionResult same_model(const Problems &expected, std::size_t group, const pgkm::Model &model)
{
    const PgkmProblem &problem = expected.list[group];
    const T *values = static_cast<const T *>(problem.centroids);
    const std::vector<double> centroids(values, values + std::int64_t{problem.k} * expected.data->d);
    if (problem.n_iter != model.n_iter || (problem.converged != 0) != model.converged)
        return testing::AssertionFailure() << "iterations: expected " << problem.n_iter << ", got " << model.n_iter;
    return same(centroids, model.centroids);
}

// By the engine, which tests elsewhere cover.
bool is_refused(const Case &data)
{
    if (data.tol < 0.0)
        return true;
    for (const PgkmSummary &summary : Expected::of(data).summaries().views) {
        double bound = 0.0, largest = 0.0;
        for (std::int32_t f = 0; f < data.d; ++f) {
            bound += (summary.max[f] - summary.min[f]) * (summary.max[f] - summary.min[f]);
            largest = std::max({largest, summary.max[f], -summary.min[f]});
        }
        if (!std::isfinite(bound * summary.max_weight * (1.0 + 0x1p-20)) ||
            (largest > 0.0 && largest * summary.max_weight < pgkm::min_magnitude))
            return true;
    }
    return false;
}

TEST_P(Refine, IsTheReferences)
{
    if (is_refused(data()))
        GTEST_SKIP() << "the engine refuses such rows or such a tol";
    const Problems &expected = Expected::of(data()).refined(iterations);
    for (const std::int32_t threads : {1, 3}) {
        const std::vector<pgkm::Model> models = fit(threads);
        ASSERT_EQ(models.size(), expected.size());
        for (std::size_t g = 0; g < models.size(); ++g)
            EXPECT_TRUE(data().element == PGKM_FLOAT32 ? same_model<float>(expected, g, models[g])
                                                       : same_model<double>(expected, g, models[g]))
                << "group " << g << ", " << threads << " threads";
    }
}

PGKM_CONFORMANCE(Refine, plain_subjects(), case_list(150'000));

} // namespace
} // namespace conformance
