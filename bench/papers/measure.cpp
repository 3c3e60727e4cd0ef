// measure.cpp (papers) - times calls, and writes a line for each.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>
#include <stdexcept>

#include "numeric/contract.hpp"

namespace bench {

Wanted wanted;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t few_rows = 1024;
Clock::time_point last_call; // when it ended

// Of one thread the processor time, which other programs do not lengthen.
double milliseconds_now()
{
    timespec now;
    clock_gettime(on_cpu() && options.threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

template <typename Body>
double milliseconds(Body &&body)
{
    const double begin = milliseconds_now();
    body();
    return milliseconds_now() - begin;
}

// At least three calls, and at most thirty in a tenth of a second; sorted. Some before do not count: a GPU that was
// idle has its full clock after a fifth of a second. A call of seconds is the only one.
template <typename Body>
std::vector<double> repeat(Body &&body)
{
    const bool was_idle = Clock::now() - last_call > std::chrono::milliseconds(20);
    std::vector<double> times = {milliseconds(body)};
    if (times[0] > 2000.0)
        return times;
    for (double warm = times[0]; warm < (was_idle && !on_cpu() ? 200.0 : 20.0);)
        warm += milliseconds(body);
    times.clear();
    for (double all = 0.0; times.size() < 3 || (times.size() < 30 && all < 100.0); all += times.back())
        times.push_back(milliseconds(body));
    std::sort(times.begin(), times.end());
    last_call = Clock::now();
    return times;
}

double median(const std::vector<double> &sorted)
{
    return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2.0;
}

const char *forced(const char *name)
{
    return std::strcmp(name, "-") == 0 ? nullptr : name;
}

// The names that there are, or "auto".
std::string text_of(const PgkmTuning &tuning)
{
    std::string text;
    for (const char *name : {tuning.execution, tuning.assignment, tuning.feature_sum, tuning.mass_sum})
        if (name != nullptr)
            text += (text.empty() ? "" : " ") + std::string(name);
    return text.empty() ? "auto" : text;
}

PgkmTuning tuning_of(const By &by)
{
    return {forced(by.assignment), forced(by.execution), forced(by.feature_sum), forced(by.mass_sum), nullptr, nullptr};
}

const char *device_name()
{
    static PgkmDevice device = {};
    std::int32_t count = 0;
    PgkmError error;
    if (device.name[0] == '\0')
        check(options.backend->probe(&device, 1, &count, &error), error);
    return device.name;
}

} // namespace

bool is_wanted(const std::string &figure)
{
    return figure.find(wanted.figures) != std::string::npos;
}

Measured::Measured(const std::string &figure, const Set &set, const By &by, std::uint64_t device_limit)
    : figure_(figure), set_(set), by_(by),
      rows_({set.values, PGKM_FLOAT32, set.n, set.d, nullptr}, tuning_of(by), device_limit)
{
    std::vector<double> min(static_cast<std::size_t>(set.d)), max(min.size());
    PgkmSummary summary = {min.data(), max.data(), nullptr, nullptr, 1.0};
    check(options.backend->summarise(rows_.data, &rows_.all, 1, 0, &summary, &rows_.error), rows_.error);
    for (std::size_t f = 0; f < min.size(); ++f)
        scales_.push_back(pgkm::sum_scale(min[f], max[f], 1.0));
}

// The works begin from the first k rows, or do not say; equal ones would leave clusters empty.
std::vector<float> Measured::first_rows(std::int32_t k) const
{
    std::set<std::vector<float>> seen;
    std::vector<float> rows;
    for (std::int64_t i = 0; i < set_.n && seen.size() < static_cast<std::size_t>(k); ++i) {
        std::vector<float> row(set_.values + i * set_.d, set_.values + (i + 1) * set_.d);
        if (seen.insert(row).second)
            rows.insert(rows.end(), row.begin(), row.end());
    }
    if (seen.size() < static_cast<std::size_t>(k))
        throw std::runtime_error("there are fewer different rows than clusters");
    return rows;
}

PgkmProblem Measured::problem_of(std::vector<float> &centroids) const
{
    PgkmProblem problem = rows_.all;
    problem.k = static_cast<std::int32_t>(centroids.size()) / set_.d;
    problem.centroids = centroids.data();
    problem.feature_scales = scales_.data();
    return problem;
}

std::pair<double, std::int32_t> Measured::time_fit(std::int32_t k, std::int32_t iterations)
{
    const std::vector<float> start = first_rows(k);
    std::int32_t run = 0;
    const auto call = [&](std::int32_t most) {
        std::vector<float> centroids = start;
        PgkmProblem problem = problem_of(centroids);
        const PgkmFitParams params = {PGKM_L2, most};
        const double ms = milliseconds(
            [&] { check(options.backend->fit(rows_.data, &problem, 1, &params, &rows_.error), rows_.error); });
        run = problem.n_iter;
        return ms / run;
    };
    call(1); // kernels are loaded
    const double each_ms = call(2);
    if (each_ms * iterations > wanted.seconds * 1e3)
        iterations = std::max(2, static_cast<int>(wanted.seconds * 1e3 / each_ms));
    const double ms = median(repeat([&] { call(iterations); }));
    return {ms, run};
}

bool Measured::is_forced() const
{
    return forced(by_.assignment) != nullptr;
}

void Measured::fit(std::int32_t k, std::int32_t iterations)
{
    const auto [ms, run] = time_fit(k, iterations);
    write("fit", k, ms, run);
}

Measured::Call Measured::assigning(bool totals, bool masses, std::vector<std::int32_t> *labels)
{
    return [=, this](const PgkmProblem &problem) {
        const auto k = static_cast<std::size_t>(problem.k);
        totals_.resize(k * static_cast<std::size_t>(set_.d));
        masses_.resize(k);
        PgkmAssignment out = {};
        out.labels = labels == nullptr ? nullptr : labels->data();
        out.totals = totals ? totals_.data() : nullptr;
        out.masses = masses ? masses_.data() : nullptr;
        check(options.backend->assign(rows_.data, &problem, 1, &out, &rows_.error), rows_.error);
    };
}

double Measured::stage(const PgkmProblem &problem, const Call &call, const Call &without)
{
    PgkmProblem few = problem;
    few.n_rows = std::min(few_rows, problem.n_rows / 2);
    const auto least = [](const Call &of, const PgkmProblem &rows) { return repeat([&] { of(rows); })[0]; };
    double ms = least(call, problem) - least(call, few);
    if (without)
        ms -= least(without, problem) - least(without, few);
    return std::max(ms, 0.0);
}

void Measured::assignment(std::int32_t k)
{
    std::vector<float> centroids = first_rows(k);
    write("assignment", k, stage(problem_of(centroids), assigning(false, false), nullptr), 1);
}

void Measured::feature_sum(std::int32_t k)
{
    std::vector<float> centroids = first_rows(k);
    write("feature_sum", k, stage(problem_of(centroids), assigning(true, false), assigning(false, false)), 1);
}

void Measured::mass_sum(std::int32_t k)
{
    std::vector<float> centroids = first_rows(k);
    write("mass_sum", k, stage(problem_of(centroids), assigning(false, true), assigning(false, false)), 1);
}

void Measured::stages(std::int32_t k)
{
    std::vector<float> centroids = first_rows(k);
    write("stages", k, stage(problem_of(centroids), assigning(true, true), nullptr), 1);
}

void Measured::find(std::int32_t k)
{
    const auto [ms, run] = time_fit(k, 30);
    std::vector<float> centroids = first_rows(k);
    const double sums = stage(problem_of(centroids), assigning(true, true), assigning(false, false));
    write("find", k, std::max(ms / run - sums, 0.0), 1);
}

void Measured::load()
{
    write("load", 0, median(repeat([&] { rows_.reload(); })), 0);
}

void Measured::seed(std::int32_t k, PgkmInit init, const char *name)
{
    std::vector<float> centroids(static_cast<std::size_t>(k) * static_cast<std::size_t>(set_.d));
    const PgkmProblem all = problem_of(centroids);
    const PgkmSeedParams params = {init, 1, 0, 0};
    write(name, k, median(repeat([&] {
              PgkmProblem problem = all;
              check(options.backend->seed(rows_.data, &problem, 1, &params, &rows_.error), rows_.error);
          })),
          0);
}

void Measured::labels(std::int32_t k)
{
    std::vector<float> centroids = first_rows(k);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(set_.n));
    const Call call = assigning(false, false, &labels);
    write("labels", k, median(repeat([&] { call(problem_of(centroids)); })), 1);
}

void Measured::write(const char *what, std::int32_t k, double ms, std::int32_t iterations)
{
    std::printf("%s,%s,%lld,%d,%d,%s,%s,%d,%s,%s,%.5g,%d,%s\n", figure_.c_str(), set_.name.c_str(),
                static_cast<long long>(set_.n), set_.d, k, options.backend->name, device_name(), options.threads,
                text_of(tuning_of(by_)).c_str(), what, ms, iterations, text_of(rows_.chosen).c_str());
    std::fflush(stdout);
}

void each(const std::string &figure, const Set &set, const std::vector<By> &list,
          const std::function<void(Measured &)> &body, std::uint64_t device_limit)
{
    if (!is_wanted(figure))
        return;
    const std::vector<By> of_cpu = {{"direct", "-", "-", "-"}, by_choice};
    const Clock::time_point begin = Clock::now();
    for (const By &by : on_cpu() ? of_cpu : list)
        try {
            Measured measured(figure, set, by, device_limit);
            body(measured);
        } catch (const std::exception &error) {
            std::fprintf(stderr, "papers: %s, %s: %s\n", figure.c_str(), text_of(tuning_of(by)).c_str(), error.what());
        }
    std::fprintf(stderr, "papers: %s, %s %lld x %d: %.1f s\n", figure.c_str(), set.name.c_str(),
                 static_cast<long long>(set.n), set.d, std::chrono::duration<double>(Clock::now() - begin).count());
}

} // namespace bench
