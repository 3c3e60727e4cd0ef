// job.hpp - what the jobs of api.h share: a thread, a cancel flag, an end to wait for.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/api.h"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

// One job; each kind of work derives from it and keeps its request and its result.
struct PgkmJob {
    virtual ~PgkmJob() = default;

    // The work. Throws Error; looks at the monitor's cancel flag often enough for the 100 ms promised.
    virtual void run() = 0;

    std::thread             thread;
    pgkm::Monitor           monitor;
    std::mutex              mutex; // guards what follows
    std::condition_variable ended;
    bool                    done = false;
    PgkmError               error = {};
};

namespace pgkm {

// Runs the job in a thread of its own, or at once in the caller's: then it has ended when this
// returns. Throws when no thread could be started.
PgkmJob *start_job(std::unique_ptr<PgkmJob> job, bool in_caller);

// Throws what ended the job, or Error(PGKM_INTERNAL) when it still runs.
void require_done(PgkmJob *job);

template <typename T, typename Allocator>
const T *data_or_null(const std::vector<T, Allocator> &values)
{
    return values.empty() ? nullptr : values.data();
}

} // namespace pgkm
