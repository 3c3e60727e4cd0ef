// workplace.hpp - where a job works: an open backend with its rows, and what was found out about them.
#pragma once

#include <memory>

#include "engine/backends/session.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct Workplace {
    Workplace(const BackendChoice &choice, const PgkmOpen &open) : threads(open.threads), session(choice, open) {}
    // In a context of the choice's backend that is open already.
    Workplace(const BackendChoice &choice, PgkmContext *context, std::int32_t threads)
        : threads(threads), session(choice, context)
    {
    }

    std::int32_t threads; // the backend's, and for work beside it

    // What k-means knows of the request's own rows (LoadedRows), where they stay for the next job; or nothing.
    std::shared_ptr<const void> statistics;

    Session session; // closed first: it may use what the statistics own
};

// The options to open a backend with for a request.
inline PgkmOpen open_options(const PgkmRequest &request, std::int32_t threads, const PgkmHost &host)
{
    PgkmOpen open = {};
    open.threads = threads;
    open.memory_limit = request.settings.memory_limit;
    open.device_memory_limit = request.settings.gpu_memory_limit;
    open.tuning = request.settings.tuning;
    open.host = host;
    open.segment = request.segment;
    return open;
}

} // namespace pgkm
