// Restarts, and each k of a sweep, that several devices share out: the bits of one device, what ends all of them, and
// where it pays. The CPU stands for each device.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/cpu_backend.hpp"
#include "engine/job/algorithm.hpp"
#include "engine/kmeans/work.hpp"
#include "fit_run.hpp"
#include "service_fixture.hpp"

namespace pgkm {
namespace {

constexpr std::int32_t d = 2;
constexpr std::int64_t n = 600;
constexpr std::uint64_t enough = std::uint64_t{1} << 30;

// Without clusters of their own: each restart ends elsewhere.
std::vector<double> make_rows()
{
    std::vector<double> rows;
    for (std::int64_t i = 0; i < n * d; ++i)
        rows.push_back(std::sin(static_cast<double>(i * i)) * 10.0);
    return rows;
}

PgkmRequest restarts(const std::vector<double> &rows, std::int32_t n_init)
{
    PgkmRequest request = request_for(rows, d, 12);
    request.kmeans.n_init = n_init;
    request.kmeans.seed = 3;
    return request;
}

PgkmRequest sweep_to_8(const std::vector<double> &rows, std::int32_t n_init)
{
    PgkmRequest request = restarts(rows, n_init);
    request.k = 2;
    request.k_last = 8;
    request.silhouette_rows = 100;
    return request;
}

// All that a job finds, number by number.
std::vector<double> numbers(const Models &models)
{
    std::vector<double> found;
    for (std::int64_t i = 0; i < models.size(); ++i) {
        PgkmResult one = {};
        models.get(i, &one);
        found.insert(found.end(), {static_cast<double>(one.k), static_cast<double>(one.n_iter), one.inertia,
                                   static_cast<double>(one.converged), one.quality.silhouette, one.quality.bic});
        const auto add = [&](const auto *values, std::int64_t count) {
            if (values != nullptr)
                found.insert(found.end(), values, values + count);
        };
        add(one.centroids, std::int64_t{one.k} * d);
        add(one.sizes, one.k);
        add(one.within_ss, one.k);
        add(one.labels, n);
        add(one.distances, n);
    }
    for (double &number : found)
        number = std::isnan(number) ? -1.0 : number; // so that it is equal
    return found;
}

std::vector<double> run_on(const BackendChoice &choice, const PgkmRequest &request, Monitor &monitor,
                           std::uint64_t device_memory = enough)
{
    PgkmOpen open = {};
    open.threads = 3;
    open.device_memory_limit = device_memory;
    open.host = monitor.host();
    Workplace place(choice, open);
    return numbers(*kmeans.fit(request, &place, monitor));
}

std::vector<double> run_on(const BackendChoice &choice, const PgkmRequest &request,
                           std::uint64_t device_memory = enough)
{
    Monitor monitor;
    return run_on(choice, request, monitor, device_memory);
}

std::vector<double> run_on_one(const PgkmRequest &request)
{
    return run_on({cpu_backend(), -1, 0}, request);
}

// --- a device that counts, and does what a test wants ---

std::atomic<int> fits, fits_with_peers, at_work, most_at_work, open_contexts;
std::function<PgkmStatus(int fit, PgkmError *error)> before_fit; // what fails it

PgkmStatus watched_fit(PgkmData *data, PgkmProblem *problems, std::int64_t count, const PgkmFitParams *params,
                       PgkmError *error)
{
    const int fit = fits++, now = ++at_work;
    for (int most = most_at_work; now > most && !most_at_work.compare_exchange_weak(most, now);) {}
    fits_with_peers += problems[0].peers != nullptr ? 1 : 0;
    EXPECT_EQ(count, 1) << "problems of the same rows in one call of one device";
    PgkmStatus status = before_fit == nullptr ? PGKM_OK : before_fit(fit, error);
    if (status == PGKM_OK)
        status = cpu_backend()->fit(data, problems, count, params, error);
    --at_work;
    return status;
}

BackendChoice watched(std::vector<std::int32_t> devices, decltype(before_fit) before = nullptr)
{
    static PgkmBackend table = *cpu_backend();
    table.fit = watched_fit;
    table.open = [](const PgkmOpen *options, PgkmContext **context, PgkmError *error) {
        ++open_contexts;
        return cpu_backend()->open(options, context, error);
    };
    table.close = [](PgkmContext *context) {
        --open_contexts;
        cpu_backend()->close(context);
    };
    fits = fits_with_peers = most_at_work = 0;
    before_fit = std::move(before);
    return {&table, -1, 0, std::move(devices)};
}

TEST(RestartsApart, HaveTheBitsOfOneDevice)
{
    const std::vector<double> rows = make_rows();
    std::vector<double> weights;
    for (std::int64_t i = 0; i < n; ++i)
        weights.push_back(1.0 + static_cast<double>(i % 5));
    const std::vector<float> narrow(rows.begin(), rows.end());
    for (const std::int32_t n_init : {1, 3, 10})
        for (const bool swept : {false, true})
            for (const bool other : {false, true}) {
                PgkmRequest request = swept ? sweep_to_8(rows, n_init) : restarts(rows, n_init);
                if (other) {
                    request.points.values = narrow.data();
                    request.points.element = PGKM_FLOAT32;
                    request.points.weights = weights.data();
                    request.kmeans.standardize = 1;
                }
                const std::vector<double> right = run_on_one(request);
                for (const std::size_t devices : {1u, 2u, 3u}) {
                    SCOPED_TRACE(testing::Message() << devices << " devices, n_init " << n_init << ", sweep " << swept);
                    const std::vector<std::int32_t> list(devices, 0);
                    EXPECT_EQ(run_on(watched(list), request), right);
                    EXPECT_EQ(fits_with_peers > 0, devices > 1 && n_init == 1 && !swept);
                    EXPECT_EQ(run_on(watched(list), request, 0), right) << "without a limit";
                    EXPECT_EQ(fits_with_peers > 0, devices > 1 && n_init == 1 && !swept);
                    EXPECT_EQ(run_on(watched(list), request, 1), right) << "without room";
                    EXPECT_EQ(fits_with_peers > 0, devices > 1);
                }
            }
}

TEST(RestartsApart, GoOnAtTheSameTime)
{
    const std::vector<double> rows = make_rows();
    const auto wait_for_another = [](int, PgkmError *) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (most_at_work < 3 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return PGKM_OK;
    };
    run_on(watched({0, 0, 0}, wait_for_another), restarts(rows, 10));
    EXPECT_EQ(most_at_work, 3);
    EXPECT_EQ(fits, 10);
    run_on(watched({0, 0, 0}, wait_for_another), sweep_to_8(rows, 1));
    EXPECT_EQ(most_at_work, 3);
    EXPECT_EQ(fits, 7);
}

TEST(RestartsApart, ADeviceThatFailsEndsTheOthers)
{
    const std::vector<double> rows = make_rows();
    for (const int failing : {0, 1, 4})
        try {
            run_on(watched({0, 0, 0},
                           [=](int fit, PgkmError *error) {
                               return fit == failing ? set_error(error, PGKM_DEVICE_ERROR, "the device is gone")
                                                     : PGKM_OK;
                           }),
                   restarts(rows, 100));
            ADD_FAILURE() << "the fit has ended well";
        } catch (const Error &error) {
            EXPECT_EQ(error.status(), PGKM_DEVICE_ERROR);
            EXPECT_STREQ(error.what(), "the device is gone");
            EXPECT_EQ(open_contexts, 0);
            EXPECT_LT(fits, 12) << "of the first call";
        }
}

TEST(RestartsApart, ACancelEndsAll)
{
    const std::vector<double> rows = make_rows();
    Monitor monitor;
    const BackendChoice choice = watched({0, 0, 0}, [&](int fit, PgkmError *) {
        if (fit == 3)
            monitor.cancel();
        return PGKM_OK;
    });
    try {
        run_on(choice, restarts(rows, 100), monitor);
        ADD_FAILURE() << "the fit has ended well";
    } catch (const Error &error) {
        EXPECT_EQ(error.status(), PGKM_CANCELLED);
    }
    EXPECT_LT(fits, 12) << "of the first call";
    EXPECT_EQ(open_contexts, 0);
}

// What one device had no memory for, all do together.
TEST(RestartsApart, WithoutMemoryAfterAllGoOnTogether)
{
    const std::vector<double> rows = make_rows();
    const PgkmRequest request = restarts(rows, 5);
    for (const PgkmStatus status : {PGKM_LIMIT, PGKM_OUT_OF_MEMORY}) {
        const auto fail_twice = [=](int fit, PgkmError *error) {
            return fit == 1 || fit == 3 ? set_error(error, status, "no memory") : PGKM_OK;
        };
        EXPECT_EQ(run_on(watched({0, 0}, fail_twice), request), run_on_one(request));
        EXPECT_EQ(fits, 5 + 2 * 2);
        EXPECT_EQ(fits_with_peers, 2 * 2);
    }
}

// --- where it pays ---

TEST(RestartsPayApart, WhereAnExchangeCostsMoreThanItSaves)
{
    EXPECT_TRUE(restarts_pay_apart({1e5, 32, 16, 300, 4, 10}, 2));
    EXPECT_TRUE(restarts_pay_apart({1e5, 32, 16, 90, 4, 3}, 2)) << "one device does two of them";
    EXPECT_TRUE(restarts_pay_apart({1e7, 128, 4096, 240, 4, 8}, 4)) << "none has less to do than the others";
}

TEST(RestartsPayApart, NotWhereDevicesWouldWait)
{
    EXPECT_FALSE(restarts_pay_apart({1e5, 32, 16, 30, 4, 1}, 2));
    EXPECT_FALSE(restarts_pay_apart({1e5, 32, 16, 300, 4, 10}, 1));
    EXPECT_FALSE(restarts_pay_apart({1e7, 128, 4096, 90, 4, 3}, 2));
    EXPECT_FALSE(restarts_pay_apart({1e7, 128, 4096, 60, 4, 2}, 8));
}

TEST(RestartsPayApart, MayMakeMoreDevicesWorthIt)
{
    const Extent together = {4e6, 2, 400, 3000, 4}, apart = {4e6, 2, 400, 3000, 4, 100};
    EXPECT_EQ(devices_worth({4e6, 2, 400, 30, 4}, 4), 1);
    EXPECT_GE(devices_worth(apart, 4), devices_worth(together, 4));
    EXPECT_EQ(devices_worth(apart, 4), 4);
}

TEST(RestartsAtOnce, AreOfPlainFitsAlone)
{
    const std::vector<double> rows = make_rows();
    EXPECT_EQ(restarts_at_once(restarts(rows, 10), 1, enough), 1);
    EXPECT_EQ(restarts_at_once(restarts(rows, 10), 2, enough), 8);
    EXPECT_EQ(restarts_at_once(restarts(rows, 10), 3, enough), 10);
    EXPECT_EQ(restarts_at_once(sweep_to_8(rows, 1), 2, enough), 7);
    PgkmRequest request = restarts(rows, 10);
    request.kmeans.init = PGKM_INIT_FIRST;
    EXPECT_EQ(restarts_at_once(request, 2, enough), 1);
    for (const auto change :
         {+[](PgkmOptions &options) { options.refine = 1; }, +[](PgkmOptions &options) { options.batch_size = 100; },
          +[](PgkmOptions &options) { options.max_radius = 1.0; },
          +[](PgkmOptions &options) { options.max_size = 100; }}) {
        request = restarts(rows, 10);
        change(request.kmeans);
        EXPECT_EQ(restarts_at_once(request, 2, enough), 1);
    }
}

// Without room on each device restarts go one by one, each by all devices: no call has several models.
TEST(RestartsAtOnce, WantRoomOnEachDevice)
{
    const std::vector<double> rows = make_rows();
    const PgkmRequest request = restarts(rows, 10);
    const std::uint64_t own = n / 2 * d * sizeof(double), all = n * d * sizeof(double);
    EXPECT_EQ(restarts_at_once(request, 2, own + 4 * all), 8);
    EXPECT_EQ(restarts_at_once(request, 2, own + 4 * all - 1), 1);
    EXPECT_EQ(restarts_at_once(request, 2, 0), 1) << "it is not known how much there is";
    EXPECT_EQ(restarts_at_once(request, 2, UINT64_MAX), 8) << "there is no limit";
}

// What the engine is told of a limit: that of the request, or what was free on the devices that are open.
TEST(RestartsAtOnce, KnowTheLimit)
{
    const auto memory = [](std::vector<std::int32_t> devices, std::uint64_t limit) {
        PgkmOpen open = {};
        open.threads = 1;
        open.device_memory_limit = limit;
        return Session(watched(std::move(devices)), open).device_memory();
    };
    EXPECT_EQ(memory({}, 0), UINT64_MAX);
    EXPECT_EQ(memory({}, 7), 7U);
    EXPECT_EQ(memory({0, 0}, 7), 7U);
    EXPECT_GT(memory({0, 0}, 0), enough / 1024) << "half of what the host has";
    EXPECT_LT(memory({0, 0}, 0), UINT64_MAX);
}

} // namespace

// The service opens the devices; a list may come down to one.
namespace service {

TEST_F(Service, SharesOutRestarts)
{
    const std::vector<double> rows = make_rows();
    for (const PgkmRequest &request : {restarts(rows, 10), sweep_to_8(rows, 3)})
        for (const std::vector<std::int32_t> &list :
             {std::vector<std::int32_t>{0, 0, 0}, std::vector<std::int32_t>{-1, -1}})
            EXPECT_EQ(run_on({client_backend(), -1, connect(), list}, request), run_on_one(request));
}

} // namespace service
} // namespace pgkm
