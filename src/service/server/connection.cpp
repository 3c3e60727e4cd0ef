// connection.cpp - receives requests, answers each, one after the other.
#include "service/server/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "numeric/error.hpp"

namespace pgkm::service {
namespace {

// The service's counts and the devices as they are now, into an arena.
std::int32_t probe(const ServerState &state, File passed, std::uint64_t bytes)
{
    Arena arena(std::move(passed));
    arena.follow(bytes);
    if (bytes < sizeof(PgkmServiceCounts))
        throw Error(PGKM_INVALID, "the GPU service got too short an arena");
    *reinterpret_cast<PgkmServiceCounts *>(arena.get()) = state.counts();
    auto *devices = reinterpret_cast<PgkmDevice *>(arena.get() + sizeof(PgkmServiceCounts));
    const std::uint64_t room = (bytes - sizeof(PgkmServiceCounts)) / sizeof(PgkmDevice);
    const auto capacity = static_cast<std::int32_t>(std::min<std::uint64_t>(room, 1024));
    std::int32_t count = 0;
    PgkmError error = {};
    if (state.table.probe(devices, capacity, &count, &error) != PGKM_OK)
        throw Error(error);
    return std::min(count, capacity);
}

// Whose magic number is not ours.
constexpr Request request_of_another_version = {};

} // namespace

Connection::Connection(ServerState &state, File socket)
    : state_(state), socket_(std::move(socket)), thread_([this] { run(); })
{
}

Connection::~Connection()
{
    hang_up();
    thread_.join();
}

void Connection::hang_up()
{
    hung_up_.store(true);
    shutdown(socket_.get(), SHUT_RDWR);
}

void Connection::run() noexcept
{
    Request request;
    for (;;) {
        File passed;
        const Received received = receive_message(socket_.get(), &request, sizeof request, -1, &passed);
        if (received == Received::nothing)
            continue;
        if (received == Received::gone || hung_up_.load() || !state_.note_request())
            break;
        if (received == Received::other)
            request = request_of_another_version;
        // A service that has failed is about to end: who asks whether it is there is to look for the next.
        if (request.op == Op::hello && state_.has_failed())
            break;
        Reply reply;
        std::memset(&reply, 0, sizeof reply);
        reply.magic = magic;
        reply.serial = request.serial;
        // To a client of another version the magic number alone is an answer.
        if (request.magic == magic)
            guarded(&reply.error, [&] { answer(request, std::move(passed), &reply); });
        if (reply.error.status == PGKM_CANCELLED && (client_ == nullptr || !client_->client_cancelled()))
            set_error(&reply.error, PGKM_DEVICE_ERROR,
                      state_.has_failed() ? state_.failure().c_str() : "the GPU service has ended");
        if (!send_message(socket_.get(), &reply, sizeof reply))
            break;
    }
    client_.reset();
    shutdown(socket_.get(), SHUT_RDWR); // whoever watches the socket learns of the end
    ended_.store(true);
}

void Connection::answer(const Request &request, File passed, Reply *reply)
{
    if (state_.has_failed() && request.op != Op::hello && request.op != Op::close && request.op != Op::unload)
        throw Error(PGKM_DEVICE_ERROR, state_.failure());
    switch (request.op) {
    case Op::hello:
        reply->has_reduce = state_.has_reduce ? 1 : 0;
        return;
    case Op::probe:
        reply->count = probe(state_, std::move(passed), request.arena_bytes);
        return;
    case Op::open:
        client_.reset();
        client_ = std::make_unique<ClientContext>(state_, hung_up_, request.open, std::move(passed));
        return;
    case Op::close:
        client_.reset();
        return;
    default:
        break;
    }
    if (client_ == nullptr)
        throw Error(PGKM_INVALID, "the GPU service got a call before any open");
    switch (request.op) {
    case Op::load:
        return client_->load(request.load, std::move(passed));
    case Op::unload:
        return client_->unload();
    case Op::call:
        return client_->call(request.call, request.arena_bytes);
    default:
        throw Error(PGKM_INVALID, "the GPU service got an unknown request");
    }
}

} // namespace pgkm::service
