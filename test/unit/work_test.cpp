// Estimates of work against the processor time that the work takes.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "../support/watched_job.hpp"
#include "engine/job/monitor.hpp"

namespace {

using namespace pgkm::test;

constexpr PgkmInit inits[] = {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM, PGKM_INIT_FIRST};
constexpr PgkmCovariance types[] = {PGKM_COVARIANCE_FULL, PGKM_COVARIANCE_TIED, PGKM_COVARIANCE_DIAG,
                                    PGKM_COVARIANCE_SPHERICAL};

PgkmRequest clusters(const std::vector<float> &rows, const JobShape &shape)
{
    PgkmRequest request = request_for(PGKM_KMEANS, rows, shape);
    pgkm_options_default(&request.kmeans);
    return request;
}

PgkmRequest mixture(const std::vector<float> &rows, const JobShape &shape, PgkmCovariance type)
{
    PgkmRequest request = request_for(PGKM_MIXTURE, rows, shape);
    pgkm_mixture_options_default(&request.mixture);
    request.mixture.covariance_type = type;
    request.mixture.reg_covar = 1.0;
    return request;
}

// No work takes ten times as long as it is estimated to; the second run counts.
void expect_covered(const PgkmRequest &request, const JobShape &shape, const char *what)
{
    const double estimate = pgkm::work_of(pgkm::algorithm_of(request), request).most;
    double seconds = 0.0;
    for (int run_number = 0; run_number < (judges_time ? 2 : 1); ++run_number) {
        const double start = cpu_seconds();
        pgkm::Monitor monitor;
        run(request, monitor);
        seconds = cpu_seconds() - start;
    }
    if (judges_time) {
        EXPECT_LE(seconds, 10.0 * estimate) << what << " of " << shape.n << " x " << shape.d << ", k = " << shape.k
                                            << ": estimated " << estimate << " s";
    }
}

TEST(Work, CoversClusters)
{
    for (const JobShape &shape : {JobShape{1, 1, 1},
                                  {40, 2, 3},
                                  {3, 20'000, 3},
                                  {50, 2000, 2},
                                  {1000, 2, 300},
                                  {200, 100, 200},
                                  {5000, 8, 10},
                                  {20'000, 2, 2}}) {
        const std::vector<float> rows = noise(shape);
        PgkmRequest request = clusters(rows, shape);
        request.kmeans.max_iter = 10;
        request.kmeans.standardize = shape.n > 1 ? 1 : 0;
        for (const PgkmInit init : inits) {
            request.kmeans.init = init;
            request.kmeans.refine = 0;
            expect_covered(request, shape, "clusters");
            request.kmeans.refine = 1;
            expect_covered(request, shape, "refined clusters");
        }
    }
}

TEST(Work, CoversSweepsAndGroups)
{
    const JobShape shape = {1000, 4, 2};
    const std::vector<float> rows = noise(shape);
    PgkmRequest request = clusters(rows, shape);
    request.kmeans.max_iter = 3;
    request.k_last = 40;
    expect_covered(request, shape, "a sweep");
    std::vector<PgkmGroup> groups;
    for (std::int64_t first = 0; first < shape.n; first += 4)
        groups.push_back({rows.data() + first * shape.d, nullptr, 4, shape.k});
    request.k_last = 0;
    request.groups = groups.data();
    request.n_groups = static_cast<std::int64_t>(groups.size());
    expect_covered(request, shape, "groups");
}

TEST(Work, CoversMixtures)
{
    for (const JobShape &shape :
         {JobShape{1, 1, 1}, {40, 2, 3}, {40, 300, 1}, {30, 100, 5}, {3, 300, 1}, {5000, 3, 4}, {400, 3, 50}})
        for (const PgkmCovariance type : types) {
            const std::vector<float> rows = noise(shape);
            PgkmRequest request = mixture(rows, shape, type);
            request.mixture.tol = 0.0;
            request.mixture.max_iter = 2;
            expect_covered(request, shape, pgkm_covariance_name(type));
        }
}

TEST(Work, CoversComponents)
{
    for (const JobShape &shape :
         {JobShape{1, 1, 0}, {40, 3, 0}, {3, 128, 0}, {3, 129, 0}, {10, 300, 0}, {2000, 60, 0}, {50'000, 4, 0}}) {
        const std::vector<float> rows = noise(shape);
        expect_covered(request_for(PGKM_PCA, rows, shape), shape, "components");
    }
}

// Where a job runs: what takes long has a thread that can be cancelled, what many small groups ask for has none.
TEST(Work, TellsWhatIsBrief)
{
    const std::vector<float> none;
    const auto brief = [](const PgkmRequest &request) {
        return pgkm::is_brief(pgkm::work_of(pgkm::algorithm_of(request), request));
    };
    EXPECT_TRUE(brief(clusters(none, {40, 2, 3})));
    EXPECT_FALSE(brief(clusters(none, {3, 500'000, 3})));
    for (const PgkmCovariance type : types) {
        EXPECT_TRUE(brief(mixture(none, {40, 2, 3}, type)));
        EXPECT_FALSE(brief(mixture(none, {40, 500'000, 1}, type)));
    }
    EXPECT_FALSE(brief(mixture(none, {3, 3000, 1}, PGKM_COVARIANCE_FULL)));
    EXPECT_FALSE(brief(mixture(none, {40, 3000, 1}, PGKM_COVARIANCE_TIED)));
    EXPECT_TRUE(brief(request_for(PGKM_PCA, none, {40, 3, 0})));
    EXPECT_FALSE(brief(request_for(PGKM_PCA, none, {3, 300, 0})));
    const std::vector<PgkmGroup> groups(5000, PgkmGroup{nullptr, nullptr, 1, 1});
    PgkmRequest many = clusters(none, {1, 1, 1});
    many.groups = groups.data();
    many.n_groups = static_cast<std::int64_t>(groups.size());
    EXPECT_FALSE(brief(many));
}

} // namespace
