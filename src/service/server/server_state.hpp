// server_state.hpp - what all connections of the service have in common.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "service/server/devices.hpp"
#include "service/wire/protocol.hpp"

namespace pgkm::service {

class ClientContext;

class ServerState {
  public:
    // on_failure: called from any thread when a device fails; nullptr: nobody wants to know. Throws
    // Error(PGKM_UNAVAILABLE) when no device is usable.
    ServerState(const PgkmBackend &backend, const std::vector<PgkmDevice> &found, PgkmServiceFailed on_failure)
        : table(backend), has_reduce(reduces(backend)), devices(found), on_failure_(on_failure)
    {
    }

    const PgkmBackend &table;
    const bool has_reduce;
    Devices devices;

    // The clients that there are.
    void add(ClientContext *client);
    void remove(ClientContext *client);
    std::int32_t clients() const;
    // Frees the memory of the device that all clients but `except` hold if they have had no call for so long.
    void drop_idle_rows(const Device &device, std::chrono::milliseconds idle, const ClientContext *except);

    // Every request counts. False when the service is about to end: the client shall look for
    // the next one.
    bool note_request()
    {
        requests_.fetch_add(1);
        return !closing_.load();
    }
    std::uint64_t requests() const { return requests_.load(); }
    // Ends the service unless there is a client, or was a request since that number of them. A
    // request that comes at the same time is counted before it looks at closing_, and closing_
    // is set before the count is looked at: one of the two sees the other.
    bool close_if_idle(std::uint64_t requests_seen)
    {
        closing_.store(true);
        if (clients() == 0 && requests_.load() == requests_seen)
            return true;
        closing_.store(false);
        return false;
    }

    // The device cannot be trusted any more: all calls end, and so must this process.
    void fail(const char *text)
    {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (!failed_.exchange(true))
                failure_ = text;
        }
        if (on_failure_ != nullptr)
            on_failure_();
    }
    PgkmServiceCounts counts() const;
    bool has_failed() const { return failed_.load(std::memory_order_relaxed); }
    std::string failure() const
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return failure_;
    }

  private:
    static bool reduces(const PgkmBackend &table)
    {
        PgkmError error = {};
        return table.reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) != PGKM_UNSUPPORTED;
    }

    const PgkmServiceFailed on_failure_;
    std::atomic<std::uint64_t> requests_{0};
    std::atomic<bool> closing_{false};
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_; // guards what follows
    std::string failure_;
    std::set<ClientContext *> clients_;
};

} // namespace pgkm::service
