// What saves time is left out where memory is short: the same centroids with less.
#include <atomic>
#include <cstddef>
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
};

TEST(ShortMemory, LeavesOutBoundsOfRows)
{
    constexpr std::int32_t d = 2, k = 64;
    constexpr std::size_t n = 50000;
    Draws draws(3);
    const std::vector<double> rows = draws.fill(n * d, [](Draws &next) { return next.uniform(); });
    const std::vector<double> first(rows.begin(), rows.begin() + k * d);
    const std::vector<double> expected = FittedRows(cpu_backend(), rows, d).fit(first);
    FittedRows with_labels_alone(cpu_backend(), rows, d, {},
                                 450000); // bounds would be 400,000 beside labels of 200,000
    EXPECT_EQ(with_labels_alone.fit(first), expected);
    EXPECT_EQ(with_labels_alone.status, PGKM_OK);
    FittedRows without_labels(cpu_backend(), rows, d, {}, 100000);
    without_labels.fit(first);
    EXPECT_EQ(without_labels.status, PGKM_LIMIT);
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
