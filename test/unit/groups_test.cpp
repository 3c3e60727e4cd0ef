// groups_test - many fits in one job: groups, sweeps, rows that stay.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "fit_run.hpp"

namespace {

// Groups of one request give what each gives alone.
class Groups : public testing::Test {
  protected:
    static constexpr std::int32_t d = 3;

    void SetUp() override
    {
        for (int g = 0; g < 40; ++g) {
            const std::int64_t n = 1 + g * g % 97;
            std::vector<double> rows, row_weights;
            for (std::int64_t i = 0; i < n * d; ++i)
                rows.push_back(std::sin(static_cast<double>(i * i + 31 * g)) * (g + 1) + 0.1);
            for (std::int64_t i = 0; i < n; ++i)
                row_weights.push_back(1.0 + static_cast<double>((i + g) % 4));
            values.push_back(rows);
            weights.push_back(row_weights);
        }
    }

    void expect_same(PgkmOptions options, bool weighted)
    {
        std::vector<PgkmGroup> groups;
        for (std::size_t g = 0; g < values.size(); ++g)
            groups.push_back({values[g].data(), weighted ? weights[g].data() : nullptr,
                              static_cast<std::int64_t>(weights[g].size()), 1 + static_cast<std::int64_t>(g % 6)});
        PgkmRequest together = request_for(values[0], d, 1);
        together.kmeans = options;
        together.points.values = nullptr;
        together.points.n = 0;
        together.want_labels = together.want_distances = 0;
        together.groups = groups.data();
        together.n_groups = static_cast<std::int64_t>(groups.size());
        const FitRun all(together);
        ASSERT_EQ(all.error.status, PGKM_OK) << all.error.text;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            PgkmRequest alone = request_for(values[g], d, groups[g].k);
            alone.kmeans = options;
            alone.points.weights = groups[g].weights;
            const FitRun run(alone);
            PgkmResult result = {};
            ASSERT_EQ(all.get(static_cast<std::int64_t>(g), result), PGKM_OK);
            ASSERT_EQ(result.k, run.result.k) << g;
            EXPECT_EQ(result.n, run.result.n) << g;
            EXPECT_EQ(result.n_iter, run.result.n_iter) << g;
            EXPECT_EQ(result.converged, run.result.converged) << g;
            EXPECT_EQ(result.inertia, run.result.inertia) << g;
            EXPECT_TRUE(std::equal(result.centroids, result.centroids + result.k * d, run.result.centroids)) << g;
            EXPECT_TRUE(std::equal(result.sizes, result.sizes + result.k, run.result.sizes)) << g;
            ASSERT_EQ(result.center == nullptr, run.result.center == nullptr) << g;
            if (result.center != nullptr) {
                EXPECT_TRUE(std::equal(result.center, result.center + d, run.result.center)) << g;
                EXPECT_TRUE(std::equal(result.scale, result.scale + d, run.result.scale)) << g;
            }
        }
        PgkmResult none;
        EXPECT_EQ(all.get(together.n_groups, none), PGKM_INTERNAL);
    }

    std::vector<std::vector<double>> values, weights;
};

TEST_F(Groups, AreFittedAsAlone)
{
    PgkmOptions options;
    pgkm_options_default(&options);
    expect_same(options, false);
    expect_same(options, true);
    options.n_init = 4;
    options.init = PGKM_INIT_RANDOM;
    expect_same(options, false);
    options.refine = 1;
    expect_same(options, false);
    expect_same(options, true);
}

TEST_F(Groups, AreTransformedAsAlone)
{
    PgkmOptions options;
    pgkm_options_default(&options);
    options.standardize = 1;
    expect_same(options, false);
    options.metric = PGKM_COSINE;
    options.standardize = 0;
    expect_same(options, true);
}

TEST_F(Groups, OneOfThemCanBeWrong)
{
    const std::vector<double> zero(d, 0.0);
    const PgkmGroup groups[] = {{values[5].data(), nullptr, 26, 2}, {zero.data(), nullptr, 1, 1}};
    PgkmRequest request = request_for(values[0], d, 1);
    request.kmeans.metric = PGKM_COSINE;
    request.groups = groups;
    request.n_groups = 2;
    const FitRun run(request);
    EXPECT_EQ(run.error.status, PGKM_INVALID);
}

// What stays of one fit does not show in the next.
TEST(Resident, GivesTheSame)
{
    std::vector<double> rows;
    for (int i = 0; i < 3000; ++i)
        rows.push_back(std::sin(i * 12.9898) * 100.0 + i % 7);
    PgkmResident *resident = pgkm_resident_create();
    ASSERT_NE(resident, nullptr);
    for (const std::int64_t k : {3, 8, 3, 50}) {
        for (const PgkmMetric metric : {PGKM_L2, PGKM_L2, PGKM_COSINE}) {
            PgkmRequest request = request_for(rows, 3, k);
            request.kmeans.metric = metric;
            request.kmeans.tol = k == 8 ? 0.0 : 1e-4;
            const FitRun alone(request);
            request.resident = resident;
            const FitRun run(request);
            ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
            ASSERT_EQ(run.result.k, alone.result.k);
            EXPECT_EQ(run.result.inertia, alone.result.inertia);
            EXPECT_EQ(run.result.n_iter, alone.result.n_iter);
            EXPECT_TRUE(std::equal(run.result.labels, run.result.labels + run.result.n, alone.result.labels));
        }
    }
    PgkmRequest wrong = request_for(rows, 3, 3);
    wrong.resident = resident;
    wrong.settings.tuning.assignment = "none such";
    EXPECT_EQ(FitRun(wrong).error.status, PGKM_UNSUPPORTED);
    pgkm_resident_free(resident);
    pgkm_resident_free(nullptr);
}

// Rows without their weights, fewer of them and others are other rows, whichever comes first.
TEST(Resident, KnowsTheRows)
{
    std::vector<double> rows, others, weights;
    for (int i = 0; i < 3000; ++i) {
        rows.push_back(std::sin(i * 12.9898) * 100.0 + i % 7);
        others.push_back(std::cos(i * 78.233) * 10.0);
        weights.push_back(1.0 + i % 5);
    }
    PgkmRequest plain = request_for(rows, 3, 4), weighted = plain, fewer = plain, other = request_for(others, 3, 4);
    weighted.points.weights = weights.data();
    fewer.points.n = 500;
    for (const PgkmAlgorithm algorithm : {PGKM_KMEANS, PGKM_MIXTURE, PGKM_PCA}) {
        PgkmResident *resident = pgkm_resident_create();
        ASSERT_NE(resident, nullptr);
        for (PgkmRequest request : {plain, weighted, fewer, weighted, other, plain, other, weighted}) {
            const PgkmRequest clusters = request;
            request.algorithm = algorithm;
            if (algorithm == PGKM_MIXTURE)
                pgkm_mixture_options_default(&request.mixture);
            if (algorithm == PGKM_PCA)
                request.pca = {};
            for (PgkmRequest one : {request, clusters}) {
                const FitRun alone(one);
                one.resident = resident;
                const FitRun run(one);
                ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
                EXPECT_EQ(run.result.n, alone.result.n);
                EXPECT_EQ(run.result.inertia, alone.result.inertia);
                EXPECT_EQ(run.result.log_likelihood, alone.result.log_likelihood);
                if (algorithm == PGKM_PCA && one.algorithm == PGKM_PCA) {
                    EXPECT_TRUE(std::equal(run.result.mean, run.result.mean + 3, alone.result.mean));
                }
            }
        }
        pgkm_resident_free(resident);
    }
}

// Nor does what one algorithm leaves there show in another.
TEST(Resident, ServesEachAlgorithm)
{
    std::vector<double> rows;
    for (int i = 0; i < 3000; ++i)
        rows.push_back(std::sin(i * 12.9898) * 100.0 + i % 7);
    PgkmResident *resident = pgkm_resident_create();
    ASSERT_NE(resident, nullptr);
    PgkmRequest clusters = request_for(rows, 3, 4), unit = clusters, mixture = clusters, components = clusters;
    unit.kmeans.standardize = 1;
    mixture.algorithm = PGKM_MIXTURE;
    pgkm_mixture_options_default(&mixture.mixture);
    mixture.mixture.covariance_type = PGKM_COVARIANCE_TIED;
    components.algorithm = PGKM_PCA;
    components.pca = {};
    for (PgkmRequest request : {components, mixture, clusters, unit, mixture, unit, components, clusters}) {
        const FitRun alone(request);
        request.resident = resident;
        const FitRun run(request);
        const PgkmResult &a = alone.result, &b = run.result;
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        ASSERT_EQ(a.k, b.k);
        EXPECT_EQ(a.n_iter, b.n_iter);
        for (const auto field : {&PgkmResult::centroids, &PgkmResult::means, &PgkmResult::components}) {
            ASSERT_EQ(a.*field == nullptr, b.*field == nullptr);
            EXPECT_TRUE(a.*field == nullptr || std::equal(a.*field, a.*field + a.k * a.d, b.*field));
        }
    }
    pgkm_resident_free(resident);
}

TEST(Sweep, GivesEachFitAndItsQuality)
{
    PgkmRequest request = request_for(two_clouds, 2, 1);
    request.k_last = 6;
    const FitRun sweep(request);
    ASSERT_EQ(sweep.error.status, PGKM_OK) << sweep.error.text;
    for (std::int64_t k = 1; k <= 6; ++k) {
        PgkmResult result;
        ASSERT_EQ(sweep.get(k - 1, result), PGKM_OK);
        const FitRun alone(request_for(two_clouds, 2, k));
        EXPECT_EQ(result.inertia, alone.result.inertia) << k;
        EXPECT_EQ(result.labels, nullptr);
        EXPECT_EQ(std::isnan(result.quality.davies_bouldin), k == 1 || k == 6) << k;
    }
    // Two clouds of three rows (0,0), (0,1), (1,0), 10 apart in both features.
    PgkmResult two;
    ASSERT_EQ(sweep.get(1, two), PGKM_OK);
    const double spread = (std::sqrt(2.0) / 3.0 + 2.0 * std::sqrt(5.0) / 3.0) / 3.0;
    EXPECT_NEAR(two.quality.davies_bouldin, 2.0 * spread / std::sqrt(200.0), 1e-12);
    EXPECT_NEAR(two.quality.calinski_harabasz, 6.0 * 50.0 * 4.0 / (8.0 / 3.0), 1e-9);
    // The arrays of all models together would pass any limit that holds for one.
    EXPECT_EQ(two.k, 2);
    EXPECT_EQ(two.centroids, nullptr);
    EXPECT_EQ(two.sizes, nullptr);
    EXPECT_EQ(two.within_ss, nullptr);
    request.k = 3;
    request.k_last = 2;
    EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID);
}

// Of each group the fit of the k that its own sweep suggests; ranges pass what is judged together.
TEST_F(Groups, HaveTheModelThatTheirSweepSuggests)
{
    for (const bool weighted : {false, true}) {
        std::vector<PgkmGroup> groups;
        for (std::size_t g = 0; g < values.size(); ++g)
            groups.push_back({values[g].data(), weighted ? weights[g].data() : nullptr,
                              static_cast<std::int64_t>(weights[g].size()), 1 + static_cast<std::int64_t>(g % 3)});
        PgkmRequest together = request_for(values[0], d, 1);
        together.points.values = nullptr;
        together.points.n = 0;
        together.want_labels = together.want_distances = 0;
        together.groups = groups.data();
        together.n_groups = static_cast<std::int64_t>(groups.size());
        together.k_last = 20;
        together.silhouette_rows = -1;
        EXPECT_EQ(FitRun(together).error.status, PGKM_INVALID); // all figures are of one group alone
        together.suggest = 1;
        together.settings.cpu_threads = 3;
        const FitRun all(together);
        ASSERT_EQ(all.error.status, PGKM_OK) << all.error.text;
        std::int64_t most = 0;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            PgkmRequest alone = request_for(values[g], d, groups[g].k);
            alone.points.weights = groups[g].weights;
            alone.want_labels = 0;
            alone.k_last = 20;
            alone.silhouette_rows = -1;
            const FitRun sweep(alone);
            std::int64_t suggested = 0, suggestions = 0;
            PgkmResult result;
            for (std::int64_t i = 0; sweep.get(i, result) == PGKM_OK; ++i) {
                suggested = result.suggestion != nullptr ? i : suggested;
                suggestions += result.suggestion != nullptr ? 1 : 0;
            }
            const double mass = weighted ? std::accumulate(weights[g].begin(), weights[g].end(), 0.0)
                                         : static_cast<double>(groups[g].n); // as many clusters have no index
            EXPECT_EQ(suggestions, mass > static_cast<double>(groups[g].k) ? 1 : 0) << g;
            ASSERT_EQ(all.get(static_cast<std::int64_t>(g), result), PGKM_OK);
            EXPECT_EQ(result.labels, nullptr);
            alone.suggest = 1; // the same without groups
            const FitRun one(alone);
            alone.k += suggested;
            alone.k_last = alone.suggest = 0;
            const FitRun fit(alone);
            most = std::max(most, alone.k);
            for (const PgkmResult &expected : {one.result, fit.result}) {
                ASSERT_EQ(result.k, expected.k) << g;
                EXPECT_EQ(result.inertia, expected.inertia) << g;
                EXPECT_TRUE(std::equal(result.centroids, result.centroids + result.k * d, expected.centroids)) << g;
                EXPECT_TRUE(std::equal(result.sizes, result.sizes + result.k, expected.sizes)) << g;
                EXPECT_TRUE(std::equal(result.feature_means, result.feature_means + d, expected.feature_means)) << g;
            }
        }
        EXPECT_GT(most, 9);
    }
}

// Six rows cannot be more than six clusters: there it ends, whatever was asked for.
TEST(Sweep, EndsAtTheNumberOfRows)
{
    PgkmRequest request = request_for(two_clouds, 2, 5);
    request.k_last = INT32_MAX;
    request.settings.memory_limit = 2000000;
    const FitRun sweep(request);
    ASSERT_EQ(sweep.error.status, PGKM_OK) << sweep.error.text;
    EXPECT_EQ(pgkm_sweep_last(&request), 6);
    for (const std::int64_t k : {std::int64_t{5}, std::int64_t{6}}) {
        PgkmResult result;
        ASSERT_EQ(sweep.get(k - 5, result), PGKM_OK);
        const FitRun alone(request_for(two_clouds, 2, k));
        EXPECT_EQ(result.k, alone.result.k) << k;
        EXPECT_EQ(result.inertia, alone.result.inertia) << k;
        EXPECT_EQ(result.n_iter, alone.result.n_iter) << k;
        EXPECT_EQ(result.converged, alone.result.converged) << k;
    }
    PgkmResult none;
    EXPECT_EQ(sweep.get(2, none), PGKM_INTERNAL);
    EXPECT_EQ(sweep.get(-1, none), PGKM_INTERNAL);
    request.k = 9;
    EXPECT_EQ(pgkm_sweep_last(&request), 9);
}

// However little each of them is to do, many fits are no work for the server's thread, which
// would hear of no interrupt meanwhile.
TEST(Fit, ManySmallOnesCanBeCancelled)
{
    const std::vector<double> row = {1.0};
    const std::vector<double> rows(1500, 1.0);
    PgkmRequest sweep = request_for(rows, 1, 1);
    sweep.k_last = 1500;
    const std::vector<PgkmGroup> groups(300000, {row.data(), nullptr, 1, 1});
    PgkmRequest grouped = request_for(row, 1, 1);
    grouped.groups = groups.data();
    grouped.n_groups = static_cast<std::int64_t>(groups.size());
    for (const PgkmRequest &request : {sweep, grouped}) {
        PgkmJob *job = nullptr;
        PgkmError error = {};
        ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK) << error.text;
        EXPECT_EQ(pgkm_job_wait(job, 0), 0) << "it had ended when its start returned";
        pgkm_job_free(job);
    }
}

} // namespace
