// What is made of rows for filters: once for all calls on loaded rows, and given up before a claim fails.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "backend/backend.h"
#include "cpu/assign/hamerly.hpp"
#include "cpu/assign/tiled.hpp"
#include "cpu/cpu_backend.hpp"
#include "numeric/contract.hpp"

namespace {

using namespace pgkm;
using namespace pgkm::cpu;

constexpr std::int32_t d = 40, k = 60;
constexpr std::int64_t n = 4000;

std::vector<float> normal_rows()
{
    std::mt19937_64 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> rows(static_cast<std::size_t>(n) * d);
    for (float &value : rows)
        value = normal(random);
    return rows;
}

// Rows that the CPU has loaded, under a limit of memory.
class Loaded {
  public:
    explicit Loaded(std::vector<float> rows, std::uint64_t limit = 0, int threads = 2)
        : rows_(std::move(rows)),
          context_(options(limit), threads), data_{context_, {rows_.data(), PGKM_FLOAT32, n, d, nullptr}},
          scales_(d, sum_scale(-8.0, 8.0, 1.0))
    {
    }

    PgkmStatus seed()
    {
        const PgkmSeedParams params = {PGKM_INIT_KMEANS_PLUS_PLUS, 1, 0, 0};
        PgkmProblem one = problem();
        return cpu_backend()->seed(data(), &one, 1, &params, &error);
    }
    PgkmStatus fit()
    {
        const PgkmFitParams params = {PGKM_L2, 5};
        PgkmProblem one = problem();
        return cpu_backend()->fit(data(), &one, 1, &params, &error);
    }
    std::vector<std::int32_t> labels() { return labels_of(0, n); }
    std::vector<std::int32_t> labels_of(std::int64_t first, std::int64_t count)
    {
        std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
        PgkmAssignment assignment = {};
        assignment.labels = labels.data();
        PgkmProblem one = problem();
        one.first_row = first;
        one.n_rows = count;
        EXPECT_EQ(cpu_backend()->assign(data(), &one, 1, &assignment, &error), PGKM_OK);
        return labels;
    }

    Budget &budget() { return context_.budget; }
    std::size_t kept() const { return data_.encoded.size(); }
    std::shared_ptr<EncodedRows<float>> encoded() { return EncodedRows<float>::of(rows()); }
    Rows<float> rows() { return {data_, context_.pool, problem()}; }
    std::vector<float> centroids = std::vector<float>(static_cast<std::size_t>(k) * d);
    PgkmError error = {};

  private:
    static PgkmOpen options(std::uint64_t limit)
    {
        PgkmOpen options = {};
        options.memory_limit = limit;
        return options;
    }
    PgkmData *data() { return reinterpret_cast<PgkmData *>(&data_); }
    PgkmProblem problem()
    {
        PgkmProblem one = {};
        one.n_rows = n;
        one.k = k;
        one.centroids = centroids.data();
        one.feature_scales = scales_.data();
        return one;
    }

    std::vector<float> rows_;
    Context context_;
    Data data_;
    std::vector<PgkmFeatureScale> scales_;
};

TEST(Encoded, IsMadeOnceForAllCalls)
{
    Loaded loaded(normal_rows());
    ASSERT_EQ(loaded.seed(), PGKM_OK);
    ASSERT_EQ(loaded.fit(), PGKM_OK);
    const auto first = loaded.encoded()->int16(loaded.rows(), false);
    ASSERT_TRUE(first->is_kept());
    loaded.labels();
    ASSERT_EQ(loaded.fit(), PGKM_OK);
    EXPECT_EQ(loaded.encoded()->int16(loaded.rows(), true), first);
    // One assignment alone does not keep any.
    Loaded other(normal_rows());
    ASSERT_EQ(other.seed(), PGKM_OK);
    other.labels();
    EXPECT_FALSE(other.encoded()->int16(other.rows(), false)->is_kept());
}

TEST(Encoded, IsGivenUpBeforeAClaimFails)
{
    constexpr std::uint64_t limit = 8 << 20;
    Loaded loaded(normal_rows(), limit);
    ASSERT_EQ(loaded.seed(), PGKM_OK);
    ASSERT_EQ(loaded.fit(), PGKM_OK);
    {
        auto used = loaded.encoded()->int16(loaded.rows(), false);
        ASSERT_TRUE(used->is_kept());
        EXPECT_THROW(Buffer<char>(loaded.budget(), limit - 200'000), Error); // somebody uses them
    }
    EXPECT_NO_THROW(Buffer<char>(loaded.budget(), limit - 200'000));
    EXPECT_FALSE(loaded.encoded()->int16(loaded.rows(), false)->is_kept());
    const std::vector<std::int32_t> labels = loaded.labels();
    Loaded roomy(normal_rows());
    ASSERT_EQ(roomy.seed(), PGKM_OK);
    ASSERT_EQ(roomy.fit(), PGKM_OK);
    EXPECT_EQ(roomy.centroids, loaded.centroids);
    EXPECT_EQ(roomy.labels(), labels);
}

TEST(Encoded, IsGivenUpToTheLastByte)
{
    constexpr std::uint64_t limit = 8 << 20;
    Loaded loaded(normal_rows(), limit);
    const std::vector<float> rows = normal_rows();
    std::copy_n(rows.begin(), loaded.centroids.size(), loaded.centroids.begin());
    ASSERT_EQ(loaded.fit(), PGKM_OK);
    ASSERT_TRUE(loaded.encoded()->int16(loaded.rows(), false)->is_kept());
    EXPECT_NO_THROW(Buffer<char>(loaded.budget(), limit - 2 * Buffer<char>::alignment));
}

TEST(Encoded, CountsDirections)
{
    constexpr std::uint64_t limit = 64 << 20;
    Loaded loaded(normal_rows(), limit);
    const std::vector<float> shift(d, 0.0F);
    ASSERT_TRUE(loaded.budget().allows(limit));
    const Directions directions = find_directions(loaded.rows(), shift.data(), 8);
    ASSERT_EQ(directions.count, 8);
    EXPECT_FALSE(loaded.budget().allows(limit - 8 * d * sizeof(float) + 1));
}

// Nor does a fit of one iteration, whose bounds serve no later one.
TEST(Encoded, KeepsNothingForOneIteration)
{
    for (const Purpose purpose : {Purpose::single, Purpose::iterations}) {
        Loaded loaded(normal_rows());
        const std::vector<float> rows = normal_rows();
        std::copy_n(rows.begin(), loaded.centroids.size(), loaded.centroids.begin());
        Hamerly<float> hamerly(loaded.rows(), purpose);
        hamerly.begin(loaded.centroids.data());
        EXPECT_EQ(loaded.encoded()->int16(loaded.rows(), false)->is_kept(), purpose == Purpose::iterations);
    }
}

// However many batches or groups were looked at, each by itself.
TEST(Encoded, LeavesNothingWhereNothingIsKept)
{
    Loaded loaded(normal_rows());
    const std::vector<float> rows = normal_rows();
    std::copy_n(rows.begin(), loaded.centroids.size(), loaded.centroids.begin());
    for (std::int64_t first = 0; first < n; first += 500)
        loaded.labels_of(first, 500);
    EXPECT_EQ(loaded.kept(), 0U);
    ASSERT_EQ(loaded.fit(), PGKM_OK);
    EXPECT_EQ(loaded.kept(), 1U);
}

// From the least limit on under which a fit runs, whatever is kept or not: the same bits.
TEST(Encoded, NeverChangesAResult)
{
    Loaded roomy(normal_rows());
    ASSERT_EQ(roomy.seed(), PGKM_OK);
    ASSERT_EQ(roomy.fit(), PGKM_OK);
    bool enough = false;
    for (std::uint64_t limit = 400'000; limit < 6'000'000; limit += 200'000) {
        Loaded loaded(normal_rows(), limit);
        const bool runs = loaded.seed() == PGKM_OK && loaded.fit() == PGKM_OK;
        EXPECT_TRUE(runs || !enough) << limit << loaded.error.text;
        enough = enough || runs;
        if (runs) {
            EXPECT_EQ(loaded.centroids, roomy.centroids) << limit;
        }
    }
    EXPECT_TRUE(enough);
}

// A loser of the race for the last room does without: it does not fail.
TEST(Encoded, LostRoomIsNoError)
{
    constexpr std::size_t bytes = 1 << 20;
    Budget budget(3 * bytes / 2);
    for (int round = 0; round < 200; ++round) {
        std::atomic<int> got = 0;
        std::barrier together(2);
        const auto ask = [&] {
            together.arrive_and_wait();
            const auto room = Buffer<char>::if_room(budget, bytes, 0);
            got += static_cast<int>(room.size() != 0);
            together.arrive_and_wait(); // both hold what they got
        };
        std::thread other(ask);
        ask();
        other.join();
        EXPECT_LE(got, 1);
    }
}

} // namespace
