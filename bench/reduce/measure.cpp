// measure.cpp (reduce) - the time of calls that alternate.
#include "measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>
#include <random>
#include <stdexcept>

namespace bench {
namespace {

double milliseconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

struct Times {
    std::vector<double> processor, wall;
    std::vector<double> values;
    double first = 0.0;
    std::string failure;
};

void time_once(const Run &run, Times &times)
{
    const double begin = milliseconds(CLOCK_PROCESS_CPUTIME_ID), start = milliseconds(CLOCK_MONOTONIC);
    try {
        times.values = run.run();
    } catch (const std::exception &error) {
        times.failure = error.what();
        return;
    }
    times.wall.push_back(milliseconds(CLOCK_MONOTONIC) - start);
    times.processor.push_back(milliseconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

// The first call makes what the others find: its time stands apart.
void set_first_apart(Times &times)
{
    if (!times.failure.empty())
        return;
    times.first = times.wall[0];
    times.wall.clear();
    times.processor.clear();
}

double median(std::vector<double> list)
{
    std::sort(list.begin(), list.end());
    return list.empty() ? 0.0 : list[list.size() / 2];
}

// The greatest relative difference, as text; empty where there is nothing to compare.
std::string difference(const std::vector<double> &expected, const std::vector<double> &actual)
{
    if (expected.size() != actual.size() || expected.empty())
        return "";
    double most = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double off = std::fabs(actual[i] - expected[i]) / std::fmax(std::fabs(expected[i]), 1e-300);
        most = off <= most ? most : off; // a NaN counts
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.1e", most);
    return text;
}

} // namespace

std::vector<float> uniform(std::int64_t n)
{
    std::mt19937_64 random(7);
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float &value : values)
        value = static_cast<float>(random() >> 40) * 0x1p-24f;
    return values;
}

std::vector<Run> runs_of(const std::vector<float> &values, std::int32_t d, const Program &program)
{
    std::vector<Run> runs;
    const auto add = [&](const char *by, const std::shared_ptr<Loaded> &rows, const Program &which) {
        runs.push_back({by, [rows, which] { return rows->reduce(which); }, [rows] { return rows->layout(); }});
    };
    const auto rows = std::make_shared<Loaded>(values, d);
    Program exact = program;
    exact.exact = true;
    add("reduce", rows, program);
    add("exact", rows, exact);
    runs.push_back({"load", [rows] {
                        rows->reload();
                        return std::vector<double>();
                    }});
    for (const char *const *layout = options.backend->strategies("reduction_layout"); *layout != nullptr; ++layout)
        add("forced", std::make_shared<Loaded>(values, d, nullptr, *layout), program);
    return runs;
}

void add_plain(std::vector<Run> &runs, const std::function<std::vector<double>()> &loop)
{
    if (on_cpu())
        runs.push_back({"plain", loop});
}

void measure(const char *name, const std::vector<Run> &runs)
{
    std::vector<Times> times(runs.size());
    for (int repeat = 0; repeat < options.repeats + 1; ++repeat)
        for (std::size_t i = 0; i < runs.size(); ++i) {
            if (times[i].failure.empty())
                time_once(runs[i], times[i]);
            if (repeat == 0)
                set_first_apart(times[i]);
        }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (times[i].failure.empty())
            std::printf("%s,%s,%s,%.3f,%.3f,%.3f,%s\n", name, runs[i].by.c_str(), runs[i].layout().c_str(),
                        times[i].first, median(times[i].processor), median(times[i].wall),
                        i == 0 ? "" : difference(times[0].values, times[i].values).c_str());
        else
            std::fprintf(stderr, "reduce: %s, %s %s: %s\n", name, runs[i].by.c_str(), runs[i].layout().c_str(),
                         times[i].failure.c_str());
    }
    std::fflush(stdout);
}

} // namespace bench
