// mixture_groups - Gaussian mixtures of many groups in one job, on the CPU and on a device.
//
//   mixture_groups [--plugin FILE] [--threads N] [--repeats N]
//
// A group's rows are blobs, one for each component. Without a plugin the CPU alone. Output: CSV, medians
// over the repeats of the whole job and of its phases in milliseconds; worst: the largest relative
// difference of a mean or a log-likelihood from the CPU's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/api.h"

namespace {

using Arguments = std::map<std::string, std::string>;

struct Shape {
    std::int64_t groups, rows;
    std::int32_t d, k;
    PgkmCovariance type;
};

constexpr Shape shapes[] = {{10'000, 100, 4, 3, PGKM_COVARIANCE_FULL},
                            {10'000, 100, 4, 3, PGKM_COVARIANCE_DIAG},
                            {1'000, 1'000, 16, 4, PGKM_COVARIANCE_FULL},
                            {100, 100'000, 16, 8, PGKM_COVARIANCE_DIAG}};

void check(PgkmStatus status, const PgkmError &error)
{
    if (status == PGKM_OK)
        return;
    std::fprintf(stderr, "mixture_groups: %s\n", error.text);
    std::exit(1);
}

std::vector<float> blobs(const Shape &shape)
{
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> rows;
    for (std::int64_t i = 0; i < shape.groups * shape.rows; ++i)
        for (std::int32_t f = 0; f < shape.d; ++f)
            rows.push_back(8.0F * static_cast<float>(i % shape.k) + normal(random));
    return rows;
}

double now_ms()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

// One job, and what it took.
struct Run {
    Run(const PgkmRequest &request)
    {
        const double start = now_ms();
        PgkmError error = {};
        check(pgkm_job_start(&request, &job, &error), error);
        while (pgkm_job_wait(job, 1000) == 0) {}
        total_ms = now_ms() - start;
        pgkm_job_progress(job, &progress);
        for (std::int64_t group = 0; group < request.n_groups; ++group) {
            results.emplace_back();
            check(pgkm_job_result(job, group, &results.back(), &error), error);
        }
    }
    ~Run() { pgkm_job_free(job); }
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    PgkmJob *job = nullptr;
    PgkmJobProgress progress = {};
    double total_ms = 0.0;
    std::vector<PgkmResult> results;
};

double relative(double a, double b)
{
    return std::fabs(a - b) / std::max(std::fabs(b), 1.0);
}

double worst_difference(const Run &run, const Run &other)
{
    double worst = 0.0;
    for (std::size_t g = 0; g < run.results.size(); ++g) {
        const PgkmResult &a = run.results[g], &b = other.results[g];
        if (a.k != b.k || a.n_iter != b.n_iter)
            return INFINITY;
        worst = std::max(worst, relative(a.log_likelihood, b.log_likelihood));
        for (std::int64_t i = 0; i < std::int64_t{a.k} * a.d; ++i)
            worst = std::max(worst, relative(a.means[i], b.means[i]));
    }
    return worst;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void measure(const Shape &shape, PgkmRequest &request, const char *backend, int repeats, const Run &reference)
{
    std::vector<double> total, phases[PGKM_PHASES];
    double worst = 0.0;
    for (int i = 0; i < repeats; ++i) {
        const Run run(request);
        total.push_back(run.total_ms);
        for (int phase = 0; phase < PGKM_PHASES; ++phase)
            phases[phase].push_back(1e3 * run.progress.seconds[phase]);
        worst = std::max(worst, worst_difference(run, reference));
    }
    std::printf("%lld,%lld,%d,%d,%s,%s,%.1f,%.1f,%.1f,%.1f,%.1f,%.1e\n", static_cast<long long>(shape.groups),
                static_cast<long long>(shape.rows), shape.d, shape.k, pgkm_covariance_name(shape.type), backend,
                median(total), median(phases[PGKM_LOADING]), median(phases[PGKM_SEEDING]),
                median(phases[PGKM_ITERATING]), median(phases[PGKM_LABELLING]), worst);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2)
        arguments[argv[i] + 2] = argv[i + 1];
    const int repeats = arguments.count("repeats") != 0 ? std::stoi(arguments["repeats"]) : 3;
    std::printf("groups,rows,d,k,covariances,backend,total_ms,loading_ms,seeding_ms,iterating_ms,labelling_ms,worst\n");
    for (const Shape &shape : shapes) {
        const std::vector<float> rows = blobs(shape);
        std::vector<PgkmGroup> groups;
        for (std::int64_t group = 0; group < shape.groups; ++group)
            groups.push_back({rows.data() + group * shape.rows * shape.d, nullptr, shape.rows, shape.k});
        PgkmRequest request = {};
        request.algorithm = PGKM_MIXTURE;
        request.points = {nullptr, PGKM_FLOAT32, 0, shape.d, nullptr};
        request.groups = groups.data();
        request.n_groups = shape.groups;
        pgkm_mixture_options_default(&request.mixture);
        request.mixture.covariance_type = shape.type;
        request.settings.backend = PGKM_BACKEND_CPU;
        request.settings.device = -1;
        request.settings.cpu_threads = arguments.count("threads") != 0 ? std::stoi(arguments["threads"]) : 0;
        const Run reference(request);
        measure(shape, request, "cpu", repeats, reference);
        if (arguments.count("plugin") == 0)
            continue;
        request.settings.backend = PGKM_BACKEND_CUDA;
        request.settings.plugin = arguments["plugin"].c_str();
        const Run first(request); // the driver's start
        measure(shape, request, "cuda", repeats, reference);
    }
    return 0;
}
