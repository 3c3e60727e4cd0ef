// Cancellation: every call returns PGKM_CANCELLED within 100 ms of the host's saying so.
#include <atomic>
#include <chrono>
#include <cmath>

#include "compare.hpp"
#include "long_job.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Sanitizers and simulated devices stretch everything between two looks at the flag.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowdown = 10;
#else
constexpr int slowdown = 1;
#endif
const milliseconds allowance{(std::getenv("PGKM_SMALL") == nullptr ? 100 : 1000) * slowdown};

// A host that cancels 50 ms after it was armed.
struct ImpatientHost {
    std::atomic<Clock::rep> deadline{Clock::time_point::max().time_since_epoch().count()};

    Clock::time_point arm()
    {
        const Clock::time_point end = Clock::now() + milliseconds(50);
        deadline = end.time_since_epoch().count();
        return end;
    }
    PgkmHost host()
    {
        return {[](void *self) -> int {
                    return Clock::now().time_since_epoch().count() >= static_cast<ImpatientHost *>(self)->deadline;
                },
                nullptr, this};
    }
};

class Cancel : public testing::TestWithParam<Subject> {
protected:
    // A fast device may finish before the host loses patience; then the call is repeated.
    template <typename Call>
    void expect_cancelled(Call &&call)
    {
        ImpatientHost impatient;
        LongJob job;
        Session session(GetParam(), job.points(), impatient.host(), 2);
        const Clock::time_point end = impatient.arm();
        PgkmStatus status = PGKM_OK;
        while (status == PGKM_OK && Clock::now() < end + std::chrono::seconds(10)) {
            job.reset();
            status = call(session, job);
        }
        const auto late = std::chrono::duration_cast<milliseconds>(Clock::now() - end);
        EXPECT_EQ(status, PGKM_CANCELLED) << session.error.text;
        EXPECT_STRNE(session.error.text, "");
        EXPECT_LT(late.count(), allowance.count());
    }
    void expect_seeding_cancelled(PgkmInit init)
    {
        expect_cancelled(
            [init](Session &session, LongJob &job) { return session.seed(&job.problem, 1, seed_params(init, 0)); });
    }
};

TEST_P(Cancel, Fit)
{
    expect_cancelled([](Session &session, LongJob &job) { return session.fit(&job.problem, 1, {PGKM_L2, 100'000}); });
}

TEST_P(Cancel, KmeansPlusPlus)
{
    expect_seeding_cancelled(PGKM_INIT_KMEANS_PLUS_PLUS);
}
TEST_P(Cancel, KmeansParallel)
{
    expect_seeding_cancelled(PGKM_INIT_KMEANS_PARALLEL);
}
TEST_P(Cancel, Random)
{
    expect_seeding_cancelled(PGKM_INIT_RANDOM);
}

TEST_P(Cancel, Assign)
{
    expect_cancelled([](Session &session, LongJob &job) {
        std::vector<double> distances(static_cast<std::size_t>(job.n));
        std::vector<PgkmInt128> within(static_cast<std::size_t>(job.k));
        PgkmAssignment wanted = {};
        wanted.distances = distances.data();
        wanted.within = within.data();
        return session.assign(&job.problem, 1, &wanted);
    });
}

TEST_P(Cancel, Summarise)
{
    expect_cancelled([](Session &session, LongJob &job) {
        std::vector<double> room(5 * LongJob::d);
        double *const at = room.data();
        PgkmSummary summary = {at, at + 8, at + 16, at + 24, at + 32, 0.0};
        return session.summarise(&job.problem, 1, true, &summary);
    });
}

TEST_P(Cancel, Moments)
{
    PgkmError error = {};
    if (GetParam().table->moments(nullptr, nullptr, 0, nullptr, &error) == PGKM_UNSUPPORTED)
        GTEST_SKIP() << "not in this backend";
    expect_cancelled([](Session &session, LongJob &job) {
        const std::vector<double> shift(LongJob::d);
        std::vector<double> sums(LongJob::d), cross(LongJob::d * (LongJob::d + 1) / 2);
        PgkmMoments moments = {shift.data(), sums.data(), cross.data()};
        return session.moments(&job.problem, 1, &moments);
    });
}

TEST_P(Cancel, EmStep)
{
    PgkmError error = {};
    if (GetParam().table->em_step(nullptr, nullptr, 0, nullptr, nullptr, &error) == PGKM_UNSUPPORTED)
        GTEST_SKIP() << "not in this backend";
    expect_cancelled([](Session &session, LongJob &job) {
        const auto k = static_cast<std::size_t>(job.k);
        const std::vector<double> means(job.centroids.begin(), job.centroids.end());
        const std::vector<double> log_weights(k, -std::log(job.k)), ones(means.size(), 1.0), zeros(k);
        std::vector<double> masses(k), first(means.size()), second(means.size());
        const PgkmMixture mixture = {job.k,       PGKM_COVARIANCE_DIAG, log_weights.data(), means.data(),
                                     ones.data(), zeros.data(),         nullptr};
        PgkmMixtureSums sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
        return session.em_step(&job.problem, 1, &mixture, &sums);
    });
}

// load() alone may do its work all the same: a backend that uses rows in place has none.
TEST_P(Cancel, LoadTellsOrSucceeds)
{
    const PgkmHost host = {[](void *) { return 1; }, nullptr, nullptr};
    const Case &data = case_named("blobs_1009x2_k4_float32");
    try {
        Session session(GetParam(), data.points(), host);
        Problems problems = Expected::of(data).start();
        EXPECT_EQ(session.fit(problems.list.data(), 1, {PGKM_L2, 3}), PGKM_CANCELLED);
    } catch (const std::runtime_error &refused) {
        EXPECT_STREQ(refused.what(), "cancelled");
    }
}

// A context whose host has cancelled refuses every further call and closes in good order.
TEST_P(Cancel, StaysCancelled)
{
    int cancelled = 0;
    const PgkmHost host = {[](void *flag) { return *static_cast<const int *>(flag); }, nullptr, &cancelled};
    const Case &data = case_named("blobs_1009x2_k4_float32");
    Session session(GetParam(), data.points(), host); // load() may be cancelled as well: not yet
    cancelled = 1;
    Problems problems = Expected::of(data).start();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(session.fit(problems.list.data(), 1, {PGKM_L2, 3}), PGKM_CANCELLED);
        EXPECT_EQ(session.seed(problems.list.data(), 1, seed_params(PGKM_INIT_KMEANS_PLUS_PLUS, 0)), PGKM_CANCELLED);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Cancel, testing::ValuesIn(plain_subjects()), subject_name);

} // namespace
} // namespace conformance
