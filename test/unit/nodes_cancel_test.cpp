// A server's share of a fit after a request that was cancelled anywhere: requests that no fit sends then are errors or
// answers, and touch no memory that is not theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "engine/job/algorithm.hpp"
#include "engine/nodes/fields.hpp"
#include "engine/nodes/share.hpp"
#include "support/problem_call.hpp"

namespace {

using pgkm::nodes::Operation, pgkm::nodes::Writer;
using Requests = std::vector<Writer>;

constexpr std::int32_t d = 2;
constexpr std::int64_t n = 20000; // more than one task of every loop

std::vector<double> make_values()
{
    std::vector<double> values;
    for (std::int64_t i = 0; i < n * d; ++i)
        values.push_back(std::sin(static_cast<double>(i * i % 1000003)));
    return values;
}

const std::vector<double> values = make_values();
std::atomic<int> polls_left; // before the host cancels

std::vector<double> first_rows(std::size_t count)
{
    return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count * d)};
}

Writer add(std::int32_t before, std::size_t count)
{
    return Writer(Operation::seed_add, before, first_rows(count));
}

const Writer begin(Operation::seed_begin, std::int32_t{4});
const Writer weigh(Operation::seed_weigh, std::int32_t{2}, std::int32_t{20});
const Writer gains(Operation::seed_gains, first_rows(2));
const Writer choose(Operation::seed_choose, std::int32_t{1});
const Writer others(Operation::seed_gains, std::vector<double>(values.begin() + 200, values.begin() + 216));
const Writer exactly(Operation::seed_exact, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7});
const Writer far(Operation::farthest, std::int64_t{5});

Writer request_to_iterate()
{
    std::vector<double> centroids = first_rows(20);
    const std::vector<PgkmFeatureScale> scales(d, {0.0, 40});
    std::vector<PgkmInt128> totals(20 * d), masses(20);
    PgkmProblem problem = {};
    problem.n_rows = n;
    problem.k = 20;
    problem.centroids = centroids.data();
    problem.feature_scales = scales.data();
    problem.weight_exponent = 40;
    PgkmAssignment wanted = {};
    wanted.totals = totals.data();
    wanted.masses = masses.data();
    pgkm::Call call = pgkm::test::assign_call(problem, wanted);
    Writer writer(Operation::call, pgkm::Function::assign);
    pgkm::nodes::MessageFields fields(pgkm::Leg::write_call, {n, d, PGKM_FLOAT64}, writer);
    pgkm::fields(fields, call);
    writer.put(pgkm::nodes::Iteration::first);
    return writer;
}
const Writer iterate = request_to_iterate();

// A server whose host cancels after so many polls.
class Server {
  public:
    Writer reply; // the last

    PgkmStatus ask(const Writer &asked, int polls = INT_MAX)
    {
        polls_left = polls;
        PgkmError error = {};
        reply = Writer();
        return pgkm::guarded(&error, [&] {
            pgkm::nodes::Reader reader(asked.bytes());
            pgkm::nodes::Share(session_, {values.data(), PGKM_FLOAT64, n, d, nullptr}, state_, open_)
                .serve(reader, reply);
        });
    }

  private:
    static int cancelled(void *) { return polls_left-- <= 0 ? 1 : 0; }

    PgkmOpen open_{sizeof(PgkmOpen), -1, 2, 0, 0, 0, {}, {cancelled, nullptr, nullptr}, 0, {}, nullptr, 0};
    pgkm::nodes::ShareState state_;
    pgkm::Session session_{{pgkm::cpu_backend(), -1, 0}, open_};
};

// Cancels a request after ever more polls, until it is answered. What the next one was answered each time, but for
// that.
// The last answer is to be the `same` wherever it was cancelled.
std::vector<PgkmStatus> cancel_everywhere(const Requests &before, const Writer &cancelled, const Requests &then,
                                          const pgkm::nodes::Bytes *same = nullptr)
{
    for (std::vector<PgkmStatus> next;;) {
        Server server;
        for (const Writer &asked : before)
            EXPECT_EQ(server.ask(asked), PGKM_OK);
        const PgkmStatus status = server.ask(cancelled, static_cast<int>(next.size()));
        const PgkmStatus answered = server.ask(then[0]);
        for (std::size_t i = 1; i < then.size(); ++i)
            server.ask(then[i]);
        EXPECT_TRUE(same == nullptr || server.reply.bytes() == *same) << next.size();
        EXPECT_EQ(server.ask(begin), PGKM_OK);
        if (status != PGKM_CANCELLED) {
            EXPECT_EQ(status, PGKM_OK);
            EXPECT_GT(next.size(), 3U);
            return next;
        }
        next.push_back(answered);
    }
}

std::ptrdiff_t count(const std::vector<PgkmStatus> &all, PgkmStatus status)
{
    return std::count(all.begin(), all.end(), status);
}

TEST(NodesCancelled, WhileRowsAreAdded)
{
    const auto next = cancel_everywhere({begin, add(0, 1), weigh}, add(1, 20), {gains, choose, add(1, 1), gains});
    EXPECT_GT(count(next, PGKM_OK), 0);      // before a row had one of the new ones
    EXPECT_GT(count(next, PGKM_INVALID), 0); // after that
    EXPECT_EQ(count(next, PGKM_OK) + count(next, PGKM_INVALID), static_cast<std::ptrdiff_t>(next.size()));
}

TEST(NodesCancelled, WhileTrialsAreGrouped)
{
    for (const PgkmStatus status : cancel_everywhere({begin, add(0, 1), weigh}, gains, {choose, gains, choose}))
        EXPECT_EQ(status, PGKM_INVALID);
    for (const PgkmStatus status : cancel_everywhere({begin, add(0, 1), weigh}, gains, {gains, choose}))
        EXPECT_EQ(status, PGKM_OK);
}

// The sixteenth chosen row groups them again.
TEST(NodesCancelled, WhileATrialIsChosen)
{
    Requests before = {begin, add(0, 1), weigh};
    for (int chosen = 1; chosen < 15; ++chosen)
        before.insert(before.end(), {gains, choose});
    before.push_back(gains);
    for (const PgkmStatus status : cancel_everywhere(before, choose, {gains, choose, iterate, gains, choose}))
        EXPECT_EQ(status, PGKM_OK);

    Server server;
    for (const Writer &asked : before)
        ASSERT_EQ(server.ask(asked), PGKM_OK);
    for (const Writer &asked : {choose, others, exactly})
        ASSERT_EQ(server.ask(asked), PGKM_OK);
    const pgkm::nodes::Bytes wanted = server.reply.bytes();
    EXPECT_EQ(wanted.size(), 8 + 8 * sizeof(PgkmInt128));
    cancel_everywhere(before, choose, {choose, others, exactly}, &wanted);
}

// The second time it tells what it would have told the first time: no mass is taken twice, and none is left out.
TEST(NodesCancelled, ATrialIsChosenAgain)
{
    for (const int chosen : {0, 14}) { // the sixteenth chosen row groups trials again
        Requests before = {begin, add(0, 1), weigh};
        for (int i = 0; i < chosen; ++i)
            before.insert(before.end(), {gains, choose});
        before.push_back(others);
        pgkm::nodes::Bytes told;
        for (int polls = INT_MAX;; polls = polls == INT_MAX ? 0 : polls + 1) {
            Server server;
            for (const Writer &asked : before)
                ASSERT_EQ(server.ask(asked), PGKM_OK);
            const PgkmStatus status = server.ask(choose, polls);
            if (polls == INT_MAX)
                told = server.reply.bytes();
            else if (status == PGKM_OK)
                break;
            else
                EXPECT_EQ(server.ask(choose), PGKM_OK) << polls;
            EXPECT_TRUE(server.reply.bytes() == told) << polls;
        }
        EXPECT_GT(told.size(), 100U);
    }
}

TEST(NodesCancelled, WhileTheyIterate)
{
    for (const PgkmStatus status : cancel_everywhere({}, iterate, {far, iterate, far}))
        EXPECT_EQ(status, PGKM_INVALID);
}

// They are 20,000 of two features: one look by the transformation, then one by the check of what it has made.
TEST(NodesCancelled, WhileTransformedRowsAreChecked)
{
    const std::vector<double> none, center(d, 0.0), scale(d, 2.0);
    Server server;
    ASSERT_EQ(server.ask(Writer(Operation::transform, none, none, std::int32_t{0}), 0), PGKM_OK); // loading looks not
    const Writer transform(Operation::transform, center, scale, std::int32_t{0});
    EXPECT_EQ(server.ask(transform, 1), PGKM_CANCELLED);
    EXPECT_EQ(server.ask(transform, 2), PGKM_OK);
}

// What takes long on a CPU has a thread of its own, so that the caller can cancel it and show that it is alive.
TEST(NodesCancelled, AreNotBriefWhereTheyTakeLong)
{
    PgkmResident *const resident = pgkm_resident_create();
    PgkmShare *const share = pgkm_share_create();
    PgkmRequest request = {};
    request.algorithm = PGKM_SHARE;
    request.points = {values.data(), PGKM_FLOAT64, n, d, nullptr};
    request.resident = resident;
    request.settings.backend = PGKM_BACKEND_CPU;
    const auto ask = [&](const Writer &asked) {
        request.share = {asked.bytes().data(), asked.bytes().size(), share};
        return request;
    };
    PgkmJob *job = nullptr;
    PgkmError error = {};
    const PgkmRequest begun = ask(iterate);
    ASSERT_EQ(pgkm_job_start(&begun, &job, &error), PGKM_OK);
    while (pgkm_job_wait(job, 1000) == 0) {}
    pgkm_job_free(job);
    for (const Writer *asked : {&begin, &far, &others, &exactly, &iterate})
        for (const bool many : {false, true}) {
            PgkmRequest one = ask(*asked);
            one.points.n = many ? 1'000'000 : 100;
            EXPECT_EQ(pgkm::is_brief(pgkm::work_of(pgkm::algorithm_of(one), one)), !many);
        }
    pgkm_share_free(share);
    pgkm_resident_free(resident);
}

} // namespace
