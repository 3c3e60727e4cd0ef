// Users' reductions of known outcome, on every backend that has them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "compare.hpp"
#include "session.hpp"
#include "subjects.hpp"
#include "support/program.hpp"

namespace conformance {
namespace {

PgkmPoints points_of(const std::vector<double> &values, std::int32_t d)
{
    return {values.data(), PGKM_FLOAT64, static_cast<std::int64_t>(values.size()) / d, d, nullptr};
}

bool has_reduce(const Subject &subject)
{
    PgkmError error = {};
    return subject.table->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) != PGKM_UNSUPPORTED;
}

std::vector<Subject> subjects()
{
    std::vector<Subject> all = {reference_subject()};
    for (const Subject &subject : plain_subjects())
        all.push_back(subject);
    std::erase_if(all, [](const Subject &subject) { return !has_reduce(subject); });
    return all;
}

PgkmStatus reduce(const Subject &subject, const PgkmPoints &points, const Program &program, Reduced &out,
                  std::int32_t threads = 3, std::uint64_t memory_limit = 0)
{
    Session session(subject, points, {}, threads, memory_limit);
    PgkmProblem all = {};
    all.n_rows = points.n;
    return session.reduce(&all, 1, program.view(), &out.view);
}

// One step of k-means: the sums of assign().
TEST(ReduceOf, KMeansStep)
{
    const std::vector<double> rows = {0, 0, 1, 0, 10, 10, 11, 10, 0, 1};
    Program program;
    program.parameters = {0, 0, 10, 10};
    const std::int32_t cell = program.nearest(2, 2, 0), i = program.loop(2);
    program.item(program.constant(1.0));
    program.item(program.column(0, program.index(i), 2), PGKM_COMBINE_SUM, i);
    program.object(3, cell);
    for (const Subject &subject : subjects())
        for (const bool exact : {false, true}) {
            program.exact = exact;
            Reduced out(program);
            ASSERT_EQ(reduce(subject, points_of(rows, 2), program, out), PGKM_OK) << subject.name;
            EXPECT_EQ(out.values, (std::vector<double>{3, 1, 1, 2, 21, 20, 0, 0, 0})) << subject.name;
            EXPECT_EQ(out.counts, (std::vector<std::int64_t>{3, 2, 0}));
            EXPECT_EQ(out.view.fault, PGKM_FAULT_NONE);
            EXPECT_EQ(out.view.row, -1);
        }
}

TEST(ReduceOf, LeastGreatestAndKeys)
{
    // x, key: -0 is 0, of equal values the least key counts, and a cell without rows has none.
    const std::vector<double> rows = {5, 3, -0.0, 9, 0, 7, 2, -0.0, 2, 4};
    Program program;
    const std::int32_t x = program.column(0), key = program.column(1);
    program.item(x, PGKM_COMBINE_MIN);
    program.item(x, PGKM_COMBINE_MAX);
    program.item(x, PGKM_COMBINE_ARGMIN, -1, key);
    program.item(-1, PGKM_COMBINE_COUNT);
    program.object(3, program.add(PGKM_LEAST, {program.constant(2.0), x}));
    for (const Subject &subject : subjects()) {
        Reduced out(program);
        ASSERT_EQ(reduce(subject, points_of(rows, 2), program, out), PGKM_OK) << subject.name;
        EXPECT_EQ(out.counts, (std::vector<std::int64_t>{2, 0, 3})) << subject.name;
        EXPECT_EQ(out.values[0], 0.0);
        EXPECT_FALSE(std::signbit(out.values[0]) || std::signbit(out.values[1]));
        EXPECT_EQ(out.values[2], 7.0);
        for (const std::size_t none : {4, 5, 6})
            EXPECT_TRUE(std::isnan(out.values[none])) << subject.name;
        EXPECT_EQ(out.values[7], 0.0);
        EXPECT_EQ((std::vector<double>(out.values.begin() + 8, out.values.end())), (std::vector<double>{2, 5, 0, 3}));
        EXPECT_FALSE(std::signbit(out.values[10]));
    }
}

struct Failing {
    const char *name;
    PgkmFault fault;
    double number;
    std::int32_t (*make)(Program &, std::int32_t x); // an expression that fails for x = 0
};

const Failing failing[] = {
    {"ln", PGKM_FAULT_NUMBER, -INFINITY, [](Program &p, std::int32_t x) { return p.add(PGKM_LN, {x}); }},
    {"divide", PGKM_FAULT_DIVISION, 3.0,
     [](Program &p, std::int32_t x) {
         return p.add(PGKM_DIVIDE, {p.constant(3.0), x});
     }},
    {"modulo", PGKM_FAULT_DIVISION, 3.0,
     [](Program &p, std::int32_t x) {
         return p.add(PGKM_MODULO, {p.constant(3.0), x});
     }},
    {"subscript", PGKM_FAULT_SUBSCRIPT, -1.0,
     [](Program &p, std::int32_t x) {
         const std::int32_t place = p.add(PGKM_SUBTRACT, {p.add(PGKM_SIGN, {x}), p.constant(1.0)});
         return p.column(0, place, 1);
     }},
    {"lost", PGKM_FAULT_NUMBER, -INFINITY, // exp(ln(0)) would be 0
     [](Program &p, std::int32_t x) { return p.add(PGKM_EXP, {p.add(PGKM_LN, {x})}); }},
    {"least", PGKM_FAULT_DIVISION, 1.0,
     [](Program &p, std::int32_t x) {
         return p.add(PGKM_LEAST, {p.add(PGKM_DIVIDE, {p.constant(1.0), x}), p.constant(5.0)});
     }},
};

// The first row of several that fail is named, in whatever segment.
TEST(ReduceOf, FaultsOfRows)
{
    constexpr std::int64_t n = 3000;
    for (const Failing &how : failing)
        for (const std::int64_t row : {std::int64_t{0}, n / 2, n - 1}) {
            std::vector<double> rows(n, 1.0);
            for (std::int64_t i = row; i < n; i += 700)
                rows[static_cast<std::size_t>(i)] = 0.0;
            Program program;
            program.item(how.make(program, program.column(0)));
            program.object(1, -1);
            Reduced expected(program);
            ASSERT_EQ(reduce(reference_subject(), points_of(rows, 1), program, expected), PGKM_INVALID) << how.name;
            EXPECT_EQ(expected.view.fault, how.fault) << how.name;
            EXPECT_EQ(expected.view.number, how.number) << how.name;
            for (const Subject &subject : subjects())
                for (const std::int32_t threads : {1, 4}) {
                    Reduced out(program);
                    EXPECT_EQ(reduce(subject, points_of(rows, 1), program, out, threads), of_failed_row(subject));
                    if (subject.device >= 0)
                        continue;
                    EXPECT_EQ(out.view.row, row) << how.name << ", " << subject.name;
                    EXPECT_EQ(out.view.fault, how.fault) << how.name;
                    EXPECT_EQ(out.view.number, how.number) << how.name;
                    EXPECT_EQ(out.view.expression, expected.view.expression) << how.name;
                }
            // What is not reached does not fail: behind a filter, and in a CASE.
            program.objects[0].filter = program.column(0);
            const std::int32_t kept =
                program.add(PGKM_CASE, {program.column(0), program.items[0].value, program.constant(0.0)});
            for (const std::int32_t value : {program.items[0].value, kept}) {
                program.objects[0].filter = value == kept ? -1 : program.objects[0].filter;
                program.items[0].value = value;
                for (const Subject &subject : subjects()) {
                    Reduced out(program);
                    EXPECT_EQ(reduce(subject, points_of(rows, 1), program, out), PGKM_OK) << how.name;
                }
            }
        }
}

// The floor of an index is looked at ahead of what depends on it: where that is not reached, its fault is not named.
TEST(ReduceOf, FaultsOfPartsOfAnIndex)
{
    Program program;
    program.parameters = {0.0};
    const std::int32_t loop = program.loop(3), x = program.column(0), zero = program.parameter(0);
    const std::int32_t line = program.add(PGKM_FLOOR, {program.add(PGKM_DIVIDE, {program.index(loop), zero})});
    const std::int32_t few = program.add(PGKM_LESS, {x, program.constant(5.0)});
    const std::int32_t logarithm = program.add(PGKM_LN, {x});
    program.item(program.add(PGKM_CASE, {few, logarithm, line}), PGKM_COMBINE_SUM, loop);
    program.object(1, -1);
    const struct {
        std::vector<double> rows;
        PgkmFault fault;
        std::int32_t expression;
    } cases[] = {
        {{1, 1}, PGKM_FAULT_NONE, 0}, {{1, 0}, PGKM_FAULT_NUMBER, logarithm}, {{1, 7}, PGKM_FAULT_DIVISION, line - 1}};
    for (const Subject &subject : subjects())
        for (const auto &wanted : cases) {
            Reduced out(program);
            const bool fails = wanted.fault != PGKM_FAULT_NONE;
            EXPECT_EQ(reduce(subject, points_of(wanted.rows, 1), program, out),
                      fails ? of_failed_row(subject) : PGKM_OK);
            if (fails && subject.device < 0) {
                EXPECT_EQ(out.view.fault, wanted.fault) << subject.name;
                EXPECT_EQ(out.view.expression, wanted.expression) << subject.name;
            }
        }
}

TEST(ReduceOf, FaultsOfCellsAndTotals)
{
    const std::vector<double> huge = {1e308, 1e308, -1e308, 1e308};
    Program total;
    total.item(total.column(0));
    total.object(1, -1);
    std::vector<double> rows(1000, 1.0);
    rows[700] = 2.0;
    rows[710] = 0.5;
    Program cell;
    cell.item(cell.constant(1.0));
    cell.object(2, cell.column(0));
    for (const Subject &subject : subjects()) {
        Reduced sum(total), of_cell(cell);
        total.exact = true; // whose integers have room for what follows
        EXPECT_EQ(reduce(subject, points_of(huge, 1), total, sum), PGKM_INVALID) << subject.name;
        EXPECT_EQ(sum.view.fault, PGKM_FAULT_TOTAL) << subject.name;
        EXPECT_EQ(sum.view.expression, 0);
        EXPECT_EQ(sum.view.row, -1);
        EXPECT_EQ(reduce(subject, points_of(rows, 1), cell, of_cell), of_failed_row(subject)) << subject.name;
        if (subject.device >= 0)
            continue;
        EXPECT_EQ(of_cell.view.fault, PGKM_FAULT_CELL);
        EXPECT_EQ(of_cell.view.row, 700);
        EXPECT_EQ(of_cell.view.number, 2.0);
    }
}

// Integer sums do not depend on the order of the rows.
TEST(ReduceOf, ExactInAnyOrder)
{
    std::mt19937_64 random(3);
    std::vector<double> rows;
    for (int i = 0; i < 5000; ++i)
        rows.push_back(std::ldexp(static_cast<double>(random() % 1000003), static_cast<int>(random() % 40)));
    Program program;
    program.exact = true;
    const std::int32_t x = program.column(0);
    program.item(program.add(PGKM_SQRT, {x}));
    program.object(1, -1);
    program.item(x);
    program.object(7, program.add(PGKM_MODULO, {x, program.constant(7.0)}));
    for (const Subject &subject : subjects()) {
        Reduced first(program);
        ASSERT_EQ(reduce(subject, points_of(rows, 1), program, first), PGKM_OK) << subject.name;
        std::vector<double> shuffled = rows;
        for (const std::int32_t threads : {1, 2, 5}) {
            std::shuffle(shuffled.begin(), shuffled.end(), random);
            Reduced again(program);
            ASSERT_EQ(reduce(subject, points_of(shuffled, 1), program, again, threads), PGKM_OK);
            EXPECT_EQ(again.values, first.values) << subject.name;
        }
    }
}

// R so large that few copies fit: threads take parts of it, of cells or of the elements of one cell.
TEST(ReduceOf, ManyCells)
{
    constexpr std::int64_t cells = 5'000'000;
    constexpr std::size_t elements = 4'200'000;
    std::vector<double> rows;
    for (int i = 0; i < 2000; ++i)
        rows.push_back((i * 7919) % cells);
    Program by_cell;
    by_cell.item(by_cell.column(0));
    by_cell.object(cells, by_cell.column(0));
    Program wide;
    const std::int32_t loop = wide.loop(elements);
    wide.item(wide.add(PGKM_ADD, {wide.column(0), wide.index(loop)}), PGKM_COMBINE_SUM, loop);
    wide.object(1, -1);
    for (const Subject &subject : plain_subjects()) {
        if (!has_reduce(subject))
            continue;
        for (const std::int32_t threads : {1, 4}) {
            Reduced out(by_cell), sums(wide);
            ASSERT_EQ(reduce(subject, points_of(rows, 1), by_cell, out, threads), PGKM_OK) << subject.name;
            EXPECT_EQ(std::count(out.counts.begin(), out.counts.end(), 1), 2000);
            for (const double row : rows)
                ASSERT_EQ(out.values[static_cast<std::size_t>(row)], row);
            const PgkmPoints few = {rows.data(), PGKM_FLOAT64, 3, 1, nullptr};
            ASSERT_EQ(reduce(subject, few, wide, sums, threads), PGKM_OK) << subject.name;
            EXPECT_EQ(sums.counts[0], 3);
            std::size_t right = 0;
            for (std::size_t e = 0; e < elements; ++e)
                right += sums.values[e] == rows[0] + rows[1] + rows[2] + 3.0 * static_cast<double>(e) ? 1 : 0;
            EXPECT_EQ(right, elements);
        }
        Reduced out(by_cell);
        EXPECT_EQ(reduce(subject, points_of(rows, 1), by_cell, out, 1, 1 << 20), PGKM_LIMIT) << subject.name;
    }
}

} // namespace
} // namespace conformance
