// resident.hpp - rows that stay with the backends from job to job, whatever the algorithm.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "engine/job/monitor.hpp"
#include "engine/job/workplace.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Passes a backend's questions on to the monitor of the job that uses it at the moment.
class HostRelay {
  public:
    PgkmHost host();
    void lead_to(Monitor *monitor) { monitor_.store(monitor); }

  private:
    std::atomic<Monitor *> monitor_{nullptr};
};

} // namespace pgkm

// A workplace of the CPU and one of a device, each kept while jobs ask for it with the same settings.
struct PgkmResident {
  public:
    // The one for this choice; opened anew when the settings have changed. Throws Error.
    pgkm::Workplace &workplace(const pgkm::BackendChoice &choice, const PgkmOpen &open);

    void drop();
    void unload();

    pgkm::HostRelay relay;
    std::int32_t channel = 0;

  private:
    struct Place {
        std::string key; // what it was opened for
        std::unique_ptr<pgkm::Workplace> kept;
    };
    Place on_cpu_, on_device_;
};
