// What saves time is left out where memory is short: the same results with less, and no limit that is too low beside a
// lower one that is not.
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "cpu/for_problems.hpp"
#include "draws.hpp"
#include "seeded_rows.hpp"

namespace pgkm {
namespace {

class FittedRows : public SeededRows {
  public:
    using SeededRows::SeededRows;

    std::vector<double> fit(std::vector<double> centroids)
    {
        PgkmProblem one = problem(centroids);
        const PgkmFitParams params = {PGKM_L2, 10};
        status = table_->fit(data_, &one, 1, &params, &error_);
        return centroids;
    }

    std::vector<double> distances(std::vector<double> centroids)
    {
        const PgkmProblem one = problem(centroids);
        std::vector<double> found(static_cast<std::size_t>(n()));
        PgkmAssignment wanted = {};
        wanted.distances = found.data();
        status = table_->assign(data_, &one, 1, &wanted, &error_);
        return found;
    }

    std::vector<std::int32_t> labels_of_sizes(std::vector<double> centroids)
    {
        PgkmProblem one = problem(centroids);
        const PgkmFitParams params = {PGKM_L2, 2};
        const std::int64_t fair = n() / one.k;
        const std::vector<PgkmSizeBounds> bounds(static_cast<std::size_t>(one.k), {fair - 5, fair + 5});
        std::vector<std::int32_t> labels(static_cast<std::size_t>(n()));
        PgkmAssignment wanted = {};
        wanted.labels = labels.data();
        status = table_->fit_sizes(data_, &one, 1, &params, bounds.data(), &wanted, &error_);
        return labels;
    }
};

std::vector<double> uniform(std::size_t count)
{
    Draws draws(3);
    return draws.fill(count, [](Draws &next) { return next.uniform(); });
}

// From the least limit under which `run` ends well, it does under all higher ones, and with the same result.
template <typename Result>
void expect_less_is_enough(const std::vector<double> &rows, std::int32_t d,
                           const std::function<Result(FittedRows &)> &run)
{
    FittedRows without_limit(cpu_backend(), rows, d);
    const Result expected = run(without_limit);
    ASSERT_EQ(without_limit.status, PGKM_OK);
    bool was_enough = false;
    for (std::uint64_t limit = 20000; limit < 16000000; limit += limit / 20) {
        FittedRows limited(cpu_backend(), rows, d, {}, limit);
        const Result result = run(limited);
        EXPECT_EQ(limited.status, was_enough || limited.status == PGKM_OK ? PGKM_OK : PGKM_LIMIT) << limit;
        if (limited.status != PGKM_OK)
            continue;
        was_enough = true;
        EXPECT_EQ(result, expected) << limit;
    }
    EXPECT_TRUE(was_enough);
}

TEST(ShortMemory, LeavesOutBoundsOfRows)
{
    constexpr std::int32_t d = 2, k = 64;
    const std::vector<double> rows = uniform(50000 * d), first(rows.begin(), rows.begin() + k * d);
    const std::vector<double> expected = FittedRows(cpu_backend(), rows, d).fit(first);
    FittedRows with_labels_alone(cpu_backend(), rows, d, {},
                                 450000); // bounds would be 400,000 beside labels of 200,000
    EXPECT_EQ(with_labels_alone.fit(first), expected);
    EXPECT_EQ(with_labels_alone.status, PGKM_OK);
    FittedRows without_labels(cpu_backend(), rows, d, {}, 100000);
    without_labels.fit(first);
    EXPECT_EQ(without_labels.status, PGKM_LIMIT);
}

TEST(ShortMemory, FitsAndFillsEmptyClustersUnderEveryLimitAboveTheLeast)
{
    for (const std::int32_t d : {2, 40}) {
        const std::vector<double> rows = uniform(static_cast<std::size_t>(4000 * d));
        std::vector<double> first(rows.begin(), rows.begin() + 40 * d);
        std::copy_n(first.begin(), 20 * d, first.begin() + 20 * d); // of equal centroids one has rows
        expect_less_is_enough<std::vector<double>>(rows, d, [&](FittedRows &data) { return data.fit(first); });
    }
}

TEST(ShortMemory, AssignsUnderEveryLimitAboveTheLeast)
{
    constexpr std::int32_t d = 40;
    const std::vector<double> rows = uniform(4000 * d), centroids(rows.begin(), rows.begin() + 200 * d);
    expect_less_is_enough<std::vector<double>>(rows, d, [&](FittedRows &data) { return data.distances(centroids); });
}

TEST(ShortMemory, SeedsUnderEveryLimitAboveTheLeast)
{
    constexpr std::int32_t d = 10;
    const std::vector<double> rows = uniform(4000 * d);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL})
        expect_less_is_enough<std::vector<double>>(rows, d,
                                                   [&](FittedRows &data) { return data.seed_or_none(64, init, 7); });
}

// An order and places in it, what is known of each row, and the tiles' own of them. Without a list of rows that trials
// win.
TEST(ShortMemory, SeedsRowsOfTwoFeaturesByFewBytesEach)
{
    constexpr std::int32_t d = 2, k = 20; // tiles are made twice
    constexpr std::size_t n = 200000;
    const std::vector<double> rows = uniform(n * d);
    const std::vector<double> expected = FittedRows(cpu_backend(), rows, d).seed(k, PGKM_INIT_KMEANS_PLUS_PLUS, 7);
    const auto expect_enough = [&](std::size_t limit) {
        FittedRows limited(cpu_backend(), rows, d, {}, limit);
        EXPECT_EQ(limited.seed_or_none(k, PGKM_INIT_KMEANS_PLUS_PLUS, 7), expected) << limit;
    };
    expect_enough(n * 46);
    for (std::size_t limit = n * 48; limit < n * 51; limit += n / 8) // where there is room for the list, or just not
        expect_enough(limit);
}

TEST(ShortMemory, BoundsSizesUnderEveryLimitAboveTheLeast)
{
    constexpr std::int32_t d = 2;
    const std::vector<double> rows = uniform(2000 * d), first(rows.begin(), rows.begin() + 8 * d);
    expect_less_is_enough<std::vector<std::int32_t>>(rows, d,
                                                     [&](FittedRows &data) { return data.labels_of_sizes(first); });
}

// Two small problems need more than half of the memory each, and the second asks while the first has it.
TEST(ShortMemory, RunsProblemsAgainThatFindNoRoomBesideOthers)
{
    PgkmOpen options = {};
    options.memory_limit = 10000;
    cpu::Context context(options, 2);
    if (context.pool.size() < 2)
        GTEST_SKIP() << "no second thread starts";
    double row = 0.0, centroids[] = {0.0, 1.0};
    cpu::Data data{context, {&row, PGKM_FLOAT64, 1, 1, nullptr}};
    PgkmProblem problems[2] = {};
    for (int p = 0; p < 2; ++p) {
        problems[p].n_rows = problems[p].k = 1;
        problems[p].centroids = centroids + p;
    }
    std::atomic<bool> begun = false, held = false, failed = false;
    cpu::for_problems(data, problems, 2, [&](std::int64_t p, ThreadPool &) {
        const bool is_first = !begun.exchange(true);
        centroids[p] += 10.0; // as an iteration
        while (!is_first && !held)
            std::this_thread::yield();
        try {
            const cpu::Buffer<std::byte> room(context.budget, 6000);
            held = true;
            while (is_first && !failed)
                std::this_thread::yield();
        } catch (const Error &) {
            failed = true;
            throw;
        }
    });
    EXPECT_TRUE(failed);
    EXPECT_EQ(centroids[0], 10.0);
    EXPECT_EQ(centroids[1], 11.0);
}

} // namespace
} // namespace pgkm
