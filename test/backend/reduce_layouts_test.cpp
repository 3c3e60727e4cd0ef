// Random reductions on a device beside the reference: each layout, rows that stay there and rows that come in chunks.
//
// Operations that round alike everywhere only: a device's exp() may differ from the CPU's in the last bit, and floor()
// would make a different cell of that.
#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "session.hpp"
#include "subjects.hpp"
#include "support/random_program.hpp"

namespace conformance {
namespace {

bool rounds_alike(const Program &program)
{
    for (const PgkmExpression &x : program.expressions) {
        const bool function = x.operation == PGKM_EXP || x.operation == PGKM_LN ||
                              (x.operation >= PGKM_SIN && x.operation <= PGKM_TANH) || x.operation == PGKM_ATAN2;
        const PgkmReduction view = program.view();
        if (function || (x.operation == PGKM_POWER && !pgkm::is_square(view, x)))
            return false;
    }
    return true;
}

// Each layout of the device, and those with so little memory that rows are streamed.
std::vector<Subject> subjects()
{
    std::vector<Subject> all;
    for (const Subject &plain : plain_subjects()) {
        if (plain.device < 0)
            continue;
        for (const char *const *layout = plain.table->strategies("reduction_layout"); *layout != nullptr; ++layout)
            for (const bool streamed : {false, true}) {
                all.push_back(plain);
                all.back().name += std::string(" ") + *layout + (streamed ? " streamed" : "");
                all.back().tuning.reduction_layout = *layout;
                all.back().device_memory_limit = streamed ? std::uint64_t{24} << 20 : 0;
            }
    }
    return all;
}

PgkmStatus reduce(const Subject &subject, const PgkmPoints &points, const Program &program, Reduced &out)
{
    Session session(subject, points);
    PgkmProblem all = {};
    all.n_rows = points.n;
    return session.reduce(&all, 1, program.view(), &out.view);
}

void compare(const Program &program, const std::vector<bool> &is_scale, const Reduced &expected, const Reduced &actual,
             const std::string &what)
{
    std::size_t place = 0;
    ASSERT_EQ(actual.counts, expected.counts) << what;
    for (const PgkmObject &object : program.objects)
        for (std::int64_t cell = 0; cell < object.cells; ++cell)
            for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
                const auto item = static_cast<std::size_t>(i);
                const std::int64_t elements = pgkm::elements_of(program.view(), program.items[item].loop);
                for (std::int64_t e = 0; e < elements; ++e, ++place) {
                    const double a = expected.values[place], b = actual.values[place];
                    const bool sum = program.items[item].combine == PGKM_COMBINE_SUM && !program.exact;
                    const std::size_t scale = is_scale[item] ? place : place + static_cast<std::size_t>(elements);
                    if (sum)
                        ASSERT_NEAR(a, b, 1e-12 * expected.values[scale]) << what << ", value " << place;
                    else
                        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << ", value " << place;
                }
            }
}

// Enough rows for many blocks, and for chunks where the device's memory is short.
void check(std::uint64_t seed, const std::vector<Subject> &subjects)
{
    constexpr std::int32_t d = 5;
    const RandomProgram made(seed, d);
    if (!rounds_alike(made.program))
        return;
    std::mt19937_64 random(seed);
    std::vector<double> rows(static_cast<std::size_t>(20000 + random() % 1000) * d);
    for (double &value : rows)
        value = static_cast<double>(random() % 4001) / 1000.0 - 2.0;
    const PgkmPoints points = {rows.data(), PGKM_FLOAT64, static_cast<std::int64_t>(rows.size()) / d, d, nullptr};
    Reduced expected(made.program);
    const PgkmStatus status = reduce(reference_subject(), points, made.program, expected);
    for (const Subject &subject : subjects) {
        const std::string what = "seed " + std::to_string(seed) + ", " + subject.name;
        Reduced actual(made.program);
        const bool failed = status == PGKM_INVALID && expected.view.row >= 0;
        ASSERT_EQ(reduce(subject, points, made.program, actual), failed ? of_failed_row(subject) : status) << what;
        if (failed)
            continue;
        ASSERT_EQ(actual.view.fault, expected.view.fault) << what;
        ASSERT_EQ(actual.view.row, expected.view.row) << what;
        if (status == PGKM_OK)
            compare(made.program, made.is_scale, expected, actual, what);
    }
}

class ReduceLayouts : public testing::TestWithParam<const char *> {};

TEST_P(ReduceLayouts, AsReference)
{
    const std::vector<Subject> all = subjects();
    if (all.empty())
        GTEST_SKIP() << plugin_absence();
    PgkmError error = {};
    if (all[0].table->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) != PGKM_OK)
        GTEST_SKIP() << error.text;
    for (std::uint64_t seed = 1; seed <= 60 && !HasFatalFailure(); ++seed)
        check(seed, all);
}

INSTANTIATE_TEST_SUITE_P(Device, ReduceLayouts, testing::Values("cuda"),
                         [](const auto &name) { return std::string(name.param); });

} // namespace
} // namespace conformance
