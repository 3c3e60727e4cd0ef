// server_state.cpp - which clients there are, and what they hold.
#include "service/server/server_state.hpp"

#include <cstdio>

#include "service/server/client_context.hpp"

namespace pgkm::service {

void ServerState::add(ClientContext *client)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    clients_.insert(client);
}

void ServerState::remove(ClientContext *client)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    clients_.erase(client);
}

std::int32_t ServerState::clients() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<std::int32_t>(clients_.size());
}

void ServerState::drop_idle_rows(const Device &device, std::chrono::milliseconds idle, const ClientContext *except)
{
    // Under the lock no client can end; a client that is at work is left alone, not waited for.
    const std::lock_guard<std::mutex> lock(mutex_);
    for (ClientContext *client : clients_)
        if (client != except)
            client->drop_if_idle(device, idle);
}

PgkmServiceCounts ServerState::counts() const
{
    PgkmServiceCounts counts = {};
    counts.all.ordinal = -1;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Device &device : devices.all()) {
        const Scheduler::Counts now = device.scheduler.counts();
        PgkmDeviceCounts &own = counts.devices[counts.n_devices++];
        own = {device.ordinal, 0, now.running, now.waiting, now.reserved};
        for (const ClientContext *client : clients_)
            own.jobs += client->is_on(device) ? 1 : 0;
        counts.all.jobs += own.jobs;
        counts.all.running += own.running;
        counts.all.waiting += own.waiting;
        counts.all.memory_held += own.memory_held;
    }
    counts.requests = requests();
    counts.failed = has_failed() ? 1 : 0;
    std::snprintf(counts.failure, sizeof counts.failure, "%s", failure_.c_str());
    return counts;
}

} // namespace pgkm::service
