// What else a backend owes its host: errors with a text, memory within its limit, progress
// from the calling thread.
#include <atomic>
#include <thread>

#include "cpu/cpu_backend.hpp"
#include "compare.hpp"
#include "numeric/contract.hpp"
#include "long_job.hpp"
#include "parameters.hpp"

namespace conformance {
namespace {

class Host : public testing::TestWithParam<Subject> {};

struct ProgressLog {
    std::thread::id thread;
    std::atomic<int> calls{0}, elsewhere{0}, unknown_phase{0};
};

TEST_P(Host, ReportsProgressFromTheCallingThread)
{
    ProgressLog log;
    log.thread = std::this_thread::get_id();
    const PgkmHost host = {nullptr,
                           [](void *arg, const PgkmProgress *progress) {
                               ProgressLog &to = *static_cast<ProgressLog *>(arg);
                               const std::string phase = progress->phase;
                               ++to.calls;
                               to.elsewhere += std::this_thread::get_id() != to.thread;
                               to.unknown_phase += phase != "loading" && phase != "seeding" && phase != "iterating" &&
                                                   phase != "labelling";
                           },
                           &log};
    LongJob job; // a small one may be over before there is anything to report
    job.problem.k = 20;
    Session session(GetParam(), job.points(), host);
    ASSERT_EQ(session.fit(&job.problem, 1, {PGKM_L2, 5}), PGKM_OK) << session.error.text;
    EXPECT_GT(log.calls, 0);
    EXPECT_EQ(log.elsewhere, 0);
    EXPECT_EQ(log.unknown_phase, 0);
}

TEST_P(Host, UnknownStrategyIsUnsupported)
{
    for (const char *PgkmTuning::*stage :
         {&PgkmTuning::assignment, &PgkmTuning::execution, &PgkmTuning::feature_sum, &PgkmTuning::mass_sum,
          &PgkmTuning::reduction_layout, &PgkmTuning::instruction_set}) {
        PgkmOpen options = {};
        options.struct_size = sizeof options;
        options.device = GetParam().device;
        options.threads = 1;
        options.tuning.*stage = "no such strategy";
        PgkmContext *context = nullptr;
        PgkmError error = {};
        EXPECT_EQ(GetParam().table->open(&options, &context, &error), PGKM_UNSUPPORTED);
        EXPECT_NE(std::string(error.text).find("no such strategy"), std::string::npos) << error.text;
        EXPECT_EQ(context, nullptr);
    }
}

TEST_P(Host, MemoryLimitHolds)
{
    LongJob job;
    // Half of the clusters are empty: a fit that keeps its sums on a device needs the host's memory to relocate them.
    std::fill(job.centroids.begin() + std::ssize(job.centroids) / 2, job.centroids.end(), 100.0f);
    for (int stage = 0; stage < 3; ++stage) {
        try {
            Session session(GetParam(), job.points(), {}, 2, 4096);
            std::vector<double> distances(static_cast<std::size_t>(job.n));
            PgkmAssignment wanted = {};
            wanted.distances = distances.data();
            const PgkmStatus status = stage == 0
                                          ? session.seed(&job.problem, 1, seed_params(PGKM_INIT_KMEANS_PLUS_PLUS, 0))
                                      : stage == 1 ? session.fit(&job.problem, 1, {PGKM_L2, 2})
                                                   : session.assign(&job.problem, 1, &wanted);
            EXPECT_EQ(status, PGKM_LIMIT) << "stage " << stage;
            EXPECT_STRNE(session.error.text, "");
        } catch (const std::runtime_error &refused) {
            EXPECT_STRNE(refused.what(), ""); // open() or load() may refuse as well
        }
    }
}

TEST_P(Host, ProbeCountsWithoutRoom)
{
    std::int32_t count = -1;
    PgkmError error = {};
    EXPECT_EQ(GetParam().table->probe(nullptr, 0, &count, &error), PGKM_OK) << error.text;
    EXPECT_GE(count, 1);
}

TEST_P(Host, EveryListedStrategyOpens)
{
    for (const Subject &subject : all_subjects()) {
        const Case &data = case_named("one_row_float32");
        EXPECT_NO_THROW(Session(subject, data.points())) << subject.name;
    }
}

// Tens of MB travel in many pieces: none may be lost, doubled or misplaced.
TEST_P(Host, ManyRowsArriveWhole)
{
    constexpr std::int64_t n = 5'000'011;
    std::vector<float> values(n);
    std::vector<double> weights(n);
    for (std::int64_t i = 0; i < n; ++i) {
        values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1'000'003);
        weights[static_cast<std::size_t>(i)] = static_cast<double>(i % 97 + 1);
    }
    const PgkmPoints points = {values.data(), PGKM_FLOAT32, n, 1, weights.data()};
    struct Found {
        std::vector<std::int32_t> labels = std::vector<std::int32_t>(n);
        PgkmInt128 totals[2] = {}, masses[2] = {};
    };
    const auto assign = [&](const Subject &subject, Found &found) {
        float centroids[2] = {250'000.0f, 750'000.0f};
        const PgkmFeatureScale scale = pgkm::sum_scale(0.0, 1'000'002.0, 97.0);
        PgkmProblem problem = {};
        problem.n_rows = n;
        problem.k = 2;
        problem.centroids = centroids;
        problem.feature_scales = &scale;
        problem.weight_exponent = pgkm::scale_exponent(97.0);
        PgkmAssignment wanted = {};
        wanted.labels = found.labels.data();
        wanted.totals = found.totals;
        wanted.masses = found.masses;
        Session session(subject, points);
        ASSERT_EQ(session.assign(&problem, 1, &wanted), PGKM_OK) << session.error.text;
    };
    Found expected, found;
    assign({"cpu", pgkm::cpu_backend(), -1, {}, 0, true}, expected);
    assign(GetParam(), found);
    EXPECT_EQ(found.labels, expected.labels);
    for (int j = 0; j < 2; ++j) {
        EXPECT_EQ(found.totals[j].lo, expected.totals[j].lo);
        EXPECT_EQ(found.masses[j].lo, expected.masses[j].lo);
    }
}

TEST_P(Host, CloseAndUnloadAcceptNull)
{
    GetParam().table->unload(nullptr);
    GetParam().table->close(nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, Host, testing::ValuesIn(plain_subjects()), subject_name);

TEST(Plugin, IsPresent)
{
    if (!plugin_absence().empty())
        GTEST_SKIP() << "no plugin under test: " << plugin_absence();
}

} // namespace
} // namespace conformance
