// devices.hpp - the devices that the service computes on, each with its own turns and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"
#include "service/server/scheduler.hpp"
#include "service/service.h"

namespace pgkm::service {

struct Device {
    Device(std::int32_t place, std::int32_t number, std::uint64_t memory)
        : index(place), ordinal(number), free_memory(memory), scheduler(1, memory)
    {
    }
    const std::int32_t index; // below PGKM_SERVICE_DEVICES
    const std::int32_t ordinal;
    const std::uint64_t free_memory; // when the service started, less what the driver and others need room for
    Scheduler scheduler;
};

class Devices {
  public:
    // Of all that were found, those that are usable. Throws Error(PGKM_UNAVAILABLE) when there are none.
    explicit Devices(const std::vector<PgkmDevice> &found);

    // For each device. A memory of 0: what was free.
    void set_limits(const PgkmServiceLimits &limits);

    // Of a list of ordinals each -1 becomes another device of the first one's kind, as long as there are any. Throws
    // Error(PGKM_UNAVAILABLE) for one that is not there.
    std::vector<std::int32_t> resolve(const std::vector<std::int32_t> &ordinals);

    // Where a load of that size would go now: to the device of that number, or of all (-1) to the one
    // that can give most of it, if possible at once, and has most room beside what is held and waited
    // for; the lowest of several. Throws Error(PGKM_UNAVAILABLE) when there is none.
    Device &choose(std::int32_t ordinal, std::uint64_t bytes);
    // A reservation there, or on another such device that could give as much at once meanwhile. Throws
    // Error(PGKM_CANCELLED) when `cancelled` says so first; it is told which device is waited for.
    using CancelledOn = std::function<bool(Device &device)>;
    struct Grant {
        Device *device;
        Reservation reservation;
    };
    Grant reserve(std::int32_t ordinal, std::uint64_t bytes, const CancelledOn &cancelled);
    // The most that any device that choose() could take has for one load.
    std::uint64_t largest_reservation(std::int32_t ordinal) const;
    // What a load may take of any of them without being in anybody's way: it counts as small.
    std::uint64_t fair_share(std::int32_t ordinal) const;

    const std::list<Device> &all() const { return devices_; }

  private:
    std::list<Device> devices_;
    std::vector<PgkmDevice> found_;
    std::mutex choice_; // held from a choice until it shows in a queue
};

} // namespace pgkm::service
