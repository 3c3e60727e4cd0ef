// server.cpp - takes connections, hangs up those whose clients are gone, ends them all.
#include "service/server/server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "numeric/error.hpp"
#include "numeric/signals.hpp"

namespace pgkm::service {
namespace {

constexpr int most_devices = PGKM_SERVICE_DEVICES;
constexpr int reap_ms = 10; // until the next look at connections that are ending

std::vector<PgkmDevice> find_devices(const PgkmBackend &table)
{
    std::vector<PgkmDevice> devices(most_devices);
    std::int32_t count = 0;
    PgkmError error = {};
    if (table.probe(devices.data(), most_devices, &count, &error) != PGKM_OK)
        throw Error(PGKM_UNAVAILABLE, error.text);
    devices.resize(std::min(count, most_devices));
    return devices;
}

} // namespace

Server::Server(const PgkmBackend &table, const char *path, const PgkmServiceLimits &limits,
               PgkmServiceFailed on_failure)
    : path_(path), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
    // Also for what the driver starts: the server's signals are for the server's thread.
    const SignalsBlocked guard;
    state_ = std::make_unique<ServerState>(table, find_devices(table), on_failure);
    set_limits(limits);
    listening_ = listen_at(path);
    thread_ = std::thread([this] { run(); });
}

Server::~Server()
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof one);
    thread_.join();
}

void Server::set_limits(const PgkmServiceLimits &limits)
{
    state_->devices.set_limits(limits);
}

void Server::accept_one()
{
    File socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.is_open())
        usleep(reap_ms * 1000); // no descriptor is free: the client waits until one is
    if (!socket.is_open() || !same_user(socket.get()))
        return;
    // Without memory or a thread for it, the client is turned away.
    guarded(nullptr, [&] { connections_.push_back(std::make_unique<Connection>(*state_, std::move(socket))); });
}

// One round: waits for a connection, the end of one, or stop_.
void Server::watch()
{
    std::vector<pollfd> watched = {{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    bool ending = false;
    for (const auto &connection : connections_) {
        ending = ending || connection->has_hung_up();
        watched.push_back({connection->has_hung_up() ? -1 : connection->socket(), POLLRDHUP, 0});
    }
    poll(watched.data(), watched.size(), ending ? reap_ms : -1);
    std::size_t i = 2;
    for (auto each = connections_.begin(); each != connections_.end(); ++i) {
        if ((watched[i].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
            (*each)->hang_up();
        each = (*each)->has_ended() && (*each)->has_hung_up() ? connections_.erase(each) : std::next(each);
    }
    if ((watched[1].revents & POLLIN) != 0)
        accept_one();
}

void Server::run() noexcept
{
    std::uint64_t stopped = 0;
    while (read(stop_.get(), &stopped, sizeof stopped) < 0)
        if (guarded(nullptr, [&] { watch(); }) != PGKM_OK)
            usleep(reap_ms * 1000);
    unlink(path_.c_str());
    listening_ = File();
    for (const auto &connection : connections_)
        connection->hang_up();
    connections_.clear();
}

} // namespace pgkm::service
