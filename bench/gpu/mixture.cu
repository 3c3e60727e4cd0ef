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
    std::int64_t groups = 1;
    double factor = 1.0; // 1: components lie far apart; overlapping: all of them count for every row
};

constexpr double overlapping = 0.05;

constexpr MixtureRow mixture_rows[] = {
    {10000000, 16, 32, PGKM_COVARIANCE_DIAG},
    {1000000, 32, 16, PGKM_COVARIANCE_FULL},
    {10000000, 16, 32, PGKM_COVARIANCE_SPHERICAL},
    {1000000, 32, 16, PGKM_COVARIANCE_TIED},
    {10000000, 3, 8, PGKM_COVARIANCE_FULL},
    {200000, 128, 8, PGKM_COVARIANCE_FULL},
    {1000000, 41, 64, PGKM_COVARIANCE_DIAG},
    {10000000, 8, 8, PGKM_COVARIANCE_FULL},
    {10000000, 8, 8, PGKM_COVARIANCE_FULL, 10000},
    {10000000, 8, 8, PGKM_COVARIANCE_TIED, 10000},
    {1000000, 64, 64, PGKM_COVARIANCE_DIAG},
    {2000000, 32, 32, PGKM_COVARIANCE_DIAG},
    {1000000, 64, 16, PGKM_COVARIANCE_FULL},
    {1000000, 16, 256, PGKM_COVARIANCE_DIAG},
    {1000000, 16, 256, PGKM_COVARIANCE_DIAG, 1, overlapping},
    {1000000, 32, 1024, PGKM_COVARIANCE_DIAG},
    {1000000, 32, 1024, PGKM_COVARIANCE_DIAG, 1, overlapping},
    {1000000, 128, 256, PGKM_COVARIANCE_DIAG},
    {1000000, 128, 256, PGKM_COVARIANCE_DIAG, 1, overlapping},
    {1000000, 128, 1024, PGKM_COVARIANCE_DIAG},
    {1000000, 128, 1024, PGKM_COVARIANCE_DIAG, 1, overlapping},
    {1000000, 128, 1024, PGKM_COVARIANCE_SPHERICAL},
    {1000000, 128, 1024, PGKM_COVARIANCE_SPHERICAL, 1, overlapping},
    {500000, 256, 1024, PGKM_COVARIANCE_DIAG},
    {500000, 256, 1024, PGKM_COVARIANCE_DIAG, 1, overlapping},
    {1000000, 33, 16, PGKM_COVARIANCE_FULL},
    {500000, 64, 64, PGKM_COVARIANCE_FULL},
    {200000, 128, 64, PGKM_COVARIANCE_FULL},
    {1000000, 128, 64, PGKM_COVARIANCE_TIED},
    {1000000, 32, 1024, PGKM_COVARIANCE_TIED, 1, overlapping},
};

const char *name_of(PgkmCovariance type)
{
    static const char *const names[] = {"full", "tied", "diag", "spherical"};
    return names[type];
}

// A mixture as a fit's first iterations meet it, with room for its sums: means at rows of the data, all factors alike.
template <typename T>
struct Setting {
    Setting(const MixtureRow &row, const T *values)
        : d(static_cast<std::size_t>(row.d)), k(static_cast<std::size_t>(row.k)), weights(k, -3.0),
          means(values, values + k * d),
          factors(square(row) ? (row.type == PGKM_COVARIANCE_FULL ? k : 1) * d * d : k * d,
                  square(row) ? 0.0 : row.factor),
          determinants(k), masses(k), first(k * d), second(k * (row.type == PGKM_COVARIANCE_FULL ? d * (d + 1) / 2 : d))
    {
        for (std::size_t i = 0; square(row) && i < factors.size() / d; ++i)
            factors[i / d * d * d + i % d * (d + 1)] = row.factor;
    }
    static bool square(const MixtureRow &row)
    {
        return row.type == PGKM_COVARIANCE_FULL || row.type == PGKM_COVARIANCE_TIED;
    }
    PgkmMixture mixture(const MixtureRow &row) const
    {
        return {row.k, row.type, weights.data(), means.data(), factors.data(), determinants.data(), nullptr};
    }
    PgkmMixtureSums sums() { return {0.0, masses.data(), first.data(), second.data(), nullptr}; }

    std::size_t d, k;
    std::vector<double> weights, means, factors, determinants, masses, first, second;
};

// `groups` problems of as many rows each in one call.
template <typename T>
void time_shape(const MixtureRow &row, PgkmElement element)
{
    const std::vector<float> source = host_rows(row.n, row.d);
    const std::vector<T> values(source.begin(), source.end());
    std::vector<Setting<T>> settings;
    settings.reserve(static_cast<std::size_t>(row.groups));
    std::vector<PgkmProblem> problems;
    std::vector<PgkmMixture> mixtures;
    std::vector<PgkmMixtureSums> sums;
    for (std::int64_t g = 0; g < row.groups; ++g) {
        const std::int64_t n = row.n / row.groups;
        settings.emplace_back(row, values.data() + g * n * row.d);
        PgkmProblem problem{};
        problem.first_row = g * n;
        problem.n_rows = n;
        problems.push_back(problem);
        mixtures.push_back(settings.back().mixture(row));
        sums.push_back(settings.back().sums());
    }
    Session session({values.data(), element, row.n, row.d, nullptr}, 0);
    std::vector<double> times;
    for (int repeat = 0; repeat < 11; ++repeat) {
        const double begin = seconds();
        require(session.table->em_step(session.data, problems.data(), row.groups, mixtures.data(), sums.data(),
                                       &session.error),
                session.error);
        times.push_back((seconds() - begin) * 1e3);
    }
    std::printf("%s,%s,%lld,%d,%d,%lld,%g,%.3f,%.3f\n", name_of(row.type),
                element == PGKM_FLOAT32 ? "float32" : "float64", static_cast<long long>(row.n), row.d, row.k,
                static_cast<long long>(row.groups), row.factor, times[0], median(times));
    std::fflush(stdout);
}

} // namespace

void mixture(const std::vector<int> &which)
{
    std::printf("covariance_type,element,n,d,k,groups,factor,first_ms,em_step_ms\n");
    for (int i = 0; i < static_cast<int>(std::size(mixture_rows)); ++i) {
        if (std::find(which.begin(), which.end(), i) == which.end())
            continue;
        time_shape<float>(mixture_rows[i], PGKM_FLOAT32);
        time_shape<double>(mixture_rows[i], PGKM_FLOAT64);
    }
}

} // namespace bench
