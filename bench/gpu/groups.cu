// groups.cu - many problems in one call against one problem of the same total size.
#include <cstdio>

#include "session.hpp"

namespace bench {
namespace {

struct Times {
    double seed, fit, assign; // milliseconds
    double iterations;        // of a problem, on average
};

Times time_groups(Session &session, std::int64_t groups, std::int64_t n, int d, int k)
{
    std::vector<float> centroids(static_cast<std::size_t>(groups * k * d));
    const std::vector<PgkmFeatureScale> scales(static_cast<std::size_t>(d), sum_scale(-64.0, 64.0, 1.0));
    std::vector<PgkmProblem> problems(static_cast<std::size_t>(groups));
    std::vector<PgkmAssignment> out(problems.size());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
    const auto at = [&](std::int64_t g) { return static_cast<std::size_t>(g); };
    std::vector<double> seeds, fits, assigns;
    Times times{};
    for (int repeat = 0; repeat < 5; ++repeat) {
        for (std::int64_t g = 0; g < groups; ++g) {
            problems[at(g)] = {g * (n / groups),
                               n / groups,
                               k,
                               centroids.data() + g * k * d,
                               scales.data(),
                               0,
                               30,
                               0.0,
                               nullptr,
                               0,
                               0,
                               0.0,
                               0};
            out[at(g)] = {};
            out[at(g)].labels = labels.data() + problems[at(g)].first_row;
        }
        const PgkmSeedParams seed = {PGKM_INIT_KMEANS_PLUS_PLUS, 1, 0, 0};
        const PgkmFitParams fit = {PGKM_L2, 20};
        const double begin = seconds();
        require(session.table->seed(session.data, problems.data(), groups, &seed, &session.error), session.error);
        const double seeded = seconds();
        require(session.table->fit(session.data, problems.data(), groups, &fit, &session.error), session.error);
        const double fitted = seconds();
        require(session.table->assign(session.data, problems.data(), groups, out.data(), &session.error),
                session.error);
        const double end = seconds();
        seeds.push_back((seeded - begin) * 1e3);
        fits.push_back((fitted - seeded) * 1e3);
        assigns.push_back((end - fitted) * 1e3);
        std::int64_t iterations = 0;
        for (const PgkmProblem &problem : problems)
            iterations += problem.n_iter;
        times.iterations = static_cast<double>(iterations) / static_cast<double>(groups);
    }
    times.seed = median(seeds);
    times.fit = median(fits);
    times.assign = median(assigns);
    return times;
}

} // namespace

void groups()
{
    std::printf("groups,rows,d,k,iterations,seed_ms,fit_ms,assign_ms,all_ms,ratio_of_fit,ratio_of_all,goal_reached\n");
    const std::int64_t n = 10000000;
    const int d = 8, k = 8;
    const std::vector<float> rows = host_rows(n, d);
    Session session({rows.data(), PGKM_FLOAT32, n, d, nullptr}, 0);
    Times one{};
    for (const std::int64_t groups : {std::int64_t{1}, std::int64_t{100}, std::int64_t{10000}}) {
        const Times t = time_groups(session, groups, n, d, k);
        if (groups == 1)
            one = t;
        const double all = t.seed + t.fit + t.assign, all_of_one = one.seed + one.fit + one.assign;
        std::printf("%lld,%lld,%d,%d,%.1f,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%s\n", static_cast<long long>(groups),
                    static_cast<long long>(n), d, k, t.iterations, t.seed, t.fit, t.assign, all, t.fit / one.fit,
                    all / all_of_one, all <= 3.0 * all_of_one ? "yes" : "no");
        std::fflush(stdout);
    }
}

} // namespace bench
