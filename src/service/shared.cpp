#include "service/shared.hpp"

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

void Shared::drop_idle_rows(std::chrono::milliseconds idle, const Job *except)
{
    // Under the lock no job can end; a job that is at work is left alone, not waited for.
    const std::lock_guard<std::mutex> lock(mutex_);
    for (Job *job : all_jobs_)
        if (job != except)
            job->drop_if_idle(idle);
}

} // namespace pgkm::service
