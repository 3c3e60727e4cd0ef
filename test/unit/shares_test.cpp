// Calls as values: a problem cut into shares and what these find (backend/shares.hpp), and a table whose functions are
// one (backend/call_table.hpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "backend/shares.hpp"
#include "support/problem_call.hpp"

namespace pgkm {
namespace {

constexpr RowShape shape = {5, 1, PGKM_FLOAT64};

// Rows 0 to 2 in one share, 3 and 4 in another. What was in the caller's arrays is none of the sums.
TEST(Shares, AddTheirSumsAndHaveTheirRows)
{
    std::vector<std::int32_t> labels(5, -1);
    std::vector<PgkmInt128> totals(2, {7, 7});
    std::vector<std::int64_t> sizes(2, 7);
    std::vector<double> centroids = {1.0, 2.0};
    const PgkmFeatureScale scale = {0.0, 10};
    PgkmProblem problem = {};
    problem.n_rows = 5;
    problem.k = 2;
    problem.centroids = centroids.data();
    problem.feature_scales = &scale;
    PgkmAssignment wanted = {};
    wanted.labels = labels.data();
    wanted.totals = totals.data();
    wanted.sizes = sizes.data();
    Call call = test::assign_call(problem, wanted);
    ShareCall first(call, shape, 0, false), second(call, shape, 3, false);
    EXPECT_EQ(first.problem().centroids, problem.centroids);
    for (ShareCall *share : {&first, &second}) {
        const PgkmAssignment &found = share->room.call.assignments[0];
        EXPECT_EQ(found.masses, nullptr);
        found.labels[0] = share == &first ? 1 : 2;
        found.totals[0] = {share == &first ? UINT64_MAX : 1, 0};
        found.totals[1] = {0, share == &first ? 3 : -4};
        found.sizes[0] = share == &first ? 3 : 2;
        found.sizes[1] = 0;
    }
    Results results(shape);
    results.give(first, call, true);
    results.give(second, call, false);
    EXPECT_EQ(labels, (std::vector<std::int32_t>{1, -1, -1, 2, -1}));
    EXPECT_EQ(sizes, (std::vector<std::int64_t>{5, 0}));
    EXPECT_EQ(totals[0].lo, 0U);
    EXPECT_EQ(totals[0].hi, 1);
    EXPECT_EQ(totals[1].hi, -1);
}

// Sums can be gigabytes, which are not copied where one share is the whole problem.
TEST(Shares, FillTheCallersArraysIfWhole)
{
    const double shift = 0.0;
    double sums = 0.0, cross = 0.0;
    PgkmProblem problem = {};
    problem.n_rows = 5;
    PgkmMoments moments = {&shift, &sums, &cross, 0.0};
    Call call = test::problem_call(Function::moments, problem);
    call.moments = &moments;
    ShareCall whole(call, shape, 0, true);
    PgkmMoments &found = whole.room.call.moments[0];
    EXPECT_EQ(found.cross, &cross);
    *found.sums = 3.0;
    found.mass = 5.0;
    Results(shape).give(whole, call, true);
    EXPECT_EQ(sums, 3.0);
    EXPECT_EQ(moments.mass, 5.0);
}

// Peers begin with the same centroids, each with its own memory, and one's are taken.
TEST(Shares, FindCentroidsOfTheirOwn)
{
    std::vector<double> centroids = {1.0, 2.0, 3.0};
    PgkmProblem problem = {};
    problem.n_rows = 5;
    problem.k = 3;
    problem.centroids = centroids.data();
    Call call = test::problem_call(Function::seed, problem);
    ShareCall share(call, shape, 0, true);
    auto *own = static_cast<double *>(share.problem().centroids);
    EXPECT_EQ(own[2], 3.0);
    own[0] = 9.0;
    share.problem().k = 2;
    EXPECT_EQ(centroids[0], 1.0);
    EXPECT_EQ(problem.k, 3);
    Results(shape).give(share, call, true);
    EXPECT_EQ(centroids[0], 9.0);
    EXPECT_EQ(problem.k, 2);
}

std::vector<Function> called;

PgkmStatus note(PgkmData *data, Call call, PgkmError *error)
{
    EXPECT_EQ(data == nullptr, call.n_problems == 0);
    called.push_back(call.function);
    return set_error(error, PGKM_OK, "");
}

TEST(CallTable, PassesEachFunctionOn)
{
    const PgkmBackend table = CallTable<note>::table("noted", nullptr, nullptr, nullptr);
    auto *const data = reinterpret_cast<PgkmData *>(&called);
    PgkmProblem problem = {};
    Call call = {};
    call.n_problems = 1;
    call.problems = &problem;
    PgkmError error = {};
    std::vector<Function> all;
    for (const Function function : {Function::summarise, Function::seed, Function::fit, Function::assign,
                                    Function::moments, Function::em_step, Function::reduce}) {
        call.function = function;
        all.push_back(function);
        EXPECT_EQ(run_call(table, data, call, &error), PGKM_OK);
    }
    EXPECT_EQ(called, all);
    EXPECT_EQ(table.reduce(nullptr, nullptr, 0, nullptr, nullptr, &error), PGKM_OK);
    std::int32_t devices = 1;
    EXPECT_EQ(table.probe(nullptr, 0, &devices, &error), PGKM_OK);
    EXPECT_EQ(devices, 0);
    EXPECT_EQ(table.strategies("assignment")[0], nullptr);
    PgkmContext *context = nullptr;
    EXPECT_EQ(table.open(nullptr, &context, &error), PGKM_UNSUPPORTED);
}

} // namespace
} // namespace pgkm
