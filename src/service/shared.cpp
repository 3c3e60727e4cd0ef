#include "service/shared.hpp"

#include <cstdio>

#include "service/job.hpp"

namespace pgkm::service {

void Shared::add(Job *job)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    all_jobs_.insert(job);
}

void Shared::remove(Job *job)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    all_jobs_.erase(job);
}

std::int32_t Shared::jobs() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<std::int32_t>(all_jobs_.size());
}

void Shared::drop_idle_rows(const Device &device, std::chrono::milliseconds idle, const Job *except)
{
    // Under the lock no job can end; a job that is at work is left alone, not waited for.
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Job *job : all_jobs_)
        if (job != except)
            job->drop_if_idle(device, idle);
}

PgkmServiceCounts Shared::counts() const
{
    PgkmServiceCounts counts = {};
    counts.all.ordinal = -1;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Device &device : devices.all()) {
        const Scheduler::Counts now = device.scheduler.counts();
        PgkmDeviceCounts &own = counts.devices[counts.n_devices++];
        own = {device.ordinal, 0, now.running, now.waiting, now.leased, now.memory};
        for (const Job *job : all_jobs_)
            own.jobs += job->is_on(device) ? 1 : 0;
        counts.all.jobs += own.jobs;
        counts.all.running += own.running;
        counts.all.waiting += own.waiting;
        counts.all.memory_held += own.memory_held;
        counts.all.memory_total += own.memory_total;
    }
    counts.requests = requests();
    counts.finished = finished.load();
    counts.failed = has_failed() ? 1 : 0;
    std::snprintf(counts.failure, sizeof counts.failure, "%s", failure_.c_str());
    return counts;
}

} // namespace pgkm::service
