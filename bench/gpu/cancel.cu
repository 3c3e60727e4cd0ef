// cancel.cu - from the cancel flag to the return of the call, where an iteration is 10^10 distances.
#include <atomic>
#include <cstdio>
#include <iterator>
#include <thread>

#include "session.hpp"

namespace bench {
namespace {

struct Case {
    std::int64_t n;
    int d, k;
};

constexpr Case shapes[] = {
    {100000000, 4, 100}, {10000000, 8, 1000}, {10000000, 32, 1000}, {2500000, 128, 4000}, {1000000, 256, 10000}};
constexpr int delays_ms[] = {3, 40, 90, 130, 170, 230, 310};

// The longest of several cancels, in milliseconds; -1 where the call ended before each.
template <typename Call>
double longest(const PgkmPoints &points, std::uint64_t limit, Call &&call)
{
    double worst = -1.0;
    for (const int delay : delays_ms) {
        std::atomic<int> flag{0};
        const PgkmHost host = {[](void *at) { return static_cast<std::atomic<int> *>(at)->load(); }, nullptr, &flag};
        Session session(points, limit, host);
        std::atomic<double> when{0.0};
        std::thread timer([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(delay));
            when = seconds();
            flag = 1;
        });
        const PgkmStatus status = call(session);
        const double end = seconds();
        timer.join();
        if (status == PGKM_CANCELLED)
            worst = std::max(worst, (end - when) * 1e3);
        else if (status != PGKM_OK)
            throw Error(status, session.error.text);
    }
    return worst;
}

void bench_shape(const Case &shape)
{
    const std::vector<float> rows = host_rows(shape.n, shape.d);
    const PgkmPoints points = {rows.data(), PGKM_FLOAT32, shape.n, shape.d, nullptr};
    const std::vector<PgkmFeatureScale> scales(static_cast<std::size_t>(shape.d), sum_scale(-64.0, 64.0, 1.0));
    std::vector<float> centroids;
    PgkmProblem problem{};
    const auto reset = [&] {
        centroids.assign(rows.begin(), rows.begin() + static_cast<long>(shape.k) * shape.d);
        problem = {0, shape.n, shape.k, centroids.data(), scales.data(), 0, 30, -1.0, nullptr, 0, 0, 0.0, 0};
    };
    const auto line = [&](const char *call, double ms) {
        std::printf("%lld,%d,%d,%s,%.1f,%s\n", static_cast<long long>(shape.n), shape.d, shape.k, call, ms,
                    ms <= 100.0 ? "yes" : "no");
        std::fflush(stdout);
    };
    const auto fit = [&](Session &session) {
        reset();
        const PgkmFitParams params = {PGKM_L2, 100000};
        return session.table->fit(session.data, &problem, 1, &params, &session.error);
    };
    const auto seed = [&](PgkmInit init) {
        return [&, init](Session &session) {
            reset();
            const PgkmSeedParams params = {init, 1, 0, 0};
            return session.table->seed(session.data, &problem, 1, &params, &session.error);
        };
    };
    std::vector<double> distances(static_cast<std::size_t>(shape.n));
    const auto assign = [&](Session &session) {
        PgkmAssignment wanted{};
        wanted.distances = distances.data();
        PgkmStatus status = PGKM_OK;
        for (int i = 0; i < 50 && status == PGKM_OK; ++i) {
            reset();
            status = session.table->assign(session.data, &problem, 1, &wanted, &session.error);
        }
        return status;
    };
    line("fit", longest(points, 0, fit));
    line("fit streamed", longest(points, rows.size() * 2, fit));
    line("k-means++", longest(points, 0, seed(PGKM_INIT_KMEANS_PLUS_PLUS)));
    line("k-means||", longest(points, 0, seed(PGKM_INIT_KMEANS_PARALLEL)));
    line("assign", longest(points, 0, assign));
}

} // namespace

void cancel(const std::vector<int> &which)
{
    std::printf("n,d,k,call,longest_ms,goal_reached\n");
    for (const int i : which)
        if (i < static_cast<int>(std::size(shapes)))
            bench_shape(shapes[i]);
}

} // namespace bench
