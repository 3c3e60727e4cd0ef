// tree_test - trees of clusters against plain fits of the rows of each node; jobs that are cancelled, refused, short of
// memory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fit_run.hpp"

namespace {

constexpr std::int32_t d = 2;

std::vector<double> many_rows(std::int64_t n)
{
    std::vector<double> rows;
    for (std::int64_t i = 0; i < n * d; ++i)
        rows.push_back(std::sin(static_cast<double>(i * i % 9973)) * 5.0 + static_cast<double>(i % 7));
    return rows;
}

PgkmRequest tree_request(const std::vector<double> &rows, const std::vector<std::int32_t> &branches, std::int64_t k)
{
    PgkmRequest request = request_for(rows, d, k);
    request.algorithm = PGKM_TREE;
    request.want_labels = request.want_distances = 0;
    request.branches = branches.data();
    request.n_branches = static_cast<std::int32_t>(branches.size());
    return request;
}

// What a node should be: its rows, and the fit that made it.
struct Expected {
    std::vector<double> rows, centroid;
    std::int32_t parent;
};

// Fits the rows of a node and returns its children.
std::vector<Expected> children(const Expected &node, std::int32_t number, std::int64_t k, const PgkmOptions &options)
{
    PgkmRequest request = request_for(node.rows, d, k);
    request.kmeans = options;
    request.want_labels = 1;
    const FitRun run(request);
    const PgkmResult &result = run.result;
    EXPECT_EQ(run.error.status, PGKM_OK) << run.error.text;
    std::vector<Expected> found(static_cast<std::size_t>(result.k));
    for (std::int32_t j = 0; j < result.k; ++j)
        found[static_cast<std::size_t>(j)] = {{}, {result.centroids + j * d, result.centroids + (j + 1) * d}, number};
    for (std::int64_t i = 0; i < result.n; ++i) {
        std::vector<double> &rows = found[static_cast<std::size_t>(result.labels[i])].rows;
        rows.insert(rows.end(), node.rows.begin() + i * d, node.rows.begin() + (i + 1) * d);
    }
    return found;
}

class Trees : public testing::TestWithParam<PgkmInit> {};

TEST_P(Trees, AreNestedFits)
{
    const std::vector<double> rows = many_rows(3000);
    const std::vector<std::int32_t> branches = {6, 3, 4};
    PgkmRequest request = tree_request(rows, branches, 1);
    request.kmeans.init = GetParam();
    request.kmeans.seed = 11;
    const FitRun run(request);
    const PgkmResult &tree = run.result;
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;

    std::vector<Expected> expected = children({rows, {}, -1}, -1, 1, request.kmeans);
    std::vector<std::int32_t> levels = {0};
    std::size_t first = 0;
    for (std::size_t level = 0; level < branches.size(); ++level)
        for (const std::size_t last = expected.size(); first < last; ++first)
            for (Expected &child :
                 children(expected[first], static_cast<std::int32_t>(first), branches[level], request.kmeans)) {
                expected.push_back(child);
                levels.push_back(static_cast<std::int32_t>(level) + 1);
            }
    ASSERT_EQ(tree.k, static_cast<std::int32_t>(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(tree.parents[i], expected[i].parent);
        EXPECT_EQ(tree.levels[i], levels[i]);
        EXPECT_EQ(tree.sizes[i] * d, static_cast<std::int64_t>(expected[i].rows.size()));
        for (std::int32_t f = 0; f < d; ++f)
            EXPECT_EQ(tree.centroids[static_cast<std::int32_t>(i) * d + f],
                      expected[i].centroid[static_cast<std::size_t>(f)]);
    }
}

INSTANTIATE_TEST_SUITE_P(Inits, Trees,
                         testing::Values(PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL, PGKM_INIT_RANDOM,
                                         PGKM_INIT_FIRST));

TEST(Tree, StopsWhenCancelled)
{
    const std::vector<double> rows = many_rows(200000);
    for (const std::vector<std::int32_t> &branches :
         {std::vector<std::int32_t>{300, 100}, std::vector<std::int32_t>{}}) {
        const PgkmRequest request = tree_request(rows, branches, 50000);
        PgkmJob *job = nullptr;
        PgkmError error = {};
        ASSERT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK) << error.text;
        EXPECT_EQ(pgkm_job_wait(job, 200), 0);
        pgkm_job_stop(job);
        PgkmResult result = {};
        EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_CANCELLED);
        pgkm_job_free(job);
    }
}

TEST(Tree, RefusesWhatItCannotGrow)
{
    const std::vector<double> rows = many_rows(100);
    const auto status = [&](const std::vector<std::int32_t> &branches, void (*change)(PgkmRequest &)) {
        PgkmRequest request = tree_request(rows, branches, 1);
        change(request);
        return FitRun(request).error.status;
    };
    const auto as_it_is = [](PgkmRequest &) {};
    EXPECT_EQ(status({2, 2}, as_it_is), PGKM_OK);
    EXPECT_EQ(status({2, 1}, as_it_is), PGKM_INVALID);
    EXPECT_EQ(status({2, 2, 2, 2, 2, 2, 2, 2, 2}, as_it_is), PGKM_INVALID);
    EXPECT_EQ(status({2}, [](PgkmRequest &request) { request.kmeans.batch_size = 10; }), PGKM_INVALID);
    EXPECT_EQ(status({2}, [](PgkmRequest &request) { request.kmeans.max_radius = 1.0; }), PGKM_INVALID);
    EXPECT_EQ(status({2}, [](PgkmRequest &request) { request.kmeans.max_size = 60.0; }), PGKM_INVALID);
    EXPECT_EQ(status({2}, [](PgkmRequest &request) { request.settings.memory_limit = 1000; }), PGKM_LIMIT);
    EXPECT_EQ(status({}, [](PgkmRequest &request) { request.k = 0; }), PGKM_INVALID);
}

} // namespace
