// relocation.cu - what an iteration takes in which clusters are empty, beside one in which none is.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "session.hpp"

namespace bench {
namespace {

struct Case {
    std::int64_t n;
    int d, k, empty;
};

constexpr Case shapes[] = {
    {10000000, 8, 100, 10}, {1000000, 32, 1000, 500}, {1000000, 8, 10000, 5000}, {40000000, 2, 64, 8}};
constexpr int calls = 5;

// Milliseconds of a fit with `max_iter` iterations; the last `empty` centroids lie where the first ones do.
double fit_ms(Session &session, const Case &shape, const std::vector<float> &rows, int empty, int max_iter)
{
    const std::vector<PgkmFeatureScale> scales(static_cast<std::size_t>(shape.d), sum_scale(-64.0, 64.0, 1.0));
    std::vector<double> times;
    for (int i = 0; i < calls; ++i) {
        std::vector<float> centroids(rows.begin(), rows.begin() + static_cast<long>(shape.k) * shape.d);
        std::copy_n(centroids.begin(), static_cast<long>(empty) * shape.d,
                    centroids.end() - static_cast<long>(empty) * shape.d);
        PgkmProblem problem = {0, shape.n, shape.k, centroids.data(), scales.data(), 0, 30, 0.0, nullptr, 0, 0, 0.0, 0};
        const PgkmFitParams params = {PGKM_L2, max_iter};
        const double begin = seconds();
        require(session.table->fit(session.data, &problem, 1, &params, &session.error), session.error);
        times.push_back((seconds() - begin) * 1e3);
    }
    return median(times);
}

} // namespace

void relocation()
{
    std::printf("n,d,k,empty,one_iteration_ms,with_empty_ms,five_iterations_ms,with_empty_ms\n");
    for (const Case &shape : shapes) {
        const std::vector<float> rows = host_rows(shape.n, shape.d);
        Session session({rows.data(), PGKM_FLOAT32, shape.n, shape.d, nullptr}, 0);
        std::printf("%lld,%d,%d,%d", static_cast<long long>(shape.n), shape.d, shape.k, shape.empty);
        for (const int max_iter : {1, 5})
            for (const int empty : {0, shape.empty})
                std::printf(",%.2f", fit_ms(session, shape, rows, empty, max_iter));
        std::printf("\n");
        std::fflush(stdout);
    }
}

} // namespace bench
