// Users' reductions as jobs: the check of a program, faults as results, no rows, estimates.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "backend/reduction_program.hpp"
#include "fit_run.hpp"
#include "numeric/error.hpp"
#include "support/program.hpp"

namespace {

using conformance::Program;
using pgkm::check_program;
using pgkm::Error;

// The k-means step, which is good for rows of 2 values.
Program step()
{
    Program program;
    program.parameters = {0, 0, 10, 10};
    const std::int32_t cell = program.nearest(2, 2, 0), i = program.loop(2);
    program.item(program.column(0, program.index(i), 2), PGKM_COMBINE_SUM, i);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.object(2, cell);
    return program;
}

PgkmStatus status_of(const Program &program)
{
    try {
        check_program(program.view(), 2);
        return PGKM_OK;
    } catch (const Error &error) {
        return error.status();
    }
}

PgkmRequest request_of(const Program &program, const std::vector<double> &rows)
{
    PgkmRequest request = request_for(rows, 2, 0);
    request.algorithm = PGKM_REDUCTION;
    request.want_labels = request.want_distances = 0;
    request.reduction = program.view();
    return request;
}

TEST(Reduction, WhatIsNoProgramIsRefused)
{
    EXPECT_EQ(status_of(step()), PGKM_OK);
    Program longest = step();
    longest.loops[1] = INT32_MAX;
    EXPECT_EQ(status_of(longest), PGKM_OK);
    const std::function<void(Program &)> spoil[] = {
        [](Program &p) { p.objects.clear(); },
        [](Program &p) { p.objects[0].cells = 0; },
        [](Program &p) { p.objects[0].cell = -1; },
        [](Program &p) { p.objects[0].cell = static_cast<std::int32_t>(p.expressions.size()); },
        [](Program &p) { p.objects[0].filter = 1000; },
        [](Program &p) { p.objects[0].n_items = 3; },
        [](Program &p) { p.objects[0].n_items = 0; },
        [](Program &p) { p.objects[0].first_item = -1; },
        [](Program &p) { p.items[0].loop = 9; },
        [](Program &p) { p.items[0].value = -1; },
        [](Program &p) { p.items[0].combine = static_cast<PgkmCombine>(9); },
        [](Program &p) { p.items[0].combine = PGKM_COMBINE_ARGMIN; }, // without a key
        [](Program &p) { p.items[0].loop = -1; },                     // its index is not known
        [](Program &p) { p.items[0].loop = 0; },                      // nor that of another loop
        [](Program &p) { p.loops[2] = 0; },                           // elements of nothing
        [](Program &p) { p.loops[0] = 0; },                           // argmin of nothing
        [](Program &p) { p.loops[0] = -1; },
        [](Program &p) { p.loops[1] = INT64_C(1) << 31; },
        [](Program &p) { p.parameters[1] = NAN; },
        [](Program &p) { p.parameters.pop_back(); },
        [](Program &p) { p.constant(INFINITY); },
        [](Program &p) { p.add(PGKM_OPERATIONS, {}); },
        [](Program &p) { p.add(static_cast<PgkmOperation>(-1), {}); },
        [](Program &p) { p.add(PGKM_ADD, {0}); },
        [](Program &p) { p.add(PGKM_ABS, {1000}); },
        [](Program &p) { p.add(PGKM_ABS, {static_cast<std::int32_t>(p.expressions.size())}); }, // itself
        [](Program &p) { p.add(PGKM_INDEX, {}, 3); },
        [](Program &p) { p.column(2); },
        [](Program &p) { p.column(-1); },
        [](Program &p) { p.column(1, 0, 2); },
        [](Program &p) { p.column(0, -1, 2); }, // which of the two?
        [](Program &p) { p.parameter(INT64_MAX); },
        [](Program &p) { p.parameter(0, 0, INT32_MAX, 0, INT32_MAX); },
        // a loop in its own body
        [](Program &p) { p.add(PGKM_SUM, {p.add(PGKM_SUM, {p.index(0)}, 0)}, 0); },
        [](Program &p) { p.items[0].value = p.add(PGKM_SUM, {p.index(2)}, 2); },
    };
    for (std::size_t i = 0; i < std::size(spoil); ++i) {
        Program program = step();
        spoil[i](program);
        EXPECT_EQ(status_of(program), PGKM_INVALID) << i;
        // Estimates come before the check, and must bear it.
        const std::vector<double> rows = {1, 2};
        const PgkmRequest request = request_of(program, rows);
        pgkm_request_estimate(&request);
        pgkm_wants_device(&request);
        EXPECT_EQ(FitRun(request).error.status, PGKM_INVALID) << i;
    }
}

TEST(Reduction, WhatIsTooLargeIsRefused)
{
    Program cells = step(), deep = step();
    cells.objects[0].cells = INT64_C(1) << 62;
    EXPECT_EQ(status_of(cells), PGKM_LIMIT);
    std::int32_t e = deep.constant(1.0);
    for (int i = 0; i < 3000; ++i)
        e = deep.add(PGKM_NEGATE, {e});
    EXPECT_EQ(status_of(deep), PGKM_LIMIT);

    Program many = step();
    many.objects[0].cells = 100'000'000;
    const std::vector<double> rows = {1, 2};
    PgkmRequest request = request_of(many, rows);
    request.settings.memory_limit = 1 << 20;
    EXPECT_GT(pgkm_request_estimate(&request), UINT64_C(1) << 31);
    EXPECT_EQ(FitRun(request).error.status, PGKM_LIMIT);
}

// Values, totals of 16 bytes, and ranges and scales: of one thread, of all, and to multiply by.
TEST(Reduction, EstimateHasScalesOfExactSums)
{
    const std::int64_t width = 1'000'000;
    Program wide;
    const std::int32_t i = wide.loop(width);
    wide.item(wide.add(PGKM_MULTIPLY, {wide.column(0), wide.index(i)}), PGKM_COMBINE_SUM, i);
    wide.object(1, -1);
    wide.exact = true;
    const std::vector<double> rows = {1, 2};
    PgkmRequest request = request_of(wide, rows);
    const std::uint64_t estimate = pgkm_request_estimate(&request);
    EXPECT_GE(estimate, static_cast<std::uint64_t>(width * (8 + 16 + 3 * 8)));
    request.settings.memory_limit = estimate;
    EXPECT_EQ(FitRun(request).error.status, PGKM_OK);
}

TEST(Reduction, AsJob)
{
    const std::vector<double> rows = {0, 0, 1, 0, 10, 10, 11, 10, 0, 1};
    const Program program = step();
    const FitRun run(request_of(program, rows));
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    ASSERT_NE(run.result.reduced, nullptr);
    EXPECT_STREQ(run.result.backend, "cpu");
    EXPECT_EQ(run.result.reduced->fault, PGKM_FAULT_NONE);
    const double *const values = run.result.reduced->values;
    EXPECT_EQ((std::vector<double>(values, values + 6)), (std::vector<double>{1, 1, 3, 21, 20, 2}));
    EXPECT_EQ(run.result.reduced->counts[0], 3);
}

// A row that fails is a result: it says which and what.
TEST(Reduction, FaultIsResult)
{
    const std::vector<double> rows = {0, 0, 7, 0};
    Program program;
    program.item(program.constant(1.0));
    program.object(2, program.column(0));
    const FitRun run(request_of(program, rows));
    ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
    EXPECT_EQ(run.result.reduced->fault, PGKM_FAULT_CELL);
    EXPECT_EQ(run.result.reduced->row, 1);
    EXPECT_EQ(run.result.reduced->number, 7.0);
}

TEST(Reduction, WithoutRows)
{
    Program program = step();
    program.item(program.column(0), PGKM_COMBINE_MAX);
    program.object(1, -1);
    const std::vector<double> rows = {1, 2};
    PgkmRequest request = request_of(program, rows);
    request.points.n = 0;
    for (const void *const values : {request.points.values, static_cast<const void *>(nullptr)}) {
        request.points.values = values;
        const FitRun run(request);
        ASSERT_EQ(run.error.status, PGKM_OK) << run.error.text;
        for (int i = 0; i < 6; ++i)
            EXPECT_EQ(run.result.reduced->values[i], 0.0);
        EXPECT_TRUE(std::isnan(run.result.reduced->values[6]));
        EXPECT_EQ(run.result.reduced->counts[2], 0);
    }
}

TEST(Reduction, GroupsAndWeightsAreRefused)
{
    const Program program = step();
    const std::vector<double> rows = {1, 2}, weights = {1};
    PgkmRequest weighted = request_of(program, rows), grouped = weighted;
    weighted.points.weights = weights.data();
    const PgkmGroup group = {rows.data(), nullptr, 1, 0};
    grouped.groups = &group;
    grouped.n_groups = 1;
    EXPECT_EQ(FitRun(weighted).error.status, PGKM_INVALID);
    EXPECT_EQ(FitRun(grouped).error.status, PGKM_INVALID);
}

} // namespace
