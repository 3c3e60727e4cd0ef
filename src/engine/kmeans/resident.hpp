// resident.hpp - rows that stay with a backend from fit to fit.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/backends/registry.hpp"
#include "engine/api.h"
#include "engine/kmeans/loaded_rows.hpp"
#include "engine/job/monitor.hpp"
#include "numeric/platform.hpp"
#include "engine/backends/session.hpp"

namespace pgkm {

// Where a fit works: an open backend, and the rows as loaded there.
template <typename T>
struct Workplace {
    Session       session;
    LoadedRows<T> rows;

    Workplace(const BackendChoice &choice, const PgkmOpen &open, const PgkmFitRequest &request, Monitor &monitor)
        : session(choice, open), rows(request, session, monitor)
    {
    }
};

// Passes a backend's questions on to the monitor of the job that uses it at the moment.
class HostRelay {
  public:
    PgkmHost host();
    void     lead_to(Monitor *monitor) { monitor_.store(monitor); }

  private:
    std::atomic<Monitor *> monitor_{nullptr};
};

} // namespace pgkm

// The workplace of the last fit, kept while the next ones ask for the same.
struct PgkmResident {
  public:
    template <typename T>
    pgkm::Workplace<T> &workplace(const pgkm::BackendChoice &choice, const PgkmOpen &open,
                                  const PgkmFitRequest &request, pgkm::Monitor &monitor);

    // After a failure the backend's context is not to be trusted.
    void drop();
    void rest() { relay_.lead_to(nullptr); }

    std::int32_t channel = 0;

  private:
    template <typename T>
    std::unique_ptr<pgkm::Workplace<T>> &slot();

    std::string                             key_; // what the workplace was made for
    pgkm::HostRelay                         relay_;
    std::unique_ptr<pgkm::Workplace<float>>  narrow_;
    std::unique_ptr<pgkm::Workplace<double>> wide_;
};
