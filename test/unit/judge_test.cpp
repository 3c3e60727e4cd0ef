// judge_test - labels that are given: the indices of each cluster beside a sweep's and all pairs of rows; jobs that are
// cancelled, refused, given as much memory as they are estimated to need.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "draws.hpp"
#include "fit_run.hpp"

namespace {

constexpr std::int32_t d = 2;
using Labels = std::vector<std::int32_t>;

PgkmRequest judgement(const Values &rows, const Labels &labels, std::int64_t sample = -1)
{
    PgkmRequest request = request_for(rows, d, *std::max_element(labels.begin(), labels.end()) + 1);
    request.algorithm = PGKM_JUDGEMENT;
    request.want_labels = request.want_distances = 0;
    request.labels = labels.data();
    request.silhouette_rows = sample;
    return request;
}

// Clouds with labels that do not quite follow them; the last row is alone in its cluster.
struct Labelled {
    Values rows = Draws(5).clouds(600, d, 4, 3.0);
    Labels labels;
    Labelled()
    {
        for (std::size_t i = 0; i < 600; ++i)
            labels.push_back(rows[2 * i] > 0.0 ? static_cast<std::int32_t>(i % 2) : 2);
        labels.back() = 3;
    }
};

TEST(Judge, AgreesWithASweepOfTheSameLabels)
{
    const Values rows = Draws(7).clouds(2000, d, 5, 4.0);
    PgkmRequest request = request_for(rows, d, 5);
    request.kmeans.tol = 0.0;
    const FitRun fit(request);
    ASSERT_EQ(fit.error.status, PGKM_OK) << fit.error.text;
    request.k_last = 5;
    request.silhouette_rows = 2000;
    const FitRun swept(request);
    const Labels labels(fit.result.labels, fit.result.labels + 2000);
    const FitRun judged(judgement(rows, labels, 2000));
    ASSERT_EQ(judged.error.status, PGKM_OK) << judged.error.text;
    const PgkmQuality &one = judged.result.quality, &other = swept.result.quality;
    EXPECT_EQ(judged.result.inertia, fit.result.inertia);
    EXPECT_EQ(one.davies_bouldin, other.davies_bouldin);
    EXPECT_EQ(one.calinski_harabasz, other.calinski_harabasz);
    EXPECT_NEAR(one.silhouette, other.silhouette, 1e-13);
    EXPECT_EQ(one.silhouette_error, 0.0);
    for (int j = 0; j < 5; ++j) {
        EXPECT_EQ(judged.result.sizes[j], fit.result.sizes[j]);
        EXPECT_EQ(judged.result.within_ss[j], fit.result.within_ss[j]);
        EXPECT_EQ(judged.result.clusters[j].mass, static_cast<double>(fit.result.sizes[j]));
    }
}

TEST(Judge, FindsTheSilhouetteOfEachRowByAllPairs)
{
    const Labelled given;
    const FitRun run(judgement(given.rows, given.labels, 600));
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    Values means(4), sums(4);
    for (std::size_t i = 0; i < 600; ++i) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t j = 0; j < 600; ++j)
            sums[static_cast<std::size_t>(given.labels[j])] +=
                std::hypot(given.rows[2 * i] - given.rows[2 * j], given.rows[2 * i + 1] - given.rows[2 * j + 1]);
        const auto own = static_cast<std::size_t>(given.labels[i]);
        for (std::size_t c = 0; c < 4; ++c)
            means[c] = c == own ? INFINITY : sums[c] / static_cast<double>(run.result.sizes[c]);
        const auto nearest = std::min_element(means.begin(), means.end());
        const double a = sums[own] / (static_cast<double>(run.result.sizes[own]) - 1.0);
        const double wanted = own == 3 ? 0.0 : (*nearest - a) / std::max(*nearest, a);
        EXPECT_NEAR(run.result.silhouettes[i].value, wanted, 1e-12) << i;
        EXPECT_EQ(run.result.silhouettes[i].nearest, nearest - means.begin()) << i;
    }
}

// Rows that repeat under several labels are drawn as such, in whatever order they come.
TEST(Judge, DrawsTheSameRowsInAnyOrderAndWithAnyThreads)
{
    Labelled given;
    for (double &value : given.rows)
        value = std::rint(value);
    PgkmRequest request = judgement(given.rows, given.labels, 100);
    request.settings.cpu_threads = 1;
    const FitRun first(request);
    std::reverse(given.labels.begin(), given.labels.end());
    std::reverse(given.rows.begin(), given.rows.end());
    for (std::size_t i = 0; i < given.rows.size(); i += d)
        std::swap(given.rows[i], given.rows[i + 1]);
    request.settings.cpu_threads = 3;
    const FitRun second(request);
    ASSERT_EQ(second.error.status, PGKM_OK) << second.error.text;
    EXPECT_EQ(first.result.quality.silhouette, second.result.quality.silhouette);
    EXPECT_EQ(first.result.quality.silhouette_error, second.result.quality.silhouette_error);
    EXPECT_EQ(first.result.inertia, second.result.inertia);
    for (int j = 0; j < 4; ++j) {
        EXPECT_EQ(first.result.clusters[j].silhouette, second.result.clusters[j].silhouette);
        EXPECT_EQ(first.result.clusters[j].silhouette_error > 0.0, j < 3);
    }
    const PgkmRowSilhouette *const rows = second.result.silhouettes;
    const auto drawn = std::count_if(rows, rows + 600, [](const auto &row) { return !std::isnan(row.value); });
    EXPECT_GE(drawn, 97);
    EXPECT_LE(drawn, 104);
}

TEST(Judge, LeavesOutWhatIsNotDefined)
{
    const Values rows = {1, 1, 2, 2, 5, 5};
    for (const Labels &labels : {Labels{0, 0, 0}, Labels{0, 1, 2}}) {
        const FitRun run(judgement(rows, labels));
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        EXPECT_TRUE(std::isnan(run.result.quality.silhouette));
        EXPECT_TRUE(std::isnan(run.result.quality.davies_bouldin));
        EXPECT_TRUE(std::isnan(run.result.quality.calinski_harabasz));
        EXPECT_TRUE(std::isnan(run.result.silhouettes[0].value));
        EXPECT_EQ(run.result.silhouettes[0].nearest, -1);
    }
    const FitRun none(judgement(rows, {0, 0, 1}, 0));
    EXPECT_EQ(none.result.silhouettes, nullptr);
    EXPECT_FALSE(std::isnan(none.result.quality.davies_bouldin));
}

TEST(Judge, RefusesWhatItCannotJudge)
{
    const Labels labels = {0, 0, 0, 1, 1, 1};
    const auto status = [&](auto change) {
        PgkmRequest request = judgement(two_clouds, labels);
        change(request);
        return FitRun(request).error.status;
    };
    EXPECT_EQ(status([](PgkmRequest &) {}), PGKM_OK);
    EXPECT_EQ(status([](PgkmRequest &request) { request.labels = nullptr; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmRequest &request) { request.k = 0; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmRequest &request) { request.k = 7; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmRequest &request) { request.kmeans.batch_size = 2; }), PGKM_INVALID);
    EXPECT_EQ(status([](PgkmRequest &request) {
                  request.kmeans.init_centroids = {two_clouds.data(), 2, {2, d, 0}};
              }),
              PGKM_INVALID);
}

TEST(Judge, KeepsToWhatItIsEstimatedToNeed)
{
    const Values rows = Draws(3).clouds(50000, d, 4, 3.0);
    Labels labels(50000);
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i % 500);
    PgkmRequest request = judgement(rows, labels);
    request.settings.memory_limit = pgkm_request_estimate(&request);
    EXPECT_EQ(FitRun(request).error.status, PGKM_OK);
    --request.settings.memory_limit;
    EXPECT_EQ(FitRun(request).error.status, PGKM_LIMIT);
}

TEST(Judge, EndsWhenItIsCancelled)
{
    const Values rows = Draws(3).clouds(200000, d, 4, 3.0);
    Labels labels(200000);
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i % 3);
    const PgkmRequest request = judgement(rows, labels, 200000);
    PgkmJob *job = nullptr;
    PgkmError error = {};
    ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK);
    EXPECT_EQ(pgkm_job_wait(job, 300), 0);
    pgkm_job_stop(job);
    PgkmResult result;
    EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED);
    pgkm_job_free(job);
}

} // namespace
