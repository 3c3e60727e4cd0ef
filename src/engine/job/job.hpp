// job.hpp - a job of api.h: a thread that works on a request, a cancel flag, an end to wait for.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/api.h"
#include "engine/job/algorithm.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"

struct PgkmJob {
    PgkmJob(const pgkm::Algorithm &does, const PgkmRequest &wanted) : algorithm(does), request(wanted) {}

    const pgkm::Algorithm &algorithm;
    const PgkmRequest request;

    std::thread thread;
    pgkm::Monitor monitor;
    std::mutex mutex; // guards what follows
    std::condition_variable ended;
    bool done = false;
    PgkmError error = {};
    pgkm::Outcome outcome;
};

namespace pgkm {

// Runs a request in a thread of its own, or at once in the caller's: then it has ended when this
// returns. Throws when no thread could be started.
PgkmJob *start_job(const Algorithm &algorithm, const PgkmRequest &request, bool in_caller);

} // namespace pgkm
