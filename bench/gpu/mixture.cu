// mixture.cu - one E step of EM with the sums of the M step, rows on the device.
#include <cstdio>
#include <iterator>

#include "session.hpp"

namespace bench {
namespace {

struct MixtureRow {
    std::int64_t n;
    int d, k;
    PgkmCovariance type;
};

constexpr MixtureRow mixture_rows[] = {
    {10000000, 16, 32, PGKM_COVARIANCE_DIAG},      {1000000, 32, 16, PGKM_COVARIANCE_FULL},
    {10000000, 16, 32, PGKM_COVARIANCE_SPHERICAL}, {1000000, 32, 16, PGKM_COVARIANCE_TIED},
    {10000000, 3, 8, PGKM_COVARIANCE_FULL},        {200000, 128, 8, PGKM_COVARIANCE_FULL},
    {1000000, 41, 64, PGKM_COVARIANCE_DIAG},
};

const char *name_of(PgkmCovariance type)
{
    static const char *const names[] = {"full", "tied", "diag", "spherical"};
    return names[type];
}

// Means at rows of the data, unit precisions: what a fit's first iterations meet.
template <typename T>
void time_shape(const MixtureRow &row, PgkmElement element)
{
    const auto d = static_cast<std::size_t>(row.d), k = static_cast<std::size_t>(row.k);
    const std::vector<float> source = host_rows(row.n, row.d);
    const std::vector<T> values(source.begin(), source.end());
    const bool square = row.type == PGKM_COVARIANCE_FULL || row.type == PGKM_COVARIANCE_TIED;
    const std::size_t matrices = row.type == PGKM_COVARIANCE_FULL ? k : 1;
    std::vector<double> weights(k, -3.0), means(values.begin(), values.begin() + static_cast<long>(k * d)),
        factors(square ? matrices * d * d : k * d, square ? 0.0 : 1.0), determinants(k), masses(k), first(k * d),
        second(k * (row.type == PGKM_COVARIANCE_FULL ? d * (d + 1) / 2 : d));
    for (std::size_t i = 0; square && i < matrices * d; ++i)
        factors[i / d * d * d + i % d * (d + 1)] = 1.0;
    const PgkmMixture mixture = {row.k,  row.type, weights.data(), means.data(), factors.data(), determinants.data(),
                                 nullptr};
    PgkmMixtureSums sums = {0.0, masses.data(), first.data(), second.data(), nullptr};
    Session session({values.data(), element, row.n, row.d, nullptr}, 0);
    PgkmProblem problem{};
    problem.n_rows = row.n;
    std::vector<double> times;
    for (int repeat = 0; repeat < 11; ++repeat) {
        const double begin = seconds();
        require(session.table->em_step(session.data, &problem, 1, &mixture, &sums, &session.error), session.error);
        times.push_back((seconds() - begin) * 1e3);
    }
    std::printf("%s,%s,%lld,%d,%d,%.3f,%.3f\n", name_of(row.type), element == PGKM_FLOAT32 ? "float32" : "float64",
                static_cast<long long>(row.n), row.d, row.k, times[0], median(times));
    std::fflush(stdout);
}

} // namespace

void mixture(const std::vector<int> &which)
{
    std::printf("covariance_type,element,n,d,k,first_ms,em_step_ms\n");
    for (int i = 0; i < static_cast<int>(std::size(mixture_rows)); ++i) {
        if (std::find(which.begin(), which.end(), i) == which.end())
            continue;
        time_shape<float>(mixture_rows[i], PGKM_FLOAT32);
        time_shape<double>(mixture_rows[i], PGKM_FLOAT64);
    }
}

} // namespace bench
