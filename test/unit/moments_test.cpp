// Moments that merge, and the generalised reduction below the backends' sums.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "backend/calls.hpp"
#include "engine/api.h"
#include "numeric/reduction.hpp"

namespace pgkm {
namespace {

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

struct Moments {
    explicit Moments(std::int32_t features) : d(features), mean(at(d)), cross(at(triangle_size(d))) {}
    PgkmRowMoments view() { return {n, mass, d, mean.data(), cross.data()}; }
    void add(const std::vector<double> &rows) { add(rows.data(), nullptr, static_cast<std::int64_t>(rows.size()) / d); }
    void add(const double *rows, const double *weights, std::int64_t count)
    {
        PgkmRowMoments v = view();
        PgkmError error;
        EXPECT_EQ(pgkm_moments_add(&v, rows, weights, count, nullptr, &error), PGKM_OK);
        n = v.n;
        mass = v.mass;
    }
    void merge(Moments &other)
    {
        PgkmRowMoments v = view();
        const PgkmRowMoments second = other.view();
        PgkmError error;
        EXPECT_EQ(pgkm_moments_merge(&v, &second, &error), PGKM_OK);
        n = v.n;
        mass = v.mass;
    }

    std::int64_t n = 0;
    double mass = 0.0;
    std::int32_t d;
    std::vector<double> mean, cross;
};

std::vector<double> random_rows(std::int64_t n, std::int32_t d, double offset, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> rows;
    for (std::int64_t i = 0; i < n * d; ++i)
        rows.push_back(offset + normal(random) * static_cast<double>(1 + i % d));
    return rows;
}

// Against two passes in long double.
void expect_moments(const std::vector<double> &rows, const Moments &moments, double tolerance)
{
    const std::int32_t d = moments.d;
    const std::int64_t n = static_cast<std::int64_t>(rows.size()) / d;
    ASSERT_EQ(moments.n, n);
    std::vector<long double> mean(at(d)), square(at(d));
    for (std::int64_t i = 0; i < n * d; ++i)
        mean[at(i % d)] += static_cast<long double>(rows[at(i)]) / static_cast<long double>(n);
    for (std::int64_t i = 0; i < n * d; ++i)
        square[at(i % d)] += (rows[at(i)] - mean[at(i % d)]) * (rows[at(i)] - mean[at(i % d)]);
    for (std::int32_t a = 0; a < d; ++a) {
        const double spread = static_cast<double>(std::sqrt(square[at(a)] / static_cast<long double>(n)));
        EXPECT_NEAR(moments.mean[at(a)], static_cast<double>(mean[at(a)]),
                    1e-14 * (std::fabs(static_cast<double>(mean[at(a)])) + spread));
        for (std::int32_t b = 0; b <= a; ++b) {
            long double sum = 0;
            for (std::int64_t i = 0; i < n; ++i)
                sum += (rows[at(i * d + a)] - mean[at(a)]) * (rows[at(i * d + b)] - mean[at(b)]);
            const double size = static_cast<double>(std::sqrt(square[at(a)] * square[at(b)]));
            ASSERT_NEAR(moments.cross[at(triangle_size(a) + b)], static_cast<double>(sum), tolerance * size)
                << a << ", " << b;
        }
    }
}

TEST(Moments, OfBlocksOfAnyLength)
{
    for (const std::int32_t d : {1, 2, 3, 4, 11, 12, 13, 50, 97})
        for (const std::int64_t n : {1, 2, 7, 384, 385, 1000}) {
            const std::vector<double> rows = random_rows(n, d, 3.0, 1);
            Moments moments(d);
            moments.add(rows);
            expect_moments(rows, moments, 1e-14);
        }
}

TEST(Moments, WideOffsets)
{
    const std::vector<double> rows = random_rows(3000, 5, 1e6, 2);
    Moments moments(5);
    for (std::int64_t i = 0; i < 3000; i += 8)
        moments.add({rows.begin() + i * 5, rows.begin() + (i + 8) * 5});
    // A mean of 1e6 is known to 1e-10, and so are deviations of 1 from it.
    expect_moments(rows, moments, 1e-11);
}

TEST(Moments, Merge)
{
    const std::vector<double> rows = random_rows(1003, 7, -50.0, 3);
    Moments first(7), second(7), empty(7);
    first.add({rows.begin(), rows.begin() + 7 * 400});
    second.add({rows.begin() + 7 * 400, rows.end()});
    first.merge(empty);
    empty.merge(first);
    empty.merge(second);
    expect_moments(rows, empty, 1e-13);
}

// A row of weight w counts like w rows; halves of weights change nothing but the mass.
TEST(Moments, Weights)
{
    const std::int32_t d = 5;
    const std::int64_t n = 700;
    const std::vector<double> rows = random_rows(n, d, 20.0, 5);
    std::vector<double> repeated, weights, halves;
    for (std::int64_t i = 0; i < n; ++i) {
        weights.push_back(static_cast<double>(1 + i % 3));
        halves.push_back(weights.back() / 2.0);
        for (std::int64_t copy = 0; copy <= i % 3; ++copy)
            repeated.insert(repeated.end(), rows.begin() + i * d, rows.begin() + (i + 1) * d);
    }
    Moments plain(d), weighted(d), half(d), second(d);
    plain.add(repeated);
    weighted.add(rows.data(), weights.data(), 400);
    second.add(rows.data() + 400 * d, weights.data() + 400, n - 400);
    weighted.merge(second);
    half.add(rows.data(), halves.data(), n);
    EXPECT_EQ(weighted.n, n);
    EXPECT_EQ(weighted.mass, static_cast<double>(plain.n));
    EXPECT_EQ(half.mass, weighted.mass / 2.0);
    for (std::size_t f = 0; f < plain.mean.size(); ++f)
        EXPECT_NEAR(weighted.mean[f], plain.mean[f], 1e-12);
    for (std::size_t i = 0; i < plain.cross.size(); ++i) {
        EXPECT_NEAR(weighted.cross[i], plain.cross[i], 1e-9);
        EXPECT_NEAR(half.cross[i], plain.cross[i] / 2.0, 1e-9);
    }
}

// However rows that never vary are cut up, there is no variance.
TEST(Moments, ConstantFeatures)
{
    Moments moments(2), more(2);
    for (int i = 0; i < 100; ++i)
        moments.add(std::vector<double>(26, 0.1));
    more.add(std::vector<double>(2002, 0.1));
    moments.merge(more);
    EXPECT_EQ(moments.mean, (std::vector<double>{0.1, 0.1}));
    EXPECT_EQ(moments.cross, (std::vector<double>{0, 0, 0}));
}

// Both functions change what they are given in the caller's thread: too many rows, and an end.
TEST(Moments, AsTheApiHasThem)
{
    std::vector<double> mean(2), cross(3), rows(4, 1.0);
    PgkmRowMoments most = {PGKM_MAX_ROWS - 1, 0x1p53 - 1, 2, mean.data(), cross.data()}, two = most;
    PgkmError error;
    two.n = 2;
    EXPECT_EQ(pgkm_moments_add(&most, rows.data(), nullptr, 2, nullptr, &error), PGKM_LIMIT);
    EXPECT_EQ(pgkm_moments_merge(&most, &two, &error), PGKM_LIMIT);
    EXPECT_EQ(pgkm_moments_add(&most, rows.data(), nullptr, 1, nullptr, &error), PGKM_OK);
    EXPECT_EQ(most.n, PGKM_MAX_ROWS);
    const PgkmInterrupted at_once = [] { return 1; };
    EXPECT_EQ(pgkm_moments_add(&two, rows.data(), nullptr, 2, at_once, &error), PGKM_CANCELLED);
}

// Products of features are summed some features at a time where there are many.
TEST(Moments, OfManyFeatures)
{
    const std::int32_t d = 1700;
    const std::vector<double> rows = random_rows(100, d, 3.0, 4);
    Moments moments(d);
    moments.add(rows);
    expect_moments(rows, moments, 1e-13);
}

struct Serial {
    template <typename Body>
    void operator()(std::int64_t tasks, Body &&body) const
    {
        for (std::int64_t i = tasks; i-- > 0;) // any order
            body(i, 0);
    }
};

TEST(Reduction, EveryRowOfEveryPartOnce)
{
    for (const std::int64_t rows : {1, 383, 384, 385, 10'000, 1'000'003})
        for (const std::int64_t values : {1, 1000, 3'000'000, 20'000'000}) {
            const ReductionPlan plan = plan_reduction(rows, 384, values, 7);
            ASSERT_GE(plan.segments, 1);
            ASSERT_EQ(plan.first_row(0), 0);
            ASSERT_EQ(plan.first_row(plan.segments), rows);
            for (std::int64_t s = 0; s < plan.segments; ++s) {
                EXPECT_LT(plan.first_row(s), plan.first_row(s + 1));
                EXPECT_EQ(plan.first_row(s) % 384, 0);
            }
        }
}

// In whatever pieces of whole blocks they come, and however many copies of R there are.
TEST(Reduction, SumsHaveTheirOrder)
{
    static constexpr std::int64_t rows = 5003, block = 10;
    const auto sums_of = [](const SumPlan &plan, const std::vector<std::int64_t> &pieces) {
        std::vector<double> memory(at(plan.memory()));
        OrderedSums sums(plan, memory.data());
        std::size_t next = 0;
        for (std::int64_t first = 0; first < rows;) {
            const std::int64_t last = std::min(rows, first + pieces[next++ % pieces.size()]);
            sums.add(first, last, Serial(), [](const ReductionTask &task, double *r, int) {
                for (std::int64_t i = task.first; i < task.last; ++i)
                    r[i % 3] += 1.0 / static_cast<double>(i + 1);
            });
            first = last;
        }
        return std::vector<double>(memory.begin(), memory.begin() + 3);
    };
    SumPlan plan = plan_sums(rows, block, 3, 1);
    EXPECT_EQ(plan.copies, plan.segments);
    for (std::int64_t segment = 0; segment < plan.segments; ++segment) {
        EXPECT_EQ(plan.segment_of(plan.first_row(segment)), segment);
        EXPECT_EQ(plan.segment_of(plan.first_row(segment + 1) - 1), segment);
    }
    const std::vector<double> whole = sums_of(plan, {rows});
    double total = 0.0;
    for (std::int64_t i = 0; i < rows; ++i)
        total += 1.0 / static_cast<double>(i + 1);
    EXPECT_NEAR(whole[0] + whole[1] + whole[2], total, 1e-12);
    for (const std::int64_t copies : {1, 5, 64}) {
        plan.copies = copies;
        for (const std::vector<std::int64_t> &pieces : {std::vector<std::int64_t>{rows}, {10}, {10, 2000, 350}})
            EXPECT_EQ(sums_of(plan, pieces), whole) << copies << " copies";
    }
    // Of many rows no segment is long.
    const SumPlan many = plan_sums(10'000'000, block, 3, 1);
    EXPECT_EQ(many.copies, most_reduction_tasks);
    EXPECT_EQ(many.segments, 10'000'000 / block / most_blocks_of_sums);
}

} // namespace
} // namespace pgkm
