// Generated CUDA texts, run on the CPU, beside the reference: random programs in every layout.
//
// PGKM_GENERATED_PROGRAMS in the environment: how many programs, instead of a handful.
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include "reference/reduction.hpp"
#include "support/generated_on_cpu.hpp"
#include "support/random_program.hpp"

namespace pgkm {
namespace {

using namespace conformance;
using generate::Layout;

constexpr Layout layouts[] = {Layout::thread_no_sorting, Layout::thread_greedy, Layout::thread_write_first,
                              Layout::block, Layout::global};

// A device so small that layouts have to leave things out of shared memory.
constexpr generate::Device tiny = {2, 1600, 8}, roomy = {2, 60000, 8};

struct Case {
    std::int32_t d;
    Program program;
    std::vector<bool> is_scale; // of the items: RandomProgram
    PgkmReduction view;
    std::vector<double> rows;
    std::unique_ptr<generate::Program> facts;
};

std::unique_ptr<Case> random_case(std::uint64_t seed)
{
    auto made = std::make_unique<Case>();
    std::mt19937_64 random(seed);
    made->d = 1 + static_cast<std::int32_t>(random() % 6);
    const RandomProgram drawn(seed, made->d);
    made->program = drawn.program;
    made->is_scale = drawn.is_scale;
    made->view = made->program.view();
    for (std::int64_t i = static_cast<std::int64_t>(1 + random() % 60) * made->d; i > 0; --i)
        // Halves and quarters make ties; other values are of any digits. float32 rows hold them, too.
        made->rows.push_back(random() % 2 == 0 ? static_cast<double>(random() % 17) / 4.0 - 2.0
                                               : static_cast<float>(random() % 100000) / 25000.0F - 2.0F);
    made->facts = std::make_unique<generate::Program>(made->view);
    return made;
}

// What the reference says: the row that fails first, or -1.
std::int64_t expected(const Case &of, PgkmReduced &out)
{
    std::vector<std::vector<double>> rows;
    for (std::size_t i = 0; i < of.rows.size(); i += static_cast<std::size_t>(of.d))
        rows.emplace_back(of.rows.begin() + static_cast<std::ptrdiff_t>(i),
                          of.rows.begin() + static_cast<std::ptrdiff_t>(i) + of.d);
    try {
        reference_reduce(rows, of.view, out);
    } catch (const Error &) {
        return out.row;
    }
    return -1;
}

// Sums of float64 are followed by the sums of their magnitudes, as the random programs have it.
void compare(const Case &of, const Reduced &expected, const Reduced &found, const std::string &what)
{
    std::size_t v = 0;
    EXPECT_EQ(expected.counts, found.counts) << what;
    for (const PgkmObject &object : of.program.objects)
        for (std::int64_t cell = 0; cell < object.cells; ++cell)
            for (std::int32_t i = 0; i < object.n_items; ++i) {
                const PgkmItem &item = of.program.items[static_cast<std::size_t>(object.first_item + i)];
                const std::int64_t elements = item.loop < 0 ? 1 : of.program.loops[static_cast<std::size_t>(item.loop)];
                const bool measured =
                    i + 1 < object.n_items && of.is_scale[static_cast<std::size_t>(object.first_item + i + 1)];
                for (std::int64_t e = 0; e < elements; ++e, ++v) {
                    const double a = expected.values[v], b = found.values[v];
                    const std::string where = what + ", cell " + std::to_string(cell) + ", item " + std::to_string(i);
                    const bool sum = item.combine == PGKM_COMBINE_SUM && !of.program.exact;
                    if (std::isnan(a))
                        EXPECT_TRUE(std::isnan(b)) << where;
                    else if (sum && measured)
                        EXPECT_NEAR(a, b, 1e-13 * expected.values[v + static_cast<std::size_t>(elements)]) << where;
                    else if (sum)
                        EXPECT_NEAR(a, b, 1e-13 * std::fabs(a)) << where;
                    else
                        EXPECT_EQ(a, b) << where;
                }
            }
}

template <typename T>
void run(const GeneratedOnCpu &library, int text, const Case &of, const generate::Plan &plan, std::int64_t failing,
         const Reduced &wanted)
{
    const std::vector<T> rows(of.rows.begin(), of.rows.end());
    GeneratedRun<T> run(library, text, *of.facts, plan);
    const std::string what = std::string(name_of(plan.layout)) + ", text " + std::to_string(text);
    for (const std::int64_t chunk : {std::int64_t{1000}, std::int64_t{7}}) {
        Reduced found(of.program);
        ASSERT_EQ(run.run(rows, of.d, chunk, 2, found.view), failing) << what;
        if (failing < 0)
            compare(of, wanted, found, what);
    }
}

TEST(GenerateRun, RandomProgramsGiveWhatTheReferenceGives)
{
    const char *const wanted = std::getenv("PGKM_GENERATED_PROGRAMS");
    const int programs = wanted == nullptr ? 4 : std::atoi(wanted);
    constexpr int batch = 20; // of a library
    int failed = 0;
    for (int first = 0; first < programs; first += batch) {
        GeneratedOnCpu library;
        std::vector<std::unique_ptr<Case>> cases;
        std::vector<generate::Plan> plans;
        for (int i = first; i < std::min(first + batch, programs); ++i) {
            cases.push_back(random_case(static_cast<std::uint64_t>(1000 + i)));
            const Case &made = *cases.back();
            check_program(made.view, made.d);
            for (const Layout layout : layouts) {
                plans.push_back(make_plan(*made.facts, layout, i % 2 == 0 ? tiny : roomy));
                library.add(kernel_source(*made.facts, plans.back(), {i % 3 == 0, made.d}));
            }
        }
        if (!library.compile())
            GTEST_SKIP() << "there is no C++ compiler";
        for (std::size_t c = 0; c < cases.size(); ++c) {
            Reduced out(cases[c]->program);
            const std::int64_t failing = expected(*cases[c], out.view);
            failed += failing >= 0 ? 1 : 0;
            SCOPED_TRACE("program " + std::to_string(first + static_cast<int>(c)));
            for (std::size_t l = 0; l < std::size(layouts); ++l) {
                const std::size_t text = c * std::size(layouts) + l;
                if ((first + static_cast<int>(c)) % 3 == 0)
                    run<float>(library, static_cast<int>(text), *cases[c], plans[text], failing, out);
                else
                    run<double>(library, static_cast<int>(text), *cases[c], plans[text], failing, out);
                if (HasFatalFailure())
                    return;
            }
        }
    }
    RecordProperty("programs that fail in a row", failed);
}

// Products of the first features, so many lines, with all, in one cell, whose elements are dealt out to threads; a row
// may fail.
std::unique_ptr<Case> products_case(bool exact, bool fails, std::int32_t lines, std::int32_t d)
{
    auto made = std::make_unique<Case>();
    made->d = d;
    Program &program = made->program;
    program.exact = exact;
    const std::int32_t pair = program.loop(lines * d), i = program.index(pair), width = program.constant(d);
    const std::int32_t a = program.column(0, program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {i, width})}), d),
                       b = program.column(0, program.add(PGKM_MODULO, {i, width}), d);
    const std::int32_t product = program.add(PGKM_MULTIPLY, {a, b});
    const std::int32_t value =
        fails ? program.add(PGKM_SQRT, {program.add(PGKM_ADD, {product, program.constant(3.25)})}) : product;
    program.item(value, PGKM_COMBINE_SUM, pair);
    program.item(program.add(PGKM_ABS, {value}), PGKM_COMBINE_SUM, pair);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.object(1, -1, program.add(PGKM_LESS, {program.column(1), program.constant(1.5)}));
    made->is_scale = {false, true, false};
    made->view = program.view();
    std::mt19937_64 random(5);
    for (int r = 0; r < 100 * d; ++r)
        made->rows.push_back(static_cast<double>(random() % 16) / 4.0 - 2.0);
    made->facts = std::make_unique<generate::Program>(made->view);
    return made;
}

TEST(GenerateRun, ElementsOfOneCell)
{
    GeneratedOnCpu library;
    std::vector<std::unique_ptr<Case>> cases;
    std::vector<generate::Plan> plans;
    for (const int kind : {0, 1, 2, 3, 4, 5}) { // of the last two no tile divides the lines, nor the columns
        cases.push_back(products_case(kind % 2 == 1, kind == 2 || kind == 3, kind < 4 ? 8 : 7, kind < 4 ? 8 : 11));
        const bool float32 = kind == 4, has_room = kind % 3 != 0; // and fewer rows than the block has threads
        const generate::Device device = {2, has_room ? 5000 : kind == 0 ? 1100 : 2100, has_room ? 20 : 8};
        for (const Layout layout : {Layout::thread_write_first, Layout::block, Layout::global}) {
            plans.push_back(make_plan(*cases.back()->facts, layout, device));
            EXPECT_EQ(plans.back().layout, layout);
            EXPECT_EQ(plans.back().stage.rows > 0, has_room && layout == Layout::block);
            EXPECT_EQ(plans.back().words.outputs[1].dealt, !plans.back().is_per_thread());
            library.add(kernel_source(*cases.back()->facts, plans.back(), {float32, cases.back()->d}));
        }
    }
    if (!library.compile())
        GTEST_SKIP() << "there is no C++ compiler";
    for (std::size_t text = 0; text < plans.size(); ++text) {
        const Case &of = *cases[text / 3];
        Reduced out(of.program);
        const std::int64_t failing = expected(of, out.view);
        EXPECT_EQ(failing >= 0, text / 6 == 1);
        (text / 3 == 4 ? run<float> : run<double>)(library, static_cast<int>(text), of, plans[text], failing, out);
    }
}

} // namespace
} // namespace pgkm
