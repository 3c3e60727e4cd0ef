// job.cpp - jobs: a thread that the server's thread waits for in short steps.
#include "engine/job/job.hpp"

#include <chrono>
#include <memory>
#include <set>

#include "numeric/error.hpp"
#include "numeric/signals.hpp"

using pgkm::Error;

namespace {

std::mutex jobs_mutex;
std::set<PgkmJob *> jobs; // every job not yet freed; guarded by the mutex

void run(PgkmJob *job) noexcept
{
    PgkmError error = {};
    pgkm::Outcome outcome;
    pgkm::guarded(&error, [&] { outcome = pgkm::run_request(job->algorithm, job->request, job->monitor); });
    job->monitor.end();
    const std::lock_guard<std::mutex> lock(job->mutex);
    job->error = error;
    job->outcome = std::move(outcome);
    job->done = true;
    job->ended.notify_all();
}

} // namespace

namespace pgkm {

PgkmJob *start_job(const Algorithm &algorithm, const PgkmRequest &request, bool in_caller)
{
    auto fresh = std::make_unique<PgkmJob>(algorithm, request);
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

} // namespace pgkm

int pgkm_job_wait(PgkmJob *job, int milliseconds)
{
    std::unique_lock<std::mutex> lock(job->mutex);
    return job->ended.wait_for(lock, std::chrono::milliseconds(milliseconds), [&] { return job->done; }) ? 1 : 0;
}

void pgkm_job_progress(PgkmJob *job, PgkmJobProgress *progress)
{
    *progress = job->monitor.progress();
}

PgkmStatus pgkm_job_result(PgkmJob *job, int64_t i, PgkmResult *result, PgkmError *error)
{
    *result = {};
    return pgkm::guarded(error, [&] {
        const std::lock_guard<std::mutex> lock(job->mutex);
        if (!job->done)
            throw Error(PGKM_INTERNAL, "the job has not ended");
        if (job->error.status != PGKM_OK)
            throw Error(job->error);
        const pgkm::Outcome &outcome = job->outcome;
        if (i < 0 || i >= outcome.models->size())
            throw Error(PGKM_INTERNAL, "the job has no such result");
        outcome.models->get(i, result);
        result->backend = outcome.backend;
        result->notice = outcome.notice.c_str();
    });
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
