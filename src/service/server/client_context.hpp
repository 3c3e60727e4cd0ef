// client_context.hpp - one client's context in the service: its arena, its rows, what it holds of the device.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "service/wire/arena.hpp"
#include "service/server/problems.hpp"
#include "service/server/client_rows.hpp"
#include "service/server/server_state.hpp"

namespace pgkm::service {

class ClientContext {
  public:
    // Without a device asked for, rows go where there is room. Refuses a device or strategies that are not there.
    // `hung_up` becomes true when the client is gone. Throws Error.
    ClientContext(ServerState &state, const std::atomic<bool> &hung_up, const OpenRequest &request, File arena);
    // Frees everything that it holds.
    ~ClientContext();
    ClientContext(const ClientContext &) = delete;
    ClientContext &operator=(const ClientContext &) = delete;

    // All throw Error; what a client may have got wrong is PGKM_INVALID.
    void load(const LoadRequest &request, File passed);
    void unload();
    void call(const CallRequest &request, std::uint64_t arena_bytes);

    // From another client's thread: gives memory of that device back if there was no call for so long.
    // The next call brings the rows again, to any device.
    void drop_if_idle(const Device &device, std::chrono::milliseconds idle);
    // A device of its rows; without rows of the last ones, or of those that they would go to.
    bool is_on(const Device &device) const { return (on_.load(std::memory_order_relaxed) >> device.index & 1) != 0; }

    // For whatever reason; and because the client wants it.
    bool is_cancelled() const;
    bool client_cancelled() const { return arena_.control().cancelled.load(std::memory_order_relaxed) != 0; }

    const Arena &arena() const { return arena_; }

  private:
    using Clock = std::chrono::steady_clock;

    // A device that was asked for (-1: any), by how many entries of the list.
    struct Place {
        std::int32_t ordinal;
        std::uint64_t parts;
    };

    void find_places();
    void open_backend(std::uint64_t device_memory);
    void bring_rows(std::uint64_t device_memory);
    bool bring_again();
    void drop_rows();
    std::uint64_t most_memory() const;
    std::uint64_t wanted_memory() const;
    template <typename Body>
    PgkmStatus in_turn(double work, PgkmError *error, Body &&body);
    [[noreturn]] void raise(PgkmStatus status, const PgkmError &error);

    ServerState &state_;
    const std::atomic<bool> &hung_up_;
    OpenRequest options_;
    std::vector<std::int32_t> ordinals_; // of the list, as far as it stands for several devices
    std::vector<Place> places_;          // in ascending order: all who take several take them so
    std::atomic<std::uint64_t> on_{0};   // bits of Device.index; changed by its own thread alone
    Arena arena_;
    std::mutex mutex_;         // held by whoever is at work on what follows
    const PgkmBackend *table_; // of the context: the plugin's, or that of several devices
    PgkmContext *context_ = nullptr;
    std::unique_ptr<ClientRows> rows_;
    PgkmData *data_ = nullptr;           // nullptr with rows: they are to be brought again
    std::vector<Devices::Grant> grants_; // of each place, as long as it has rows
    std::uint64_t memory_ = 0;           // of a part
    Clock::time_point last_used_{};
};

} // namespace pgkm::service
