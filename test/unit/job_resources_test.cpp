// A job has one pool and one budget: as many threads as it may have, and memory that is counted once.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "cpu/context.hpp"
#include "engine/nodes/share.hpp"
#include "numeric/contract.hpp"
#include "stream_source.hpp"
#include "support/problem_call.hpp"

namespace {

using namespace in_process;

constexpr std::int32_t many_threads = 4;

class JobThreads : public testing::Test {
  protected:
    static std::int64_t threads()
    {
        const std::filesystem::directory_iterator all("/proc/self/task");
        return std::distance(begin(all), end(all));
    }
    // A thread that was waited for may stay in the list for a moment: once nobody comes or goes for a while.
    static std::int64_t steady_threads()
    {
        std::int64_t last = threads();
        for (int same = 0, looks = 0; same < 10 && looks < 1000; ++looks) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            const std::int64_t now = threads();
            same = now == last ? same + 1 : 0;
            last = now;
        }
        return last;
    }
    // While the job runs, looked at again and again.
    std::int64_t most_threads(
        const PgkmRequest &request, const std::function<void()> &meanwhile = [] {})
    {
        const std::int64_t before = steady_threads();
        PgkmJob *job = nullptr;
        PgkmError error = {};
        EXPECT_EQ(pgkm_job_start(&request, &job, &error), PGKM_OK) << error.text;
        std::int64_t most = 0;
        for (; pgkm_job_wait(job, 0) == 0; meanwhile())
            most = std::max(most, threads());
        PgkmResult result = {};
        EXPECT_EQ(pgkm_job_result(job, 0, &result, &error), PGKM_OK) << error.text;
        if (result.centroids != nullptr)
            numbers_ = numbers_of(result);
        pgkm_job_free(job);
        return most - before;
    }

    const std::int64_t before_ = steady_threads();
    std::vector<double> numbers_; // of the last model
};

PgkmRequest request_for_many_threads(const RowSet &rows, std::int64_t k)
{
    PgkmRequest request = request_of(rows.points(0, rows.n()), k);
    request.settings.cpu_threads = many_threads;
    request.kmeans.init = PGKM_INIT_KMEANS_PARALLEL;
    request.kmeans.max_iter = 3;
    return request;
}

TEST_F(JobThreads, AreThoseOfOnePoolWhileAServerSeedsAndIterates)
{
    const auto rows = make_rows<float>(60000, 4, false, normal);
    PgkmRequest request = request_for_many_threads(rows, 20);
    const Said one = run(request);
    Server server(rows, 0, rows.n());
    server.threads = many_threads;
    const PgkmNode node = server.node("node");
    request.points.n = 0;
    request.nodes = &node;
    request.n_nodes = 1;
    EXPECT_LE(most_threads(request), 2 * many_threads) << "of the job, and of the server";
    EXPECT_EQ(numbers_, one.numbers);
    EXPECT_LE(steady_threads() - before_, many_threads) << "that the server keeps";
}

TEST_F(JobThreads, AreThoseOfOnePoolWhileRowsOfAStreamAreDrawn)
{
    const auto rows = make_rows<float>(60000, 4, false, normal);
    PgkmRequest request = request_for_many_threads(rows, 20);
    const Said one = run(request);
    Source source(rows, {20000});
    source.add_to(request);
    EXPECT_LE(most_threads(request, [&] { source.feed(); }), many_threads);
    EXPECT_EQ(numbers_, one.numbers);
}

TEST_F(JobThreads, AreThoseOfOnePoolWhileASweepIsJudged)
{
    const auto rows = make_rows<float>(60000, 4, false, normal);
    PgkmRequest request = request_for_many_threads(rows, 2);
    request.k_last = 5;
    request.silhouette_rows = 2000;
    EXPECT_LE(most_threads(request), many_threads);
}

// The order, bucket, distance and label of each row, which seeding keeps, are counted with what iterations take; and
// given up where these need the room.
TEST(JobMemory, IsCountedOnceForSeedingAndIterations)
{
    constexpr std::int64_t n = 50000;
    const auto rows = make_rows<float>(n, 2, false, normal);
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.threads = 2;
    open.memory_limit = 64 * n;
    pgkm::Session session(pgkm::cpu_choice(), open);
    pgkm::cpu::Budget &budget = pgkm::cpu::self(session.cpu().get())->budget;
    pgkm::nodes::ShareState state;
    pgkm::nodes::Share share(session, rows.points(0, n), state, open);
    const auto differences = [&] {
        share.seed_begin<float>(8);
        return share.seeding<float>().weigh(pgkm::cpu::Mass::one, 0).differences;
    };
    const std::vector<std::int64_t> first = differences();
    EXPECT_FALSE(budget.allows(open.memory_limit - 20 * n));

    std::vector<float> centroids = {-1.0F, 0.0F, 1.0F, 0.0F};
    const std::vector<PgkmFeatureScale> scales(2, pgkm::sum_scale(-8.0, 8.0, 1.0));
    std::vector<PgkmInt128> totals(4), masses(2);
    PgkmProblem problem = {};
    problem.n_rows = n;
    problem.k = 2;
    problem.centroids = centroids.data();
    problem.feature_scales = scales.data();
    PgkmAssignment wanted = {};
    wanted.totals = totals.data();
    wanted.masses = masses.data();
    pgkm::Call call = pgkm::test::assign_call(problem, wanted);
    share.call(call, pgkm::nodes::Iteration::first);
    EXPECT_NO_THROW(pgkm::cpu::Buffer<std::byte>(budget, open.memory_limit - 10 * n));
    EXPECT_THROW(share.seeding<float>(), pgkm::Error);
    EXPECT_EQ(differences(), first);
}

// With as much as it is estimated to need: the same bits.
TEST(JobMemory, GoesFromSeedingToIterationsWhereItIsShort)
{
    const auto rows = make_rows<float>(40000, 2, false, normal);
    for (const PgkmInit init : {PGKM_INIT_KMEANS_PLUS_PLUS, PGKM_INIT_KMEANS_PARALLEL}) {
        PgkmRequest request = request_of(rows.points(0, rows.n()), 30);
        request.kmeans.init = init;
        request.kmeans.n_init = 2;
        request.kmeans.max_iter = 3;
        const Said one = run(request);
        PgkmRequest share = {};
        share.algorithm = PGKM_SHARE;
        share.points = request.points;
        PgkmRequest of_stream = request;
        Source source(rows, {15000});
        source.add_to(of_stream);
        of_stream.settings.memory_limit = pgkm_request_estimate(&of_stream);
        EXPECT_EQ(run(of_stream, [&] { source.feed(); }).numbers, one.numbers);

        Server server(rows, 0, rows.n());
        server.memory_limit = pgkm_request_estimate(&share);
        const PgkmNode node = server.node("node");
        request.points.n = 0;
        request.nodes = &node;
        request.n_nodes = 1;
        const Said several = run(request);
        EXPECT_EQ(several.numbers, one.numbers) << several.text;
    }
}

} // namespace
