// link.cpp - sends a request and waits for its reply; tells the service of a cancel.
#include "service/client/link.hpp"

#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <string>

#include "numeric/error.hpp"
#include "service/wire/channel.hpp"
#include "service/wire/fields.hpp"

namespace pgkm::service {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int slice_ms = 5;                              // between two looks at the cancel flag and the progress
constexpr auto patience = std::chrono::milliseconds(50); // with a service that does not heed a cancel

std::atomic<std::uint64_t> serials{0}; // of this process's requests

constexpr const char *gone = "the GPU service has ended";

} // namespace

Request request_of(Op op)
{
    Request request;
    std::memset(&request, 0, sizeof request);
    request.magic = magic;
    request.op = op;
    return request;
}

Link::Written Link::write(Call &call, const RowShape &rows)
{
    ArenaFields sizes(rows);
    fields(sizes, call);
    check_memory(sizes.bytes());
    arena_.grow(sizes.bytes());
    ArenaFields writer(Leg::write_call, rows, arena_.get(), sizes.numbers(), sizes.bytes());
    fields(writer, call);
    Request request = request_of(Op::call);
    request.call.function = call.function;
    request.call.n_problems = call.n_problems;
    request.call.numbers = sizes.numbers();
    return {request, sizes.bytes()};
}

void Link::give_up(PgkmStatus status, const char *text)
{
    broken_ = true;
    shutdown(channel_, SHUT_RDWR);
    throw Error(status, text);
}

void Link::heed_cancel()
{
    if (cancelled_at_ == Clock::time_point{}) {
        if (!is_cancelled())
            return;
        arena_.control().cancelled.store(1);
        cancelled_at_ = Clock::now();
    }
    if (Clock::now() - cancelled_at_ > patience)
        give_up(PGKM_CANCELLED, "cancelled");
}

void Link::report()
{
    PgkmProgress progress;
    if (host_.progress != nullptr && arena_.read_progress(&progress, &seen_))
        host_.progress(host_.arg, &progress);
}

Reply Link::ask(Request request, int passed)
{
    if (broken_)
        throw Error(PGKM_DEVICE_ERROR, gone);
    // A context that stays from job to job may have been cancelled before.
    if (!is_cancelled()) {
        cancelled_at_ = {};
        arena_.control().cancelled.store(0);
    }
    request.arena_bytes = arena_.bytes();
    request.serial = ++serials;
    if (!send_message(channel_, &request, sizeof request, passed))
        give_up(PGKM_DEVICE_ERROR, gone);
    Reply reply;
    for (;;) {
        const Received received = receive_message(channel_, &reply, sizeof reply, slice_ms);
        report();
        if (received == Received::message && reply.magic == magic && reply.serial == request.serial)
            break;
        // An answer that nobody waited for (to a hello, or to what tell() said) is no news.
        if (received == Received::message && reply.magic == magic && reply.serial < request.serial)
            continue;
        if (received != Received::nothing)
            give_up(PGKM_DEVICE_ERROR, gone);
        heed_cancel();
    }
    reply.error.text[sizeof reply.error.text - 1] = '\0';
    reply.error.sqlstate[sizeof reply.error.sqlstate - 1] = '\0';
    std::int32_t status; // looked at as a number, before it is taken for a status
    static_assert(sizeof status == sizeof reply.error.status);
    std::memcpy(&status, &reply.error.status, sizeof status);
    if (status < PGKM_OK || status > PGKM_NODE_FAILED)
        reply.error.status = PGKM_DEVICE_ERROR;
    if (reply.error.status != PGKM_OK)
        throw Error(reply.error);
    return reply;
}

void Link::tell(Op op) noexcept
{
    if (broken_)
        return;
    Request request = request_of(op);
    request.arena_bytes = arena_.bytes();
    request.serial = ++serials;
    broken_ = !send_message(channel_, &request, sizeof request);
}

void Link::check_memory(std::uint64_t bytes) const
{
    if (memory_limit_ != 0 && bytes > memory_limit_)
        throw Error(PGKM_LIMIT, "handing " + std::to_string(bytes / 1024) +
                                    " kB to the GPU service would pass the memory limit of " +
                                    std::to_string(memory_limit_ / 1024) + " kB");
}

void Link::check_cancelled() const
{
    if (is_cancelled())
        throw Error(PGKM_CANCELLED, "cancelled");
}

} // namespace pgkm::service
