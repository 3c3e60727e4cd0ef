// mixture - what an iteration of EM, and a PCA, take on the CPU backend.
//
//   mixture --points FILE --n N --d D [--threads N] [--repeats N]
//           --means FILE --k K --type full|tied|diag|spherical --precision P   or   --pca 1
//
// Files are raw float64, row-major. Ten iterations (tol = 0) from the given means, equal weights and
// P times the identity as precisions. Output: CSV, medians over the repeats; iteration_ms is wall-clock
// time and cpu_ms processor time of all threads, per iteration (or of the PCA).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "engine/api.h"

namespace {

using Arguments = std::map<std::string, std::string>;

[[noreturn]] void fail(const std::string &text)
{
    std::fprintf(stderr, "mixture: %s\n", text.c_str());
    std::exit(1);
}

void check(PgkmStatus status, const PgkmError &error)
{
    if (status != PGKM_OK)
        fail(error.text);
}

std::vector<double> read_file(const std::string &name, std::int64_t count)
{
    std::vector<double> values(static_cast<std::size_t>(count));
    std::ifstream file(name, std::ios::binary);
    if (!file.read(reinterpret_cast<char *>(values.data()), static_cast<std::streamsize>(values.size() * 8)))
        fail("cannot read " + name);
    return values;
}

double seconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Time {
    double wall_ms, cpu_ms;
};

// Runs a job to its end; the time of what it does between loading and labelling, per iteration.
Time time_of(const PgkmRequest &request, double iterations, bool whole)
{
    PgkmJob *job = nullptr;
    PgkmError error = {};
    PgkmJobProgress progress;
    const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    check(pgkm_job_start(&request, &job, &error), error);
    while (pgkm_job_wait(job, 1000) == 0) {}
    const double all = seconds(CLOCK_MONOTONIC) - wall, used = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    pgkm_job_progress(job, &progress);
    const double part = whole ? all : progress.seconds[PGKM_ITERATING];
    pgkm_job_free(job);
    // The processor time of the whole job, in the proportion of the wall-clock time.
    return {1e3 * part / iterations, 1e3 * used * part / all / iterations};
}

PgkmSettings settings_of(Arguments &arguments)
{
    PgkmSettings settings = {};
    settings.backend = PGKM_BACKEND_CPU;
    settings.device = -1;
    settings.cpu_threads = arguments.count("threads") != 0 ? std::stoi(arguments["threads"]) : 0;
    return settings;
}

PgkmCovariance type_of(const std::string &name)
{
    for (int type = PGKM_COVARIANCE_FULL; type <= PGKM_COVARIANCE_SPHERICAL; ++type)
        if (name == pgkm_covariance_name(static_cast<PgkmCovariance>(type)))
            return static_cast<PgkmCovariance>(type);
    fail("there is no covariance type " + name);
}

Time time_mixture(Arguments &arguments, const PgkmPoints &points)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_MIXTURE;
    request.points = points;
    request.k = std::stoll(arguments["k"]);
    request.settings = settings_of(arguments);
    PgkmMixtureOptions &options = request.mixture;
    pgkm_mixture_options_default(&options);
    options.covariance_type = type_of(arguments["type"]);
    options.tol = 0.0;
    options.max_iter = 10;
    const auto k = static_cast<std::int32_t>(request.k), d = points.d;
    const std::vector<double> means = read_file(arguments["means"], std::int64_t{k} * d);
    const std::vector<double> weights(static_cast<std::size_t>(k), 1.0 / k);
    std::vector<double> precisions(static_cast<std::size_t>(pgkm_covariance_size(options.covariance_type, k, d)));
    const bool square =
        options.covariance_type == PGKM_COVARIANCE_FULL || options.covariance_type == PGKM_COVARIANCE_TIED;
    for (std::size_t i = 0; i < precisions.size(); ++i)
        if (!square || i / static_cast<std::size_t>(d) % static_cast<std::size_t>(d) == i % static_cast<std::size_t>(d))
            precisions[i] = std::stod(arguments["precision"]);
    options.weights_init = {weights.data(), 1, {k, 0, 0}};
    options.means_init = {means.data(), 2, {k, d, 0}};
    PgkmGiven &given = options.precisions_init;
    given.values = precisions.data();
    given.dimensions = pgkm_covariance_shape(options.covariance_type, k, d, given.extent);
    return time_of(request, options.max_iter, false);
}

Time time_pca(Arguments &arguments, const PgkmPoints &points)
{
    PgkmRequest request = {};
    request.algorithm = PGKM_PCA;
    request.points = points;
    request.settings = settings_of(arguments);
    return time_of(request, 1.0, true);
}

} // namespace

int main(int argc, char **argv)
{
    Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2)
        arguments[argv[i] + 2] = argv[i + 1];
    const std::int64_t n = std::stoll(arguments["n"]);
    const std::int32_t d = std::stoi(arguments["d"]);
    const std::vector<double> rows = read_file(arguments["points"], n * d);
    const PgkmPoints points = {rows.data(), PGKM_FLOAT64, n, d, nullptr};
    const bool pca = arguments.count("pca") != 0;
    std::vector<double> wall, cpu;
    const int repeats = arguments.count("repeats") != 0 ? std::stoi(arguments["repeats"]) : 3;
    for (int i = 0; i < repeats; ++i) {
        const Time time = pca ? time_pca(arguments, points) : time_mixture(arguments, points);
        wall.push_back(time.wall_ms);
        cpu.push_back(time.cpu_ms);
    }
    for (std::vector<double> *times : {&wall, &cpu})
        std::sort(times->begin(), times->end());
    std::printf("n,d,iteration_ms,cpu_ms\n%lld,%d,%.3f,%.3f\n", static_cast<long long>(n), d, wall[wall.size() / 2],
                cpu[cpu.size() / 2]);
    return 0;
}
