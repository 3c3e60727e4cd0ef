// job.cpp - fits as jobs: a thread that the server's thread waits for in slices.
#include <algorithm>
#include <chrono>
#include <set>

#include "engine/backends/registry.hpp"
#include "engine/api.h"
#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "engine/kmeans/fit.hpp"
#include "engine/job/job.hpp"
#include "engine/kmeans/packed_models.hpp"
#include "numeric/signals.hpp"
#include "engine/job/work.hpp"

using pgkm::Error;
using pgkm::Fits;
using pgkm::Model;
using pgkm::Monitor;

namespace {

struct FitJob : PgkmJob {
    explicit FitJob(const PgkmFitRequest &wanted) : request(wanted) {}
    void run() override
    {
        fits = pgkm::fit_models(request, monitor);
        if (request.n_groups == 0)
            return;
        for (const Model &model : fits.models)
            groups.add(model);
        fits.models.clear();
    }

    PgkmFitRequest     request;
    Fits               fits;
    pgkm::PackedModels groups; // instead of the models there
};

std::mutex          jobs_mutex;
std::set<PgkmJob *> jobs; // every job not yet freed

void run(PgkmJob *job) noexcept
{
    PgkmError error = {};
    pgkm::guarded(&error, [&] { job->run(); });
    job->monitor.end();
    const std::lock_guard<std::mutex> lock(job->mutex);
    job->error = error;
    job->done = true;
    job->ended.notify_all();
}

} // namespace

namespace pgkm {

PgkmJob *start_job(std::unique_ptr<PgkmJob> fresh, bool in_caller)
{
    {
        const std::lock_guard<std::mutex> lock(jobs_mutex);
        jobs.insert(fresh.get());
    }
    PgkmJob *started = fresh.release();
    try {
        const pgkm::SignalsBlocked guard;
        if (in_caller)
            run(started);
        else
            started->thread = std::thread(run, started);
    } catch (...) {
        pgkm_job_free(started);
        throw;
    }
    return started;
}

void require_done(PgkmJob *job)
{
    const std::lock_guard<std::mutex> lock(job->mutex);
    if (!job->done)
        throw Error(PGKM_INTERNAL, "the job has not ended");
    if (job->error.status != PGKM_OK)
        throw Error(job->error.status, job->error.text);
}

} // namespace pgkm

PgkmStatus pgkm_fit_start(const PgkmFitRequest *request, PgkmJob **job, PgkmError *error)
{
    *job = nullptr;
    return pgkm::guarded(error, [&] {
        const bool in_caller =
            pgkm::is_brief(pgkm::work_of(*request)) && request->settings.backend != PGKM_BACKEND_CUDA;
        *job = pgkm::start_job(std::make_unique<FitJob>(*request), in_caller);
    });
}

int pgkm_job_wait(PgkmJob *job, int milliseconds)
{
    std::unique_lock<std::mutex> lock(job->mutex);
    return job->ended.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return job->done; }) ? 1 : 0;
}

void pgkm_job_progress(PgkmJob *job, PgkmJobProgress *progress)
{
    *progress = job->monitor.progress();
}

PgkmStatus pgkm_job_result(PgkmJob *job, PgkmFitResult *result, PgkmError *error)
{
    return pgkm_job_group_result(job, 0, result, error);
}

PgkmStatus pgkm_job_group_result(PgkmJob *job, int64_t group, PgkmFitResult *result, PgkmError *error)
{
    *result = {};
    if (pgkm::guarded(error, [&] { pgkm::require_done(job); }) != PGKM_OK)
        return error->status;
    const auto &fit = *static_cast<const FitJob *>(job);
    const Fits &fits = fit.fits;
    const auto n_models = static_cast<std::int64_t>(fits.models.size());
    if (group >= 0 && group < fit.groups.size())
        fit.groups.get(group, result);
    else if (group >= 0 && group < n_models)
        pgkm::describe(fits.models[static_cast<std::size_t>(group)], result);
    else
        return pgkm::set_error(error, PGKM_INTERNAL, "the job has no such group");
    result->backend = fits.backend.c_str();
    std::snprintf(result->notice, sizeof result->notice, "%s", fits.notice.c_str());
    return pgkm::set_error(error, PGKM_OK, "");
}

void pgkm_job_stop(PgkmJob *job)
{
    job->monitor.cancel();
    if (job->thread.joinable())
        job->thread.join();
}

void pgkm_job_free(PgkmJob *job)
{
    if (job == nullptr)
        return;
    {
        const std::lock_guard<std::mutex> lock(jobs_mutex);
        jobs.erase(job);
    }
    pgkm_job_stop(job);
    delete job;
}

void pgkm_stop_all_jobs(void)
{
    const std::lock_guard<std::mutex> lock(jobs_mutex);
    for (PgkmJob *job : jobs)
        pgkm_job_stop(job);
}

int pgkm_wants_device(const PgkmFitRequest *request)
{
    return pgkm::wants_device(request->settings, pgkm::work_of(*request)) ? 1 : 0;
}

namespace {

// What every fit takes, whatever its size.
constexpr double fixed_bytes = 1e6;

bool copies_rows(const PgkmOptions &options) { return options.standardize != 0 || options.metric == PGKM_COSINE; }

double value_size(PgkmElement element) { return element == PGKM_FLOAT32 ? 4.0 : 8.0; }

double working_bytes(std::int64_t n, std::int32_t d, std::int64_t k, PgkmElement element, const PgkmOptions &options,
                     bool weighted)
{
    // Per row: label, previous label, nearest distance, two bounds; D^2 masks and weights while
    // seeding. Per centroid coordinate: the value, its predecessor, integer totals, packed copies.
    const double clusters = static_cast<double>(std::min(k, n));
    const double size = value_size(element);
    const double per_row = 40.0 + (weighted ? 8.0 : 0.0) + (copies_rows(options) ? size * d : 0.0);
    return static_cast<double>(n) * per_row + clusters * d * (64.0 + 2.0 * size);
}

std::uint64_t to_estimate(double bytes) { return bytes < 1e19 ? static_cast<std::uint64_t>(bytes) : UINT64_MAX; }

} // namespace

uint64_t pgkm_fit_estimate(int64_t n, int32_t d, int64_t k, PgkmElement element, const PgkmOptions *options,
                           int32_t has_weights)
{
    return to_estimate(working_bytes(n, d, k, element, *options, has_weights != 0) + fixed_bytes);
}

uint64_t pgkm_group_estimate(const PgkmFitRequest *request, const PgkmGroup *group)
{
    const PgkmPoints &points = request->points;
    const bool weighted = group->weights != nullptr;
    // The rows side by side: what is copied for its transformation is counted already.
    const double row = (copies_rows(request->options) ? 0.0 : value_size(points.element) * points.d) +
                       (weighted ? 8.0 : 0.0);
    return to_estimate(static_cast<double>(group->n) * row +
                       working_bytes(group->n, points.d, group->k, points.element, request->options, weighted));
}

int64_t pgkm_sweep_last(const PgkmFitRequest *request)
{
    return pgkm::last_fit(*request);
}

uint64_t pgkm_request_estimate(const PgkmFitRequest *request)
{
    const PgkmPoints &points = request->points;
    if (request->n_groups == 0) {
        const double swept =
            request->k_last == 0 ? 0.0 : static_cast<double>(pgkm::last_fit(*request) - request->k) * sizeof(Model);
        const double fit = working_bytes(points.n, points.d, std::max(request->k, request->k_last), points.element,
                                         request->options, points.weights != nullptr);
        return to_estimate(fixed_bytes + fit + swept);
    }
    double bytes = fixed_bytes;
    for (int64_t g = 0; g < request->n_groups; ++g)
        bytes += static_cast<double>(pgkm_group_estimate(request, &request->groups[g]));
    return to_estimate(bytes);
}
