// Random reductions beside the reference: every instruction set, one thread and several, the same bits; a device's to
// 1e-12.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "backend/reduction_program.hpp"
#include "session.hpp"
#include "subjects.hpp"
#include "support/random_program.hpp"

namespace conformance {
namespace {

struct Rows {
    Rows(std::uint64_t seed, std::int64_t n, std::int32_t d, bool wide)
    {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        for (std::int64_t i = 0; i < n * d; ++i) {
            const auto kind = random() % 8;
            const double value = kind == 0   ? 0.0
                                 : kind == 1 ? -0.0
                                 : kind < 5  ? static_cast<double>(random() % 9) - 4.0
                                             : normal(random) * 2.0;
            doubles.push_back(value);
            floats.push_back(static_cast<float>(value));
        }
        points = {wide ? static_cast<const void *>(doubles.data()) : floats.data(), wide ? PGKM_FLOAT64 : PGKM_FLOAT32,
                  n, d, nullptr};
    }
    std::vector<double> doubles;
    std::vector<float> floats;
    PgkmPoints points;
};

// The same number, or both none.
bool same(double a, double b)
{
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

bool is_device(const Subject &subject)
{
    return subject.device >= 0;
}

std::vector<Subject> subjects()
{
    std::vector<Subject> all;
    for (Subject subject : plain_subjects()) {
        PgkmError error = {};
        if (subject.table->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) == PGKM_UNSUPPORTED)
            continue;
        const char *const *sets = subject.table->strategies("instruction_set");
        for (; subject.device < 0 && *sets != nullptr; ++sets) {
            subject.tuning.instruction_set = *sets;
            subject.name = std::string("cpu_") + *sets;
            all.push_back(subject);
        }
        if (subject.device >= 0)
            all.push_back(subject);
    }
    return all;
}

PgkmStatus reduce(const Subject &subject, const PgkmPoints &points, const Program &program, std::int32_t threads,
                  Reduced &out)
{
    Session session(subject, points, {}, threads);
    PgkmProblem all = {};
    all.n_rows = points.n;
    return session.reduce(&all, 1, program.view(), &out.view);
}

// exp(), sin() and their like of a device may differ from those of the C library in the last bits, and with them what
// is made of them.
bool alike(double a, double b, bool on_device)
{
    return same(a, b) || (on_device && std::fabs(a - b) <= 1e-12 * std::fmax(std::fabs(a), std::fabs(b)));
}

void compare_values(const Program &program, const std::vector<bool> &is_scale, const Reduced &expected,
                    const Reduced &actual, bool on_device, const std::string &what)
{
    std::size_t place = 0;
    for (const PgkmObject &object : program.objects)
        for (std::int64_t cell = 0; cell < object.cells; ++cell)
            for (std::int32_t i = object.first_item; i < object.first_item + object.n_items; ++i) {
                const auto item = static_cast<std::size_t>(i);
                const std::int32_t loop = program.items[item].loop;
                const std::int64_t elements = loop < 0 ? 1 : program.loops[static_cast<std::size_t>(loop)];
                for (std::int64_t e = 0; e < elements; ++e, ++place) {
                    if (program.items[item].combine != PGKM_COMBINE_SUM || program.exact) {
                        ASSERT_TRUE(alike(expected.values[place], actual.values[place], on_device))
                            << what << ", value " << place << ": " << actual.values[place] << " for "
                            << expected.values[place];
                        continue;
                    }
                    // The next item is the sum of the magnitudes.
                    const double scale = is_scale[item] ? expected.values[place]
                                                        : expected.values[place + static_cast<std::size_t>(elements)];
                    ASSERT_NEAR(expected.values[place], actual.values[place], 1e-12 * scale) << what << place;
                }
            }
}

// How often a fault or none was seen.
struct Seen {
    int good = 0, faults[PGKM_FAULT_TOTAL + 1] = {};
};

void check(std::uint64_t seed, Seen &seen)
{
    std::mt19937_64 random(seed);
    static constexpr std::int64_t counts[] = {1, 2, 7, 31, 32, 33, 64, 65, 200, 511, 512, 513, 900};
    const std::int64_t n = counts[random() % 13];
    const auto d = static_cast<std::int32_t>(1 + random() % 6);
    const RandomProgram made(seed, d);
    const Program &program = made.program;
    ASSERT_NO_THROW(pgkm::check_program(program.view(), d)) << "seed " << seed;
    const Rows rows(seed, n, d, random() % 2 == 0);
    Reduced expected(program);
    const PgkmStatus status = reduce(reference_subject(), rows.points, program, 1, expected);
    ++(status == PGKM_OK ? seen.good : seen.faults[expected.view.fault]);
    bool first = true;
    Reduced of_first(program);
    for (const Subject &subject : subjects())
        for (const std::int32_t threads : {1, 3}) {
            const std::string what = "seed " + std::to_string(seed) + ", " + subject.name;
            Reduced again(program);
            Reduced &actual = first ? of_first : again;
            const bool failed = status == PGKM_INVALID && expected.view.row >= 0;
            ASSERT_EQ(reduce(subject, rows.points, program, threads, actual), failed ? of_failed_row(subject) : status)
                << what;
            if (failed && is_device(subject))
                continue;
            ASSERT_EQ(actual.view.fault, expected.view.fault) << what;
            ASSERT_EQ(actual.view.row, expected.view.row) << what;
            if (status != PGKM_OK) {
                EXPECT_EQ(actual.view.expression, expected.view.expression) << what;
                EXPECT_TRUE(same(actual.view.number, expected.view.number) || expected.view.row < 0)
                    << what << ": " << actual.view.number << " for " << expected.view.number;
                continue;
            }
            ASSERT_EQ(actual.counts, expected.counts) << what;
            compare_values(program, made.is_scale, expected, actual, is_device(subject), what);
            if (is_device(subject))
                continue; // adds in any order
            for (std::size_t i = 0; i < actual.values.size(); ++i)
                ASSERT_TRUE(same(actual.values[i], of_first.values[i])) << what << ", value " << i;
            first = false;
        }
}

bool has_device()
{
    const std::vector<Subject> all = subjects();
    return std::any_of(all.begin(), all.end(), is_device);
}

class RandomReductions : public testing::TestWithParam<int> {};

TEST_P(RandomReductions, AsReference)
{
    Seen seen;
    const std::uint64_t programs = has_device() ? 25 : 250; // each is compiled for a device
    for (std::uint64_t i = 0; i < programs && !HasFatalFailure(); ++i)
        check(static_cast<std::uint64_t>(GetParam()) * 1000 + i, seen);
    // The generator still does its work. Of a few programs none need have a fault.
    EXPECT_GT(seen.good, static_cast<int>(programs * 2 / 5));
    if (!has_device()) {
        EXPECT_GT(seen.faults[PGKM_FAULT_NUMBER], static_cast<int>(programs / 50));
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomReductions, testing::Range(0, 8));

} // namespace
} // namespace conformance
