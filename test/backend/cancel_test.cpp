// Cancellation: every call returns PGKM_CANCELLED within 100 ms of the host's saying so. On the CPU these are
// milliseconds of the processor for each thread, in which the machine's load does not show.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>

#include "compare.hpp"
#include "long_job.hpp"
#include "parameters.hpp"
#include "support/program.hpp"

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

// The time that counts for a subject: by the clock on a device, else what each of its threads has of the processor.
milliseconds now_for(const Subject &subject)
{
    if (subject.device >= 0)
        return std::chrono::duration_cast<milliseconds>(Clock::now().time_since_epoch());
    const int threads = subject.name == "spread" ? 6 : 2; // of three contexts, or one
    timespec used = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return milliseconds((used.tv_sec * 1000 + used.tv_nsec / 1000000) / threads);
}

// A host that cancels some time after it was armed.
struct ImpatientHost {
    explicit ImpatientHost(const Subject &of) : subject(of) {}

    milliseconds arm(milliseconds patience = milliseconds(50))
    {
        const milliseconds end = now_for(subject) + patience;
        deadline = end.count();
        return end;
    }
    PgkmHost host()
    {
        return {[](void *self) -> int {
                    const auto *host = static_cast<const ImpatientHost *>(self);
                    return now_for(host->subject).count() >= host->deadline;
                },
                nullptr, this};
    }

    const Subject &subject;
    std::atomic<milliseconds::rep> deadline{INT64_MAX};
};

class Cancel : public testing::TestWithParam<Subject> {
  protected:
    static bool on_gpu() { return GetParam().device >= 0; } // the service has the name of a plugin, too

    template <typename Call>
    void expect_cancelled(Call &&call)
    {
        LongJob job(on_gpu());
        expect_cancelled(GetParam(), job, std::forward<Call>(call));
    }
    template <typename Call>
    void expect_cancelled(const Subject &subject, LongJob &job, Call &&call)
    {
        ImpatientHost impatient(subject);
        Session session(subject, job.points(), impatient.host(), 2);
        const milliseconds late = lateness(session, impatient, milliseconds(50), [&](Session &same) {
            job.reset();
            return call(same, job);
        });
        EXPECT_LT(late.count(), allowance.count());
    }
    // Likewise of rows of one's own, and after this and that patience: what call() does first, and last.
    template <typename Call>
    void expect_cancelled_anywhere(const PgkmPoints &points, Call &&call)
    {
        for (const int patience : {30, 90, 150, 250, 400}) {
            SCOPED_TRACE("after " + std::to_string(patience) + " ms");
            ImpatientHost impatient(GetParam());
            Session session(GetParam(), points, impatient.host(), 2);
            EXPECT_EQ(call(session), PGKM_OK) << session.error.text; // what is slow the first time alone
            EXPECT_LT(lateness(session, impatient, milliseconds(patience), call).count(), allowance.count());
        }
    }
    // A fast device may finish before the host loses patience; then the call is repeated.
    template <typename Call>
    milliseconds lateness(Session &session, ImpatientHost &impatient, milliseconds patience, Call &&call)
    {
        const milliseconds end = impatient.arm(patience);
        PgkmStatus status = PGKM_OK;
        while (status == PGKM_OK && now_for(impatient.subject) < end + std::chrono::seconds(10))
            status = call(session);
        EXPECT_EQ(status, PGKM_CANCELLED) << session.error.text;
        EXPECT_STRNE(session.error.text, "");
        return now_for(impatient.subject) - end;
    }
    void expect_fit_cancelled(const Subject &subject)
    {
        LongJob job(on_gpu());
        expect_cancelled(subject, job, [](Session &session, LongJob &repeated) {
            return session.fit(&repeated.problem, 1, {PGKM_L2, 100'000});
        });
    }
    void expect_seeding_cancelled(PgkmInit init)
    {
        expect_cancelled(
            [init](Session &session, LongJob &job) { return session.seed(&job.problem, 1, seed_params(init, 0)); });
    }
};

TEST_P(Cancel, Fit)
{
    expect_fit_cancelled(GetParam());
}

// Clusters that are empty in each first iteration.
TEST_P(Cancel, Relocation)
{
    expect_cancelled([](Session &session, LongJob &job) {
        for (std::int32_t j = 0; j < job.k / 2; ++j) // the upper half lies where the lower half does
            std::copy_n(job.centroids.begin() + j * LongJob::d, LongJob::d,
                        job.centroids.begin() + (job.k / 2 + j) * LongJob::d);
        return session.fit(&job.problem, 1, {PGKM_L2, 1});
    });
}

// Fewer distinct rows than clusters, so that some are empty in the second iteration, too, and the labels of
// two iterations have to be compared.
TEST_P(Cancel, RelocationThatComparesLabels)
{
    LongJob job(on_gpu(), 400);
    expect_cancelled(GetParam(), job, [](Session &session, LongJob &repeated) {
        repeated.problem.tol = -1.0; // a shift of 0 ends nothing
        return session.fit(&repeated.problem, 1, {PGKM_L2, 100'000});
    });
}

// Labels on the device, sums on the host.
TEST_P(Cancel, CrossProcessing)
{
    if (!on_gpu())
        GTEST_SKIP() << "an execution of the CUDA plugin";
    Subject subject = GetParam();
    subject.tuning.execution = "cross_processing";
    subject.tuning.assignment = "generic"; // the slowest
    expect_fit_cancelled(subject);
}

// Rows that travel in chunks, with kernels that keep the device busy long after they have all come.
TEST_P(Cancel, Streamed)
{
    if (!on_gpu())
        GTEST_SKIP() << "the CPU reads rows where they lie";
    Subject subject = GetParam();
    subject.device_memory_limit = std::getenv("PGKM_SMALL") == nullptr ? 32 << 20 : 512 << 10;
    subject.tuning.assignment = "generic";
    expect_fit_cancelled(subject);
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
        std::vector<double> room(4 * LongJob::d);
        double *const at = room.data();
        PgkmSummary summary = {at, at + 8, at + 16, at + 24, 0.0};
        return session.summarise(&job.problem, 1, true, &summary);
    });
}

TEST_P(Cancel, Moments)
{
    expect_cancelled([](Session &session, LongJob &job) {
        const std::vector<double> shift(LongJob::d);
        std::vector<double> sums(LongJob::d), cross(LongJob::d * (LongJob::d + 1) / 2);
        PgkmMoments moments = {shift.data(), sums.data(), cross.data(), 0.0};
        return session.moments(&job.problem, 1, &moments);
    });
}

TEST_P(Cancel, EmStep)
{
    expect_cancelled([](Session &session, LongJob &job) {
        const auto k = static_cast<std::size_t>(job.k);
        const std::vector<double> means(job.centroids.begin(), job.centroids.end());
        const std::vector<double> log_weights(k, -std::log(job.k)), ones(means.size(), 1.0), zeros(k);
        std::vector<double> masses(k), first(means.size()), second(means.size());
        const PgkmMixture mixture = {
            job.k, PGKM_COVARIANCE_DIAG, log_weights.data(), means.data(), ones.data(), zeros.data(), nullptr};
        PgkmMixtureSums sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
        return session.em_step(&job.problem, 1, &mixture, &sums);
    });
}

// On a device parameters and sums of gigabytes are on their way for longer than a cancel may take.
TEST_P(Cancel, EmStepOfLargeMatrices)
{
    if (GetParam().device < 0 || std::getenv("PGKM_SMALL") != nullptr)
        GTEST_SKIP() << "uses them in place, or takes too long";
    constexpr std::size_t n = 500, d = 1024, k = 256;
    std::vector<float> values(n * d);
    std::mt19937 random(3);
    for (float &value : values)
        value = static_cast<float>(random() % 1024) * 0x1p-10f;
    std::vector<double> factors(k * d * d), second(k * d * (d + 1) / 2), first(k * d), masses(k);
    for (std::size_t i = 0; i < k * d; ++i)
        factors[i * d + i % d] = 1.0;
    const std::vector<double> means(values.begin(), values.begin() + k * d), log_weights(k, -std::log(k)), zeros(k);
    const PgkmMixture mixture = {
        k, PGKM_COVARIANCE_FULL, log_weights.data(), means.data(), factors.data(), zeros.data(), nullptr};
    PgkmProblem problem = {};
    problem.n_rows = n;
    expect_cancelled_anywhere({values.data(), PGKM_FLOAT32, n, d, nullptr}, [&](Session &session) {
        PgkmMixtureSums sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
        return session.em_step(&problem, 1, &mixture, &sums);
    });
}

TEST_P(Cancel, MomentsOfManyFeatures)
{
    if (GetParam().device < 0 || std::getenv("PGKM_SMALL") != nullptr)
        GTEST_SKIP() << "adds them up in place, or takes too long";
    constexpr std::size_t n = 128, d = 16384;
    const std::vector<float> values(n * d, 0.5f);
    const std::vector<double> shift(d);
    std::vector<double> sums(d), cross(d * (d + 1) / 2);
    PgkmProblem problem = {};
    problem.n_rows = n;
    expect_cancelled_anywhere({values.data(), PGKM_FLOAT32, n, d, nullptr}, [&](Session &session) {
        PgkmMoments moments = {shift.data(), sums.data(), cross.data(), 0.0};
        return session.moments(&problem, 1, &moments);
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

// A reduction whose every row, or what it computes before all rows, takes for ever.
TEST_P(Cancel, Reduce)
{
    PgkmError error = {};
    if (GetParam().table->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) == PGKM_UNSUPPORTED)
        GTEST_SKIP() << "not in this backend";
    for (const bool of_row : {true, false}) {
        Program program;
        const std::int32_t i = program.loop(INT32_MAX - 1), index = program.index(i);
        const std::int32_t angle = program.add(PGKM_ADD, {index, of_row ? program.column(0) : program.constant(1.0)});
        program.item(program.add(PGKM_SUM, {program.add(PGKM_SIN, {angle})}, i));
        program.object(1, -1);
        expect_cancelled([&](Session &session, LongJob &job) {
            Reduced out(program);
            return session.reduce(&job.problem, 1, program.view(), &out.view);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(All, Cancel, testing::ValuesIn(plain_subjects()), subject_name);

} // namespace
} // namespace conformance
