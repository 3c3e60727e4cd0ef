// link.hpp - the client's end of a connection: requests, replies, cancel and progress.
#pragma once

#include <chrono>

#include "backend/calls.hpp"
#include "backend/host.hpp"
#include "service/wire/arena.hpp"
#include "service/wire/protocol.hpp"

namespace pgkm::service {

Request request_of(Op op);

// One context of the table: a connection and its arena.
class Link {
  public:
    Link(int channel, const PgkmHost &host, const PgkmSegment &segment, std::uint64_t memory_limit)
        : channel_(channel), host_(host), segment_(segment), memory_limit_(memory_limit)
    {
    }

    bool is_cancelled() const { return pgkm::is_cancelled(host_); }
    const PgkmSegment &segment() const { return segment_; }
    Arena &arena() { return arena_; }

    // The request of a call whose fields now lie in the arena, and the bytes that they take there. PGKM_LIMIT where the
    // context's limit has no room for them.
    struct Written {
        Request request;
        std::uint64_t bytes;
    };
    Written write(Call &call, const RowShape &rows);

    // Sends a request and waits for its reply. Throws what the service reports.
    Reply ask(Request request, int passed = -1);
    // The same without waiting for the answer, which the next request or hello passes over.
    void tell(Op op) noexcept;
    // Refuses what would pass the context's limit of host memory.
    void check_memory(std::uint64_t bytes) const;
    void check_cancelled() const;

  private:
    [[noreturn]] void give_up(PgkmStatus status, const char *text);
    void heed_cancel();
    void report();

    int channel_;
    PgkmHost host_;
    PgkmSegment segment_;
    std::uint64_t memory_limit_;
    Arena arena_;
    bool broken_ = false;
    std::uint32_t seen_ = 0;                               // sequence of the progress last reported
    std::chrono::steady_clock::time_point cancelled_at_{}; // the epoch: not yet
};

} // namespace pgkm::service
