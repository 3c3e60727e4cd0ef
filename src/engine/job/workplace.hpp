// workplace.hpp - where a job works: an open backend with its rows, and what was found out about them.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/backends/session.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// What an algorithm knows of rows that stay for the next job (of k-means: LoadedRows). The rows find it.
class KeptStatistics {
  public:
    // Of these rows; or nothing.
    std::shared_ptr<const void> of(const PgkmPoints &points) const
    {
        return same_points(points_, points) ? statistics_ : nullptr;
    }
    void keep(const PgkmPoints &points, std::shared_ptr<const void> statistics)
    {
        points_ = points;
        statistics_ = std::move(statistics);
    }

  private:
    PgkmPoints points_ = {};
    std::shared_ptr<const void> statistics_;
};

struct Workplace {
    Workplace(const BackendChoice &choice, const PgkmOpen &open) : threads(open.threads), session(choice, open) {}
    // In a context of the choice's backend that is open already.
    Workplace(const BackendChoice &choice, PgkmContext *context, std::int32_t threads,
              std::function<std::shared_ptr<PgkmContext>()> open_cpu)
        : threads(threads), session(choice, context, std::move(open_cpu))
    {
    }

    std::int32_t threads; // the backend's, and for work beside it

    KeptStatistics statistics;

    Session session; // closed first: it may use what the statistics own
};

// The options to open a backend with for a request.
inline PgkmOpen open_options(const PgkmRequest &request, std::int32_t threads, const PgkmHost &host)
{
    PgkmOpen open = {};
    open.threads = threads;
    open.most_threads = pgkm_cpu_threads(&request.settings);
    open.memory_limit = request.settings.memory_limit;
    open.device_memory_limit = request.settings.gpu_memory_limit;
    open.tuning = request.settings.tuning;
    open.host = host;
    open.segment = request.segment;
    return open;
}

} // namespace pgkm
