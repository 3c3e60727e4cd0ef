// eigenvectors - what the components of a covariance matrix take, by the number of features.
//
//   eigenvectors [--threads N] [--repeats N] [D...]
//
// The moments of D + 100 random rows of D features, whose spread falls by three decades, are made first. Output:
// CSV, for all components and for 10: the least wall-clock time, and the least processor time of all threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "engine/api.h"

namespace {

struct Moments {
    std::int32_t d;
    PgkmRowMoments sums;
    std::vector<double> mean, cross;
};

void check(PgkmStatus status, const PgkmError &error)
{
    if (status == PGKM_OK)
        return;
    std::fprintf(stderr, "eigenvectors: %s\n", error.text);
    std::exit(1);
}

Moments moments_of_rows(std::int32_t d)
{
    const auto features = static_cast<std::size_t>(d);
    Moments made = {d, {}, std::vector<double>(features), std::vector<double>(features * (features + 1) / 2)};
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    std::vector<double> rows((features + 100) * features);
    for (std::size_t i = 0; i < rows.size(); ++i)
        rows[i] = normal(random) * std::pow(10.0, -3.0 * static_cast<double>(i % features) / d);
    PgkmError error;
    made.sums = {0, 0.0, d, made.mean.data(), made.cross.data()};
    check(pgkm_moments_add(&made.sums, rows.data(), nullptr, d + 100, nullptr, &error), error);
    return made;
}

double milliseconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void time_components(const Moments &moments, int components, int threads, int repeats)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_PCA;
    request.points.n = moments.sums.n;
    request.mass = moments.sums.mass;
    request.points.d = moments.d;
    request.mean = moments.mean.data();
    request.cross = moments.cross.data();
    request.pca.n_components = components;
    request.settings.cpu_threads = threads;
    double wall = HUGE_VAL, cpu = HUGE_VAL;
    for (int i = 0; i < repeats; ++i) {
        const double wall_before = milliseconds(CLOCK_MONOTONIC), cpu_before = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
        PgkmJob *job = nullptr;
        PgkmError error;
        PgkmResult result;
        check(pgkm_job_start(&request, &job, &error), error);
        while (pgkm_job_wait(job, 1000) == 0) {}
        wall = std::min(wall, milliseconds(CLOCK_MONOTONIC) - wall_before);
        cpu = std::min(cpu, milliseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before);
        check(pgkm_job_result(job, 0, &result, &error), error);
        pgkm_job_free(job);
    }
    std::printf("%d,%s,%.1f,%.1f\n", moments.d, components == 0 ? "all" : std::to_string(components).c_str(), wall,
                cpu);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    int threads = 0, repeats = 3;
    std::vector<int> sizes;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--threads" && i + 1 < argc)
            threads = std::stoi(argv[++i]);
        else if (argument == "--repeats" && i + 1 < argc)
            repeats = std::stoi(argv[++i]);
        else
            sizes.push_back(std::stoi(argument));
    }
    if (sizes.empty())
        sizes = {128, 512, 1024, 2048, 4096};
    std::printf("d,components,wall_ms,cpu_ms\n");
    for (const int d : sizes) {
        const Moments moments = moments_of_rows(d);
        for (const int components : {0, 10})
            time_components(moments, components, threads, repeats);
    }
    return 0;
}
