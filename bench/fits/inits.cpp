// inits.cpp - whole fits with each init, over many seeds.
#include "inits.hpp"

#include <cstdio>
#include <ctime>
#include <numeric>
#include <string>
#include <utility>

#include "measure.hpp"

namespace bench {
namespace {

double processor_ms()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

std::string range(const Times &times, const char *format)
{
    std::string text;
    for (const double value : {times.least(), times.median(), times.most()}) {
        char number[32];
        std::snprintf(number, sizeof(number), format, value);
        text += (text.empty() ? "" : " / ") + std::string(number);
    }
    return text;
}

} // namespace

void compare_inits(const Line &line, const Rows &rows, const PgkmSettings &settings, int seeds)
{
    const bool on_cpu = settings.backend == PGKM_BACKEND_CPU;
    PgkmRequest request = {};
    request.points = {rows.values(), PGKM_FLOAT32, line.n, line.d, nullptr};
    request.k = line.k;
    request.settings = settings;
    request.want_labels = 1;
    pgkm_options_default(&request.kmeans);
    request.kmeans.max_iter = 1;
    const PgkmInit automatic = run(request).figures.init;

    pgkm_options_default(&request.kmeans);
    const std::pair<const char *, PgkmInit> inits[] = {{"k-means++", PGKM_INIT_KMEANS_PLUS_PLUS},
                                                       {"k-means||", PGKM_INIT_KMEANS_PARALLEL}};
    for (const auto &[name, init] : inits) {
        Times seeding, whole, inertia, iterations;
        request.kmeans.init = init;
        for (int seed = 0; seed < seeds; ++seed) {
            request.kmeans.seed = static_cast<std::uint64_t>(seed);
            const double begin = processor_ms();
            const Ended ended = run(request);
            const auto &seconds = ended.progress.seconds;
            const double ms = 1e3 * std::accumulate(std::begin(seconds), std::end(seconds), 0.0);
            // Each phase has its part of the processor time.
            const double rate = on_cpu ? (processor_ms() - begin) / ms : 1.0;
            seeding.add(rate * ms_of(ended, PGKM_SEEDING));
            whole.add(rate * ms);
            inertia.add(ended.figures.inertia);
            iterations.add(ended.figures.n_iter);
        }
        std::printf("| %s | %s%s | %s | %s | %.0f | %s |\n", line.name().c_str(), name, init == automatic ? " *" : "",
                    range(seeding, "%.0f").c_str(), range(whole, "%.0f").c_str(), iterations.median(),
                    range(inertia, "%.6g").c_str());
        std::fflush(stdout);
    }
}

} // namespace bench
