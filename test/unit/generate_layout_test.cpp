// Layouts of generated reductions: what is chosen, what lies where, how many blocks there are.
#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "backend/generate/kernel.hpp"
#include "engine/api.h"
#include "support/program.hpp"

namespace pgkm {
namespace {

using conformance::Program;
using generate::Device;
using generate::Layout;
using generate::Plan;

constexpr Device h200 = {132, 232448};

// k-means: counts and sums of d features by the nearest of k centroids.
Program k_means(std::int32_t k, std::int32_t d, bool exact = false)
{
    Program program;
    program.exact = exact;
    program.parameters.resize(static_cast<std::size_t>(k * d));
    const std::int32_t cell = program.nearest(k, d, 0), i = program.loop(d);
    program.item(program.column(0, program.index(i), d), PGKM_COMBINE_SUM, i);
    program.object(k, cell);
    return program;
}

Plan plan_of(const Program &program, Layout layout, const Device &device)
{
    const PgkmReduction view = program.view();
    check_program(view, 8);
    const generate::Program facts(view);
    return make_plan(facts, layout, device);
}

const Output &output(const Plan &plan, const std::string &name)
{
    const std::vector<Output> &all = plan.words.outputs;
    return *std::find_if(all.begin(), all.end(), [&](const Output &o) { return o.name == name; });
}

Output sums(std::int64_t cells, std::int64_t elements, bool integer = false)
{
    return {"sums", 0, 0, PGKM_COMBINE_SUM, integer, integer ? 2 : 1, cells, elements};
}

Output counts(std::int64_t cells)
{
    return {"counts", 0, -1, PGKM_COMBINE_COUNT, false, 1, cells, 1};
}

Layout chosen(std::vector<Output> outputs)
{
    return choose_layout({std::move(outputs)}, h200);
}

TEST(GenerateLayout, IsChosenBySize)
{
    EXPECT_EQ(chosen({sums(10, 1)}), Layout::thread_write_first);
    EXPECT_EQ(chosen({sums(1, 56)}), Layout::thread_write_first);
    EXPECT_EQ(chosen({sums(1, 57)}), Layout::block);
    EXPECT_EQ(chosen({sums(29056, 1)}), Layout::block);
    EXPECT_EQ(chosen({sums(29057, 1)}), Layout::global);
    EXPECT_EQ(plan_of(k_means(4, 8), Layout::automatic, h200).layout, Layout::thread_write_first);
    EXPECT_EQ(plan_of(k_means(100, 8), Layout::automatic, h200).layout, Layout::block);
}

TEST(GenerateLayout, IsChosenByHowRowsMeetInCells)
{
    EXPECT_EQ(chosen({counts(20)}), Layout::block); // 32 bits change by themselves
    EXPECT_EQ(chosen({counts(1)}), Layout::block);  // one thread counts for a warp
    EXPECT_EQ(chosen({counts(10), sums(10, 3)}), Layout::thread_write_first);
    EXPECT_EQ(chosen({counts(1), sums(1, 16)}), Layout::thread_write_first);
    EXPECT_EQ(chosen({counts(1), sums(1, 16, true)}), Layout::thread_write_first);
}

// PCA's sums: the elements are dealt out, rows lie in shared memory, and where R is small two blocks fit a
// multiprocessor.
TEST(GenerateLayout, RowsAreStagedForElementsThatAreDealtOut)
{
    for (const std::int32_t width : {6, 80, 128, 160, 170}) {
        Program program;
        const std::int32_t e = program.loop(std::int64_t{width} * width), at = program.index(e),
                           w = program.constant(width);
        const std::int32_t a = program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {at, w})}),
                           b = program.add(PGKM_MODULO, {at, w});
        program.item(program.add(PGKM_MULTIPLY, {program.column(3, a, width), program.column(3, b, width)}),
                     PGKM_COMBINE_SUM, e);
        program.object(1, -1);
        const PgkmReduction view = program.view();
        const generate::Program facts(view);
        const Plan plan = make_plan(facts, Layout::block, h200);
        EXPECT_EQ(plan.stage.rows, width <= 128 ? 64 : width == 160 ? 16 : 0); // 170: R leaves no room
        const bool staged = plan.stage.rows > 0;
        EXPECT_EQ(plan.stage.first, staged ? 3 : 0);
        EXPECT_EQ(plan.stage.columns, staged ? width : 0);
        EXPECT_EQ(plan.stage.place, staged ? plan.words.count : 0);
        EXPECT_EQ(plan.shared_words, plan.words.count + plan.stage.rows * plan.stage.columns);
        EXPECT_LE(plan.shared_words, width <= 80 ? 29056 / 2 : 29056);
        const std::string source = kernel_source(facts, plan, {true, width + 3});
        EXPECT_EQ(source.find("stage[w] = double(rows[") != std::string::npos, staged) << source;
        EXPECT_EQ(source.find("__syncthreads_or(*stop != 0)") != std::string::npos, staged); // all threads end or none
        EXPECT_EQ(make_plan(facts, Layout::global, h200).stage.rows, 0);
    }
    EXPECT_EQ(plan_of(k_means(100, 8), Layout::block, h200).stage.rows, 0); // nothing is dealt out
}

// The work's example: data float* n 3, update float* 5 k, cluster float* 3 k.
TEST(GenerateLayout, VariablesArePlacedInTheWorksOrders)
{
    const Program program = k_means(10, 8); // parameters: 80 words; rows: 10 a thread; sums: 80 a thread
    const Device small = {1, 160 * 8, 32};  // 32 threads: no sums, no counts of all threads
    for (const Layout layout : {Layout::thread_no_sorting, Layout::thread_greedy, Layout::thread_write_first}) {
        const Plan plan = plan_of(program, layout, small);
        EXPECT_EQ(plan.threads, 32);
        EXPECT_EQ(plan.inputs[0].place, 0);
        EXPECT_FALSE(output(plan, "update0_rows").shared);
        EXPECT_FALSE(output(plan, "update0_0").shared);
        EXPECT_EQ(plan.own_words, 90);
        EXPECT_EQ(plan.shared_words, 80);
    }
    const Device medium = {1, 360 * 8, 32}; // either the parameters, or the counts, 320 words
    const Plan in_order = plan_of(program, Layout::thread_no_sorting, medium),
               greedy = plan_of(program, Layout::thread_greedy, medium),
               written = plan_of(program, Layout::thread_write_first, medium);
    EXPECT_EQ(in_order.inputs[0].place, 0);
    EXPECT_FALSE(output(in_order, "update0_rows").shared);
    EXPECT_EQ(greedy.inputs[0].place, 0); // the smallest
    EXPECT_FALSE(output(greedy, "update0_rows").shared);
    EXPECT_EQ(written.inputs[0].place, -1);
    EXPECT_TRUE(output(written, "update0_rows").shared);
    EXPECT_EQ(output(written, "update0_rows").place, 0);
    EXPECT_FALSE(output(written, "update0_0").shared);
}

TEST(GenerateLayout, CopiesFitTheThreads)
{
    const Program program = k_means(4, 6); // R has 28 words
    EXPECT_EQ(plan_of(program, Layout::thread_greedy, {1, 28 * 256 * 8}).threads, 256);
    EXPECT_EQ(plan_of(program, Layout::thread_greedy, {1, 28 * 256 * 8 - 8}).threads, 128);
    EXPECT_EQ(plan_of(program, Layout::thread_greedy, {1, 28 * 32 * 8}).threads, 32);
    EXPECT_EQ(plan_of(program, Layout::thread_greedy, {1, 28 * 32 * 8 - 8}).threads, 128); // in device memory
}

TEST(GenerateLayout, NoTwoWordsOfROverlapAndPairsBeginAtEvenOnes)
{
    for (const bool exact : {false, true})
        for (const Layout layout : {Layout::thread_greedy, Layout::block, Layout::global})
            for (const std::int32_t k : {1, 7, 100}) {
                Program program = k_means(k, 8, exact);
                program.item(program.column(2), PGKM_COMBINE_ARGMIN, -1, program.column(3));
                program.item(program.column(1), PGKM_COMBINE_MIN);
                program.object(3, -1, program.add(PGKM_LESS, {program.column(0), program.column(1)}));
                program.objects[1].cells = 1;
                const Plan plan = plan_of(program, layout, {4, 1000});
                std::vector<int> used(static_cast<std::size_t>(plan.words.count));
                for (const Output &o : plan.words.outputs)
                    for (std::int64_t cell = 0; cell < o.cells; ++cell)
                        for (std::int64_t e = 0; e < o.elements; ++e) {
                            const std::int64_t first = o.word(cell, e);
                            for (std::int32_t w = 0; w < o.words; ++w)
                                ++used[static_cast<std::size_t>(first + w)];
                            EXPECT_TRUE(o.words == 1 || first % 2 == 0 || plan.is_per_thread());
                        }
                EXPECT_EQ(std::count_if(used.begin(), used.end(), [](int times) { return times > 1; }), 0);
                EXPECT_LE(plan.shared_words, 125);
            }
}

TEST(GenerateLayout, ABlockThatDoesNotFitBecomesGlobal)
{
    EXPECT_EQ(plan_of(k_means(100, 8), Layout::block, {4, 1000}).layout, Layout::global);
}

TEST(GenerateLayout, BlocksFollowRowsUnitsAndMemory)
{
    const Plan plan = plan_of(k_means(100, 8), Layout::block, h200);
    const std::int64_t most = choose_blocks(plan, 1 << 30, h200, UINT64_MAX);
    EXPECT_EQ(most % 132, 0);
    EXPECT_EQ(choose_blocks(plan, 1, h200, UINT64_MAX), 1);
    EXPECT_EQ(choose_blocks(plan, 1 << 30, h200, 10 * block_bytes(plan)), 10);
    EXPECT_EQ(choose_blocks(plan, 1 << 30, h200, block_bytes(plan) - 1), 0);
}

TEST(GenerateLayout, TheSourceSaysWhatLiesWhere)
{
    const Program program = k_means(100, 8);
    const PgkmReduction view = program.view();
    PgkmError error = {};
    char *const text = pgkm_reduction_source(&view, PGKM_FLOAT32, 8, "block", 90, &error);
    ASSERT_NE(text, nullptr) << error.text;
    const std::string source = text;
    pgkm_text_free(text);
    for (const char *const part : {"// Layout block: blocks of 256 threads", "typedef float Element;",
                                   "p0, parameters 0 to 799; in shared memory", "update0_0, sum, 100 cells x 8", "fma(",
                                   "extern \"C\" __global__ void init(", "reduc(", "combine("})
        EXPECT_NE(source.find(part), std::string::npos) << part << "\n" << source;
    EXPECT_EQ(pgkm_reduction_source(&view, PGKM_FLOAT32, 8, "no such layout", 90, &error), nullptr);
    EXPECT_EQ(error.status, PGKM_UNSUPPORTED);
    EXPECT_EQ(pgkm_reduction_source(&view, PGKM_FLOAT32, 7, nullptr, 90, &error), nullptr);
    EXPECT_EQ(error.status, PGKM_INVALID);
}

// Branches that repeat each other: each level doubles the text.
TEST(GenerateLayout, ATextWithoutEndIsRefused)
{
    Program program;
    std::int32_t value = program.column(0);
    for (int i = 0; i < 40; ++i) {
        const std::int32_t one = program.add(PGKM_LESS, {program.column(1), program.constant(i)}),
                           two = program.add(PGKM_LESS, {program.column(2), program.constant(i)}),
                           zero = program.constant(0.5);
        const std::int32_t a = program.add(PGKM_CASE, {one, program.add(PGKM_EXP, {value}), zero}),
                           b = program.add(PGKM_CASE, {two, program.add(PGKM_SIN, {value}), zero});
        value = program.add(PGKM_ADD, {a, b});
    }
    program.item(value);
    program.object(1, -1);
    const PgkmReduction view = program.view();
    PgkmError error = {};
    EXPECT_EQ(pgkm_reduction_source(&view, PGKM_FLOAT64, 3, nullptr, 90, &error), nullptr);
    EXPECT_EQ(error.status, PGKM_UNSUPPORTED);
}

} // namespace
} // namespace pgkm
