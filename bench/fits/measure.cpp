// measure.cpp - times the phases of whole jobs of the engine.
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace bench {

Ended run(const PgkmRequest &request)
{
    PgkmError error = {};
    PgkmJob *started = nullptr;
    const auto check = [&](PgkmStatus status) {
        if (status != PGKM_OK)
            throw std::runtime_error(error.text);
    };
    check(pgkm_job_start(&request, &started, &error));
    const std::unique_ptr<PgkmJob, decltype(&pgkm_job_free)> job(started, pgkm_job_free);
    while (pgkm_job_wait(job.get(), 1000) == 0) {}
    Ended ended = {};
    check(pgkm_job_result(job.get(), 0, &ended.figures, &error));
    pgkm_job_progress(job.get(), &ended.progress);
    return ended;
}

double ms_of(const Ended &ended, PgkmPhase phase)
{
    return 1e3 * ended.progress.seconds[phase];
}

namespace {

constexpr double long_ms = 5000.0; // of seedings and whole fits: once is enough

// The jobs of one line.
class Jobs {
  public:
    Jobs(const Line &line, const Rows &rows, const PgkmSettings &settings)
        : first_(rows.centroids(), rows.centroids() + std::int64_t{line.k} * line.d),
          resident_(pgkm_resident_create(), pgkm_resident_free)
    {
        request_.points = {rows.values(), PGKM_FLOAT32, line.n, line.d, nullptr};
        request_.k = line.k;
        request_.settings = settings;
        pgkm_options_default(&request_.kmeans);
    }

    // From the first centroids.
    Ended fit(int max_iter)
    {
        PgkmRequest request = staying();
        request.want_labels = max_iter == most_iterations ? 1 : 0;
        request.kmeans.init_centroids = {first_.data(), 2, {static_cast<std::int32_t>(request.k), request.points.d, 0}};
        request.kmeans.max_iter = max_iter;
        return run(request);
    }

    Ended seed(PgkmInit init, std::uint64_t seed)
    {
        PgkmRequest request = staying();
        request.kmeans.init = init;
        request.kmeans.seed = seed;
        request.kmeans.max_iter = 1;
        return run(request);
    }

    Ended whole(std::uint64_t seed)
    {
        PgkmRequest request = request_;
        request.want_labels = 1;
        request.kmeans.seed = seed;
        return run(request);
    }

    // The next job opens the backend, or loads the rows, again.
    void close() { pgkm_resident_drop(resident_.get()); }
    void unload() { pgkm_resident_unload(resident_.get()); }

  private:
    PgkmRequest staying() const
    {
        PgkmRequest request = request_;
        request.resident = resident_.get();
        request.kmeans.tol = 0.0;
        return request;
    }

    PgkmRequest request_ = {};
    std::vector<double> first_;
    std::unique_ptr<PgkmResident, decltype(&pgkm_resident_free)> resident_;
};

// Fills `times` with what body() takes: `repeats` times and more where it is short, after some that do not count, until
// a GPU that was idle has its full clock. Where one call is longer than `most_ms` it is the only one.
template <typename Body>
void repeat(int repeats, double most_ms, Times &times, Body &&body)
{
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds settled(200);
    constexpr int most_calls = 20;
    const auto call_until = [&](int least) {
        times.ms.clear();
        const Clock::time_point begin = Clock::now();
        while (times.size() < least || (times.size() < most_calls && Clock::now() - begin < settled))
            times.add(body());
    };
    call_until(1);
    if (times.ms[0] <= most_ms)
        call_until(repeats);
}

std::string plan_of(const PgkmTuning &chosen)
{
    std::string plan;
    for (const char *name : {chosen.execution, chosen.assignment, chosen.feature_sum, chosen.mass_sum})
        if (name != nullptr)
            plan += (plan.empty() ? "" : " ") + std::string(name);
    return plan;
}

void measure_fits(Jobs &jobs, const Wanted &wanted, Figures &figures)
{
    jobs.fit(most_iterations); // the driver's kernels are loaded now, its memory is there
    jobs.close();
    const Ended first = jobs.fit(most_iterations);
    figures.backend = first.figures.backend;
    figures.plan = plan_of(first.progress.chosen);
    figures.load_ms = ms_of(first, PGKM_LOADING);
    figures.first_ms = ms_of(first, PGKM_ITERATING);
    figures.iterations = first.figures.n_iter;
    repeat(wanted.repeats, wanted.most_ms, figures.fit, [&] {
        jobs.unload();
        const Ended ended = jobs.fit(most_iterations);
        figures.labels.add(ms_of(ended, PGKM_LABELLING));
        return ms_of(ended, PGKM_ITERATING);
    });
    figures.labels.keep_last(figures.fit.size()); // those of calls that count
    repeat(wanted.repeats, wanted.most_ms, figures.one, [&] {
        jobs.unload();
        return ms_of(jobs.fit(1), PGKM_ITERATING);
    });
    repeat(wanted.repeats, wanted.most_ms, figures.again,
           [&] { return ms_of(jobs.fit(most_iterations), PGKM_ITERATING); });
}

} // namespace

double Times::median() const
{
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2.0;
}

double Times::least() const
{
    return *std::min_element(ms.begin(), ms.end());
}
double Times::most() const
{
    return *std::max_element(ms.begin(), ms.end());
}

Figures measure(const Line &line, const Rows &rows, const PgkmSettings &settings, const Wanted &wanted)
{
    Figures figures;
    Jobs jobs(line, rows, settings);
    measure_fits(jobs, wanted, figures);
    for (const PgkmInit init : wanted.seedings)
        repeat(wanted.repeats, long_ms, figures.seedings[init], [&] {
            jobs.unload();
            return ms_of(jobs.seed(init, wanted.seed), PGKM_SEEDING);
        });
    jobs.close();
    if (wanted.whole) {
        repeat(wanted.repeats, long_ms, figures.whole.times, [&] {
            const Ended ended = jobs.whole(wanted.seed);
            const auto &seconds = ended.progress.seconds;
            figures.whole.seeding.add(ms_of(ended, PGKM_SEEDING));
            figures.whole.inertia = ended.figures.inertia;
            figures.whole.iterations = ended.figures.n_iter;
            return 1e3 * std::accumulate(std::begin(seconds), std::end(seconds), 0.0);
        });
        figures.whole.seeding.keep_last(figures.whole.times.size());
    }
    return figures;
}

} // namespace bench
