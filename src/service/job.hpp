// job.hpp - one client's context in the service: its arena, its rows, what it holds of the device.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "service/arena.hpp"
#include "service/arrays.hpp"
#include "service/shared.hpp"

namespace pgkm::service {

class Job {
  public:
    // Opens the backend. `hung_up` becomes true when the client is gone. Throws Error.
    Job(Shared &shared, const std::atomic<bool> &hung_up, const OpenRequest &request, File arena);
    // Frees everything that it holds.
    ~Job();
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

    // All throw Error; what a client may have got wrong is PGKM_INVALID.
    void load(const LoadRequest &request, File passed);
    void unload();
    void call(Op op, const CallRequest &request, std::uint64_t arena_bytes);

    bool         is_cancelled() const;
    const Arena &arena() const { return arena_; }

  private:
    struct Problems;

    void open_backend(std::uint64_t device_memory);
    void map_rows(const LoadRequest &request, File passed);
    void bring_rows(std::uint64_t device_memory);
    void drop_rows();
    std::uint64_t most_memory() const;
    Problems      read_problems(Op op, const CallRequest &request);
    PgkmStatus    run(Op op, const CallRequest &request, Problems &problems, PgkmError *error);
    template <typename Body>
    PgkmStatus in_turn(double work, PgkmError *error, Body &&body);
    [[noreturn]] void raise(PgkmStatus status, const PgkmError &error);

    Shared                  &shared_;
    const std::atomic<bool> &hung_up_;
    OpenRequest              options_;
    Arena                    arena_;
    PgkmContext             *context_ = nullptr;
    PgkmData                *data_ = nullptr;
    Lease                    lease_ = {0, false};
    PgkmPoints               points_ = {}; // n = 0: none are loaded
    PgkmSegment              segment_ = {};
    Mapping                  copy_;
};

} // namespace pgkm::service
