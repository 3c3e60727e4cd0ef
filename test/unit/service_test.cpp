// The parts of the GPU service: what travels between processes, and what a client can do wrong.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "service_fixture.hpp"
#include "support/problem_call.hpp"

namespace pgkm::service {
namespace {

TEST(Arena, ProgressArrivesWhole)
{
    const Arena ours;
    const Arena theirs(File(dup(ours.fd())));
    std::uint32_t seen = 0;
    PgkmProgress progress = {};
    EXPECT_FALSE(ours.read_progress(&progress, &seen));
    PgkmProgress told = {};
    told.phase = "iterating";
    told.problem = 3;
    told.iteration = 17;
    told.shift = 0.25;
    told.chosen.assignment = "tiled";
    told.bytes_moved = 12345;
    theirs.write_progress(told);
    ASSERT_TRUE(ours.read_progress(&progress, &seen));
    EXPECT_STREQ(progress.phase, "iterating");
    EXPECT_EQ(progress.problem, 3);
    EXPECT_EQ(progress.iteration, 17);
    EXPECT_EQ(progress.shift, 0.25);
    EXPECT_STREQ(progress.chosen.assignment, "tiled");
    EXPECT_EQ(progress.chosen.mass_sum, nullptr);
    EXPECT_EQ(progress.bytes_moved, 12345u);
    EXPECT_FALSE(ours.read_progress(&progress, &seen)) << "the same line twice";
}

TEST(Arena, RefusesMemoryThatCouldShrink)
{
    char name[] = "/tmp/pg_kmeans_test.XXXXXX";
    File file(mkstemp(name));
    unlink(name);
    ASSERT_EQ(ftruncate(file.get(), 1 << 16), 0);
    EXPECT_THROW(Arena arena(std::move(file)), Error);
    EXPECT_THROW(Arena arena{File()}, Error);
}

TEST(Arena, IsNoLongerThanItIs)
{
    Arena ours;
    ours.grow(100);
    Arena theirs(File(dup(ours.fd())));
    EXPECT_NO_THROW(theirs.follow(ours.bytes()));
    EXPECT_THROW(theirs.follow(ours.bytes() + 4096), Error);
    EXPECT_THROW(theirs.follow(UINT64_MAX), Error);
}

TEST_F(Service, RefusesNonsense)
{
    Link link(connect(), {}, {}, 0);
    EXPECT_EQ(answer(link, request_of(Op::call)), PGKM_INVALID) << "no open";
    EXPECT_EQ(answer(link, request_of(Op::open)), PGKM_INVALID) << "no arena";
    EXPECT_EQ(answer(link, request_of(static_cast<Op>(99))), PGKM_INVALID);
    EXPECT_EQ(answer(link, request_of(Op::open), link.arena().fd()), PGKM_OK);
    EXPECT_EQ(answer(link, request_of(static_cast<Op>(99))), PGKM_INVALID);
    EXPECT_EQ(answer(link, request_of(Op::call)), PGKM_INVALID) << "no rows";
    Request load = request_of(Op::load);
    EXPECT_EQ(answer(link, load), PGKM_INVALID) << "no shape";
    load.load.n = INT64_MAX;
    load.load.d = INT32_MAX;
    EXPECT_EQ(answer(link, load), PGKM_INVALID) << "too many";
    load.load.n = 1000;
    load.load.d = 2;
    load.load.bytes = 8000;
    EXPECT_EQ(answer(link, load), PGKM_INVALID) << "no memory sent";
    File rows = new_shared_file();
    extend_file(rows.get(), 0, 4096);
    EXPECT_EQ(answer(link, load, rows.get()), PGKM_INVALID) << "less memory than rows";
    load.load.n = 100;
    load.load.values = 4000;
    EXPECT_EQ(answer(link, load, rows.get()), PGKM_INVALID) << "beyond the end";
    load.load.values = 0;
    load.load.bytes = 4096;
    load.load.element = 2;
    EXPECT_EQ(answer(link, load, rows.get()), PGKM_INVALID) << "no such type";
    load.load.element = PGKM_FLOAT64;
    EXPECT_EQ(answer(link, load, rows.get()), PGKM_OK);
}

TEST_F(Service, RefusesProblemsThatCannotBe)
{
    Link link(connect(), {}, {}, 0);
    ASSERT_NO_FATAL_FAILURE(load_rows(link));
    float centroids[4] = {};
    const PgkmFeatureScale scales[2] = {{0.0, 40}, {0.0, 40}};
    PgkmProblem problem = {};
    problem.n_rows = 100;
    problem.k = 2;
    problem.centroids = centroids;
    problem.feature_scales = scales;
    Call call = test::problem_call(Function::fit, problem);
    call.fit = {PGKM_L2, 3};
    enum Number { metric, max_iter, first_row, n_rows, tol, k, weight_exponent, distance_exponent, n_scales, n_values };
    const auto refused = [&](Number number, std::int64_t value) {
        return answer_call(link, call, [&](CallRequest &, std::int64_t *numbers) { numbers[number] = value; });
    };
    EXPECT_EQ(answer_call(link, call), PGKM_OK);
    EXPECT_EQ(refused(metric, 2), PGKM_INVALID) << "no such metric";
    EXPECT_EQ(refused(metric, -1), PGKM_INVALID) << "no such metric";
    EXPECT_EQ(refused(first_row, 1), PGKM_INVALID);
    EXPECT_EQ(refused(first_row, -1), PGKM_INVALID);
    EXPECT_EQ(refused(first_row, INT64_MAX), PGKM_INVALID);
    EXPECT_EQ(refused(n_rows, 0), PGKM_INVALID);
    EXPECT_EQ(refused(n_rows, 101), PGKM_INVALID);
    EXPECT_EQ(refused(k, 0), PGKM_INVALID);
    EXPECT_EQ(refused(k, -2), PGKM_INVALID);
    EXPECT_EQ(refused(k, 3), PGKM_INVALID) << "more than there are centroids";
    EXPECT_EQ(refused(n_values, 3), PGKM_INVALID) << "an array of another length";
    EXPECT_EQ(refused(n_values, 0), PGKM_INVALID) << "no centroids";
    EXPECT_EQ(refused(n_scales, 3), PGKM_INVALID) << "an array of another length";
    EXPECT_EQ(refused(weight_exponent, INT32_MAX), PGKM_OK) << "a number that is nearest to it";
    const auto counted = [&](std::int64_t problems, std::uint64_t numbers) {
        return answer_call(link, call, [&](CallRequest &request, std::int64_t *) {
            request.n_problems = problems;
            request.numbers = numbers;
        });
    };
    EXPECT_EQ(counted(1, 13), PGKM_OK);
    EXPECT_EQ(counted(0, 13), PGKM_INVALID);
    EXPECT_EQ(counted(2, 13), PGKM_INVALID) << "numbers of one";
    EXPECT_EQ(counted(INT64_MAX, 13), PGKM_INVALID);
    EXPECT_EQ(counted(1, 12), PGKM_INVALID);
    EXPECT_EQ(counted(1, UINT64_MAX), PGKM_INVALID);
    EXPECT_EQ(counted(1, link.arena().bytes() / 8), PGKM_INVALID) << "no room for arrays";
    call.function = static_cast<Function>(7);
    EXPECT_EQ(answer_call(link, call), PGKM_INVALID) << "no such function";
    const auto begins = [&](std::int64_t init) {
        call.function = Function::seed;
        return answer_call(link, call, [&](CallRequest &, std::int64_t *numbers) { numbers[0] = init; });
    };
    EXPECT_EQ(begins(PGKM_INIT_FIRST), PGKM_OK);
    EXPECT_EQ(begins(PGKM_INIT_FIRST + 1), PGKM_INVALID) << "no such way to begin";
    EXPECT_EQ(begins(-1), PGKM_INVALID);
}

// Whatever one number of a call is, the service answers.
TEST_F(Service, SurvivesForgedNumbers)
{
    Link link(connect(), {}, {}, 0);
    ASSERT_NO_FATAL_FAILURE(load_rows(link));
    std::vector<float> centroids(2 * 2);
    std::vector<std::int32_t> labels(100);
    std::vector<PgkmInt128> totals(2 * 2);
    const PgkmFeatureScale scales[2] = {{0.0, 40}, {0.0, 40}};
    PgkmProblem problem = {};
    problem.n_rows = 100;
    problem.k = 2;
    problem.centroids = centroids.data();
    problem.feature_scales = scales;
    PgkmAssignment assignment = {labels.data(), nullptr, totals.data(), totals.data(), nullptr, nullptr};
    Call call = test::assign_call(problem, assignment);
    for (std::size_t number = 0; number < 13; ++number)
        for (const std::int64_t value : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
                                         std::int64_t{INT32_MAX}, INT64_MAX / 2, INT64_MAX}) {
            const PgkmStatus status =
                answer_call(link, call, [&](CallRequest &, std::int64_t *numbers) { numbers[number] = value; });
            EXPECT_TRUE(status == PGKM_OK || status == PGKM_INVALID) << number << " " << value << " " << status;
        }
    EXPECT_EQ(answer_call(link, call), PGKM_OK);
}

TEST_F(Service, AClientThatSpeaksAnotherVersionIsToldSo)
{
    const int channel = pgkm_service_connect(path().c_str());
    ASSERT_GE(channel, 0);
    PgkmError error;
    ASSERT_EQ(pgkm_service_ready(channel, 5000, &error), 1);
    Request request = request_of(Op::call); // without an open it would be answered by an error
    request.magic ^= 1;
    ASSERT_TRUE(send_message(channel, &request, sizeof request));
    EXPECT_EQ(pgkm_service_ready(channel, 5000, &error), 1) << "by the service's own number alone";
    pgkm_service_disconnect(channel);
}

TEST_F(Service, SoIsOneWhoseRequestsHaveAnotherLength)
{
    const int channel = pgkm_service_connect(path().c_str());
    ASSERT_GE(channel, 0);
    PgkmError error;
    ASSERT_EQ(pgkm_service_ready(channel, 5000, &error), 1);
    ASSERT_TRUE(send_message(channel, "short", 5));
    EXPECT_EQ(pgkm_service_ready(channel, 5000, &error), 1) << "by the service's own number alone";
    pgkm_service_disconnect(channel);
}

TEST(ServiceOfAnotherVersion, IsKnownByItsAnswers)
{
    for (const std::size_t length : {sizeof(Reply), sizeof(Reply) - 8, std::size_t{3}}) {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
        const std::vector<char> answer(length, 'x');
        ASSERT_TRUE(send_message(ends[1], answer.data(), length));
        PgkmError error;
        EXPECT_EQ(pgkm_service_ready(ends[0], 5000, &error), -1);
        EXPECT_STREQ(error.text, "the GPU service belongs to another version of pg_kmeans") << length;
        close(ends[0]);
        close(ends[1]);
    }
}

// A session that was interrupted while it waited for an answer to hello uses the connection again.
TEST_F(Service, AnAnswerThatNobodyAwaitedIsSkipped)
{
    const int channel = connect();
    ASSERT_EQ(pgkm_service_ask_again(channel), 1);
    ASSERT_EQ(pgkm_service_ask_again(channel), 1);
    PgkmError error;
    ASSERT_EQ(pgkm_service_ready(channel, 5000, &error), 1);
    Link link(channel, {}, {}, 0);
    EXPECT_EQ(answer(link, request_of(Op::call)), PGKM_INVALID) << "no open";
    EXPECT_EQ(answer(link, request_of(Op::open), link.arena().fd()), PGKM_OK);
}

TEST_F(Service, AClientThatLeavesLeavesNothing)
{
    const std::vector<float> values(20000, 1.0f);
    const PgkmPoints points = {values.data(), PGKM_FLOAT32, 10000, 2, nullptr};
    PgkmOpen open = {};
    open.struct_size = sizeof open;
    open.channel = pgkm_service_connect(path().c_str());
    PgkmError error;
    ASSERT_EQ(pgkm_service_ready(open.channel, 5000, &error), 1);
    PgkmContext *context = nullptr;
    PgkmData *data = nullptr;
    ASSERT_EQ(client_backend()->open(&open, &context, &error), PGKM_OK) << error.text;
    ASSERT_EQ(client_backend()->load(context, &points, &data, &error), PGKM_OK) << error.text;
    EXPECT_EQ(server_.state().counts().all.jobs, 1);
    EXPECT_GT(server_.state().counts().all.memory_held, 0u);
    shutdown(open.channel, SHUT_RDWR);
    for (int i = 0; i < 1000 && server_.state().counts().all.jobs > 0; ++i)
        std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(server_.state().counts().all.jobs, 0);
    EXPECT_EQ(server_.state().counts().all.memory_held, 0u);
    float centroids[2];
    PgkmProblem problem = {};
    problem.n_rows = points.n;
    problem.k = 1;
    problem.centroids = centroids;
    const PgkmSeedParams params = {PGKM_INIT_FIRST, 0, 0, 0};
    EXPECT_EQ(client_backend()->seed(data, &problem, 1, &params, &error), PGKM_DEVICE_ERROR);
    client_backend()->unload(data);
    client_backend()->close(context);
    pgkm_service_disconnect(open.channel);
}

TEST_F(Service, ClosesOnlyWhenIdle)
{
    const int channel = connect();
    Link link(channel, {}, {}, 0);
    ASSERT_EQ(answer(link, request_of(Op::open), link.arena().fd()), PGKM_OK);
    EXPECT_FALSE(server_.state().close_if_idle(server_.state().requests())) << "there is a job";
    ASSERT_EQ(answer(link, request_of(Op::close)), PGKM_OK);
    EXPECT_FALSE(server_.state().close_if_idle(server_.state().requests() - 1)) << "there was a request";
    EXPECT_TRUE(server_.state().close_if_idle(server_.state().requests()));
    ASSERT_EQ(pgkm_service_ask_again(channel), 1);
    PgkmError error;
    EXPECT_EQ(pgkm_service_ready(channel, 5000, &error), -1) << "a request after the close";
}

// Rows of a job that nobody calls make room for another, and come back by themselves.
TEST_F(Service, IdleRowsMakeRoom)
{
    server_.set_limits({4, std::uint64_t{100} << 20}); // room for one load
    const std::vector<float> values = {0, 0, 0, 1, 9, 9, 9, 8};
    const PgkmPoints points = {values.data(), PGKM_FLOAT32, 4, 2, nullptr};
    struct Client {
        PgkmContext *context = nullptr;
        PgkmData *data = nullptr;
    } clients[2];
    PgkmError error;
    for (Client &client : clients) {
        PgkmOpen open = {};
        open.struct_size = sizeof open;
        open.channel = connect();
        ASSERT_EQ(client_backend()->open(&open, &client.context, &error), PGKM_OK) << error.text;
        ASSERT_EQ(client_backend()->load(client.context, &points, &client.data, &error), PGKM_OK) << error.text;
    }
    for (int turn = 0; turn < 2; ++turn)
        for (Client &client : clients) {
            double statistics[4][2];
            PgkmSummary summary = {statistics[0], statistics[1], statistics[2], statistics[3], 0};
            PgkmProblem problem = {};
            problem.n_rows = 4;
            ASSERT_EQ(client_backend()->summarise(client.data, &problem, 1, 1, &summary, &error), PGKM_OK)
                << error.text;
            EXPECT_EQ(summary.max[1], 9.0);
        }
    for (Client &client : clients) {
        client_backend()->unload(client.data);
        client_backend()->close(client.context);
    }
    // Nobody waits for an unload.
    for (int i = 0; i < 1000 && server_.state().counts().all.memory_held > 0; ++i)
        std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(server_.state().counts().all.memory_held, 0u);
}

} // namespace
} // namespace pgkm::service
