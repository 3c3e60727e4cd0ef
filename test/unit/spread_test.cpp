// Several devices as one (backend/spread): odd shapes, memory, and what ends all peers when one of them fails. The CPU
// stands for each device.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/spread/contexts.hpp"
#include "cpu/cpu_backend.hpp"
#include "engine/backends/session.hpp"
#include "support/spread_over.hpp"

namespace {

constexpr std::int32_t d = 2, k = 3;

// In three heaps, the last of which is one far row: clusters empty when the centroids begin elsewhere.
std::vector<double> make_rows(std::int64_t n)
{
    std::vector<double> rows;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int32_t f = 0; f < d; ++f)
            rows.push_back((i == n - 1 ? 1000.0 : 10.0 * static_cast<double>(i % 2)) +
                           std::sin(static_cast<double>(i * 7 + f)));
    return rows;
}

struct Fitted {
    std::vector<double> centroids = std::vector<double>(k * d);
    std::vector<PgkmProblem> problems;
    std::vector<std::int32_t> labels;
    std::vector<PgkmInt128> totals = std::vector<PgkmInt128>(k * d), within = std::vector<PgkmInt128>(k);
    std::vector<std::int64_t> sizes = std::vector<std::int64_t>(k);
};

// Seeds (or begins far away, so that clusters are empty), fits and labels.
Fitted fit(const PgkmBackend *table, const std::vector<double> &rows, bool far, int max_iter = 20,
           std::uint64_t device_memory = 0)
{
    Fitted fitted;
    const auto n = static_cast<std::int64_t>(rows.size()) / d;
    PgkmOpen open = {};
    open.threads = 2;
    open.device_memory_limit = device_memory;
    pgkm::Session session({table, -1, 0, {}}, open);
    session.load({rows.data(), PGKM_FLOAT64, n, d, nullptr});
    const std::vector<PgkmFeatureScale> scales(d, {0.0, 30});
    PgkmProblem problem = {};
    problem.n_rows = n;
    problem.k = static_cast<std::int32_t>(std::min<std::int64_t>(k, n));
    problem.centroids = fitted.centroids.data();
    problem.feature_scales = scales.data();
    problem.distance_exponent = 20;
    fitted.problems = {problem};
    const PgkmSeedParams seed = {PGKM_INIT_KMEANS_PLUS_PLUS, 5, 0, 0};
    const PgkmFitParams params = {PGKM_L2, max_iter};
    if (far)
        std::fill(fitted.centroids.begin() + d, fitted.centroids.end(), 1e6);
    else
        session.run(&PgkmBackend::seed, fitted.problems, &seed);
    session.run(&PgkmBackend::fit, fitted.problems, &params);
    fitted.labels.resize(static_cast<std::size_t>(n));
    PgkmAssignment wanted = {};
    wanted.labels = fitted.labels.data();
    wanted.totals = fitted.totals.data();
    wanted.within = fitted.within.data();
    wanted.sizes = fitted.sizes.data();
    session.run(&PgkmBackend::assign, fitted.problems, &wanted);
    return fitted;
}

bool same(const std::vector<PgkmInt128> &a, const std::vector<PgkmInt128> &b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto &x, const auto &y) { return x.lo == y.lo && x.hi == y.hi; });
}

TEST(Spread, AnyNumberOfRowsOverAnyNumberOfDevices)
{
    for (const std::size_t devices : {1u, 2u, 3u, 4u, 7u})
        for (const std::int64_t n : {1, 2, 3, 5, 8, 101})
            for (const bool far : {false, true}) {
                SCOPED_TRACE(std::to_string(n) + " rows, " + std::to_string(devices) + " devices");
                const std::vector<double> rows = make_rows(n);
                const Fitted one = fit(pgkm::cpu_backend(), rows, far);
                const Fitted all = fit(
                    pgkm::test::spread_over<0>(pgkm::cpu_backend(), std::vector<std::int32_t>(devices, 0)), rows, far);
                EXPECT_EQ(one.centroids, all.centroids);
                EXPECT_EQ(one.labels, all.labels);
                EXPECT_EQ(one.sizes, all.sizes);
                EXPECT_EQ(one.problems[0].k, all.problems[0].k);
                EXPECT_EQ(one.problems[0].n_iter, all.problems[0].n_iter);
                EXPECT_EQ(one.problems[0].converged, all.problems[0].converged);
                EXPECT_EQ(one.problems[0].shift, all.problems[0].shift);
                EXPECT_TRUE(same(one.totals, all.totals));
                EXPECT_TRUE(same(one.within, all.within));
            }
}

std::atomic<int> fits_left;     // before one fails
std::atomic<int> contexts_left; // before one is not opened
std::atomic<int> open_contexts;

PgkmStatus failing_fit(PgkmData *data, PgkmProblem *problems, std::int64_t n, const PgkmFitParams *params,
                       PgkmError *error)
{
    if (fits_left.fetch_sub(1) == 0)
        return pgkm::set_error(error, PGKM_DEVICE_ERROR, "the device is gone");
    return pgkm::cpu_backend()->fit(data, problems, n, params, error);
}

PgkmStatus failing_open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    if (contexts_left.fetch_sub(1) == 0)
        return pgkm::set_error(error, PGKM_UNAVAILABLE, "there is no such device");
    ++open_contexts;
    return pgkm::cpu_backend()->open(options, context, error);
}

void counted_close(PgkmContext *context)
{
    open_contexts -= context == nullptr ? 0 : 1;
    pgkm::cpu_backend()->close(context);
}

const PgkmBackend *failing()
{
    static PgkmBackend table = *pgkm::cpu_backend();
    table.fit = failing_fit;
    table.open = failing_open;
    table.close = counted_close;
    return pgkm::test::spread_over<1>(&table, {0, 0, 0});
}

// All threads of a session are those of its devices together.
TEST(Spread, DevicesShareTheThreadsOfASession)
{
    static PgkmBackend table = *pgkm::cpu_backend();
    static std::vector<std::int32_t> threads, most_threads;
    threads.clear(), most_threads.clear();
    table.open = [](const PgkmOpen *options, PgkmContext **context, PgkmError *error) {
        threads.push_back(options->threads), most_threads.push_back(options->most_threads);
        return pgkm::cpu_backend()->open(options, context, error);
    };
    const std::vector<std::int32_t> devices = {0, 0, 0};
    PgkmOpen options = {};
    options.struct_size = sizeof options;
    options.threads = 7, options.most_threads = 12;
    options.devices = devices.data(), options.n_devices = 3;
    const pgkm::spread::Contexts contexts(table, options);
    EXPECT_EQ(threads, (std::vector<std::int32_t>{2, 2, 2}));
    EXPECT_EQ(most_threads, (std::vector<std::int32_t>{4, 4, 4}));
}

// A fit that several contexts share takes more memory than that of one.
TEST(Spread, PeersWithTooLittleMemoryLeaveTheFitToOne)
{
    static PgkmBackend table = *pgkm::cpu_backend();
    static std::atomic<int> refused;
    refused = 0;
    table.fit = [](PgkmData *data, PgkmProblem *problems, std::int64_t n, const PgkmFitParams *params,
                   PgkmError *error) {
        if (problems[0].peers == nullptr)
            return pgkm::cpu_backend()->fit(data, problems, n, params, error);
        ++refused;
        return pgkm::set_error(error, PGKM_LIMIT, "there is no room");
    };
    const std::vector<double> rows = make_rows(1000);
    for (const bool far : {false, true}) {
        const Fitted one = fit(pgkm::cpu_backend(), rows, far),
                     all = fit(pgkm::test::spread_over<6>(&table, {0, 0}), rows, far);
        EXPECT_EQ(one.centroids, all.centroids);
        EXPECT_EQ(one.labels, all.labels);
        EXPECT_EQ(one.problems[0].n_iter, all.problems[0].n_iter);
    }
    EXPECT_GT(refused, 0);
}

// Where one has too little for all rows as well, the error is that of the peers.
TEST(Spread, ALackOfMemoryOfPeersIsNamedWhereNoneCanHaveAllRows)
{
    static PgkmBackend table = *pgkm::cpu_backend();
    table.fit = [](PgkmData *, PgkmProblem *problems, std::int64_t, const PgkmFitParams *, PgkmError *error) {
        return problems[0].peers != nullptr ? pgkm::set_error(error, PGKM_OUT_OF_MEMORY, "the device has no memory")
                                            : pgkm::set_error(error, PGKM_LIMIT, "the limit has no room for all rows");
    };
    try {
        fit(pgkm::test::spread_over<7>(&table, {0, 0}), make_rows(1000), false);
        ADD_FAILURE() << "the fit has ended well";
    } catch (const pgkm::Error &error) {
        EXPECT_EQ(error.status(), PGKM_OUT_OF_MEMORY);
        EXPECT_STREQ(error.what(), "the device has no memory");
    }
}

// The others would wait for its sums for ever.
TEST(Spread, APeerThatFailsEndsTheOthers)
{
    const std::vector<double> rows = make_rows(1000);
    for (int peer = 0; peer < 3; ++peer) {
        fits_left = peer;
        contexts_left = 100;
        try {
            fit(failing(), rows, false);
            ADD_FAILURE() << "the fit has ended well";
        } catch (const pgkm::Error &error) {
            EXPECT_EQ(error.status(), PGKM_DEVICE_ERROR);
            EXPECT_STREQ(error.what(), "the device is gone");
        }
        EXPECT_EQ(open_contexts, 0);
    }
    fits_left = 100;
    EXPECT_EQ(fit(failing(), rows, false).centroids, fit(pgkm::cpu_backend(), rows, false).centroids);
}

TEST(Spread, ADeviceThatIsNotThereLeavesNothingOpen)
{
    fits_left = 100;
    for (int context = 0; context < 3; ++context) {
        contexts_left = context;
        EXPECT_THROW(fit(failing(), make_rows(10), false), pgkm::Error);
        EXPECT_EQ(open_contexts, 0);
    }
}

TEST(Spread, DevicesAreOpenedByTheirNumbers)
{
    for (const std::vector<std::int32_t> &devices : {std::vector<std::int32_t>{0, -1}, {-1, 0}, {}}) {
        PgkmOpen open = {};
        open.devices = devices.data();
        open.n_devices = static_cast<std::int32_t>(devices.size());
        PgkmContext *context = nullptr;
        PgkmError error = {};
        EXPECT_EQ(pgkm::spread::open(*pgkm::cpu_backend(), open, &context, &error), PGKM_INVALID);
        EXPECT_EQ(context, nullptr);
    }
}

// Rows that inner contexts hold, and how many there are when a fit begins; what is fitted.
std::mutex loads_mutex;
std::map<PgkmData *, std::int64_t> loads;
std::int64_t rows_at_fit;
int fits_alone, fits_with_peers; // problems, by whether others have rows of them

const PgkmBackend *counting()
{
    static PgkmBackend table = *pgkm::cpu_backend();
    table.load = [](PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error) {
        const PgkmStatus status = pgkm::cpu_backend()->load(context, points, data, error);
        const std::lock_guard<std::mutex> lock(loads_mutex);
        loads[*data] = points->n;
        return status;
    };
    table.unload = [](PgkmData *data) {
        const std::lock_guard<std::mutex> lock(loads_mutex);
        loads.erase(data);
        pgkm::cpu_backend()->unload(data);
    };
    table.fit = [](PgkmData *data, PgkmProblem *problems, std::int64_t n, const PgkmFitParams *params,
                   PgkmError *error) {
        {
            const std::lock_guard<std::mutex> lock(loads_mutex);
            rows_at_fit = 0;
            for (const auto &[loaded, rows] : loads)
                rows_at_fit += rows;
            for (std::int64_t i = 0; i < n; ++i)
                ++(problems[i].peers == nullptr ? fits_alone : fits_with_peers);
        }
        return pgkm::cpu_backend()->fit(data, problems, n, params, error);
    };
    return pgkm::test::spread_over<3>(&table, {0, 0, 0});
}

// Rows that seeding has brought together stay for the next restart where the limit, or without one the device, has room
// for them and a fit.
TEST(Spread, RowsThatWereBroughtTogetherLeaveRoomForAFit)
{
    const std::int64_t n = 3000, row_bytes = d * sizeof(double), enough = (n + 4 * n / 3) * row_bytes;
    const std::vector<double> rows = make_rows(n);
    for (const auto &[limit, held] : {std::pair{enough, 2 * n}, {enough - 1, n}, {std::int64_t{0}, 2 * n}}) {
        fit(counting(), rows, false, 20, static_cast<std::uint64_t>(limit));
        EXPECT_EQ(rows_at_fit, held) << limit;
        EXPECT_TRUE(loads.empty());
    }
}

// Of five groups over three devices, the second and the fourth lie on two each.
TEST(Spread, GroupsAreSharedOut)
{
    const std::int64_t n = 3000, groups = 5, size = n / groups;
    const std::vector<double> rows = make_rows(n);
    const std::vector<PgkmFeatureScale> scales(d, {0.0, 30});
    const auto fit_groups = [&](const PgkmBackend *table) {
        std::vector<double> centroids;
        std::vector<PgkmProblem> problems;
        for (std::int64_t g = 0; g < groups; ++g)
            centroids.insert(centroids.end(), rows.begin() + g * size * d, rows.begin() + (g * size + k) * d);
        for (std::int64_t g = 0; g < groups; ++g) {
            PgkmProblem &problem = problems.emplace_back();
            problem.first_row = g * size;
            problem.n_rows = size;
            problem.k = k;
            problem.centroids = centroids.data() + g * k * d;
            problem.feature_scales = scales.data();
        }
        PgkmOpen open = {};
        open.threads = 3;
        pgkm::Session session({table, -1, 0, {}}, open);
        session.load({rows.data(), PGKM_FLOAT64, n, d, nullptr});
        const PgkmFitParams params = {PGKM_L2, 20};
        session.run(&PgkmBackend::fit, problems, &params);
        return centroids;
    };
    fits_alone = fits_with_peers = 0;
    EXPECT_EQ(fit_groups(counting()), fit_groups(pgkm::cpu_backend()));
    EXPECT_EQ(fits_alone, 3);
    EXPECT_EQ(fits_with_peers, 2 * 2);
}

// A cancel that comes in the middle of iterations that would never end.
TEST(Spread, ACancelEndsAllPeers)
{
    static std::atomic<int> looks;
    looks = 200;
    const std::vector<double> rows = make_rows(200000);
    PgkmOpen open = {};
    open.threads = 2;
    open.host.cancelled = [](void *) { return looks.fetch_sub(1) <= 0 ? 1 : 0; };
    pgkm::Session session({pgkm::test::spread_over<2>(pgkm::cpu_backend(), {0, 0}), -1, 0, {}}, open);
    session.load({rows.data(), PGKM_FLOAT64, 200000, d, nullptr});
    std::vector<double> centroids = {0.0, 0.0, 1.0, 1.0, 2.0, 2.0};
    const std::vector<PgkmFeatureScale> scales(d, {0.0, 30});
    PgkmProblem problem = {};
    problem.n_rows = 200000;
    problem.k = k;
    problem.centroids = centroids.data();
    problem.feature_scales = scales.data();
    problem.tol = -1.0;
    std::vector<PgkmProblem> problems = {problem};
    const PgkmFitParams params = {PGKM_L2, 1 << 30};
    try {
        session.run(&PgkmBackend::fit, problems, &params);
        EXPECT_NE(problems[0].converged, 0) << "labels rested before the cancel";
    } catch (const pgkm::Error &error) {
        EXPECT_EQ(error.status(), PGKM_CANCELLED);
    }
}

// --- how many devices a fit is worth ---

TEST(DevicesWorth, ShapesThatGainTakeAll)
{
    EXPECT_EQ(pgkm::devices_worth({1e7, 128, 4096, 20, 4}, 4), 4);
    EXPECT_EQ(pgkm::devices_worth({1e7, 128, 4096, 20, 4}, 2), 2);
    EXPECT_EQ(pgkm::devices_worth({1e6, 768, 1024, 300, 4}, 4), 4);
    // The steps of k-means++ are worth it, not so few iterations alone.
    EXPECT_EQ(pgkm::devices_worth({1e7, 128, 64, 5, 4}, 2), 1);
    EXPECT_EQ(pgkm::devices_worth({1e7, 128, 64, 5, 4, 1, 1000}, 2), 2);
}

TEST(DevicesWorth, ShapesThatDoNotStayOnOne)
{
    EXPECT_EQ(pgkm::devices_worth({1e7, 128, 4096, 20, 4}, 1), 1);
    EXPECT_EQ(pgkm::devices_worth({1.0, 1, 1, 1, 4}, 16), 1);
    EXPECT_EQ(pgkm::devices_worth({65536, 32, 16, 20, 4}, 4), 1);
    EXPECT_EQ(pgkm::devices_worth({4e6, 2, 400, 20, 4}, 4), 1);
    // Rows that are read once or twice: to seed them together costs more.
    EXPECT_EQ(pgkm::devices_worth({134217728, 4, 4, 20, 4, 1, 4}, 4), 1);
}

TEST(DevicesWorth, MoreIterationsNeverTakeFewer)
{
    std::int32_t before = 1;
    for (const double iterations : {1.0, 10.0, 100.0, 1000.0, 10000.0}) {
        const std::int32_t now = pgkm::devices_worth({1e6, 128, 1024, iterations, 4}, 8);
        EXPECT_GE(now, before);
        before = now;
    }
    EXPECT_GT(before, 1);
}

} // namespace
