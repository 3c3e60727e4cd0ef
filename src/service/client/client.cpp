// client.cpp - the client's function table, and what is asked without a context.
#include "service/client/client.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "backend/call_table.hpp"
#include "numeric/error.hpp"
#include "service/client/handover.hpp"
#include "service/client/link.hpp"
#include "service/wire/fields.hpp"

namespace pgkm::service {
namespace {

constexpr std::int32_t most_devices = PGKM_SERVICE_DEVICES;

// As the service said that this process has heard of last. A server has one service, and that one plugin; every job
// begins with an answer of it.
std::atomic<bool> knows_reduce{true};

// PgkmData of this table.
struct LoadedRows {
    Link &link;
    RowShape shape;
};

Link *self(PgkmContext *context)
{
    return reinterpret_cast<Link *>(context);
}
LoadedRows *self(PgkmData *data)
{
    return reinterpret_cast<LoadedRows *>(data);
}

PgkmStatus probe(PgkmDevice *, std::int32_t, std::int32_t *count, PgkmError *error)
{
    *count = 0;
    return set_error(error, PGKM_UNAVAILABLE, "the GPU service is asked over a connection");
}

PgkmStatus open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    *context = nullptr;
    return guarded(error, [&] {
        if (options->struct_size != sizeof(PgkmOpen) || options->channel <= 0)
            throw Error(PGKM_INVALID, "the GPU service was opened without a connection");
        auto link = std::make_unique<Link>(options->channel, options->host, options->segment, options->memory_limit);
        Request request = request_of(Op::open);
        request.open.device = options->device;
        request.open.n_devices = std::clamp(options->n_devices, 0, PGKM_MOST_DEVICES);
        std::copy_n(options->devices, request.open.n_devices, request.open.devices);
        request.open.threads = options->threads;
        request.open.most_threads = options->most_threads;
        request.open.memory_limit = options->memory_limit;
        request.open.device_memory_limit = options->device_memory_limit;
        if (!pack_names(options->tuning, &request.open.tuning))
            throw Error(PGKM_UNSUPPORTED, "there is no strategy with so long a name");
        link->ask(request, link->arena().fd());
        *context = reinterpret_cast<PgkmContext *>(link.release());
    });
}

void close(PgkmContext *context)
{
    if (context != nullptr)
        self(context)->tell(Op::close);
    delete self(context);
}

PgkmStatus load(PgkmContext *context, const PgkmPoints *points, PgkmData **data, PgkmError *error)
{
    *data = nullptr;
    return guarded(error, [&] {
        Link &link = *self(context);
        link.check_cancelled();
        auto rows = std::make_unique<LoadedRows>(LoadedRows{link, shape_of(*points)});
        Request request = request_of(Op::load);
        const HandedOver handed = hand_over(link, *points);
        request.load = handed.place;
        link.ask(request, handed.file);
        *data = reinterpret_cast<PgkmData *>(rows.release());
    });
}

void unload(PgkmData *data)
{
    if (data != nullptr)
        self(data)->link.tell(Op::unload);
    delete self(data);
}

// Archives of this end write only what a function finds.
PgkmStatus ask(PgkmData *data, Call call, PgkmError *error)
{
    if (data == nullptr)
        return knows_reduce.load() ? set_error(error, PGKM_OK, "")
                                   : set_error(error, PGKM_UNSUPPORTED, "the GPU service found no NVRTC (libnvrtc.so)");
    return guarded(error, [&] {
        const auto &[link, rows] = *self(data);
        const auto [request, bytes] = link.write(call, rows);
        link.check_cancelled();
        ArenaFields reader(Leg::read_results, rows, link.arena().get(), request.call.numbers, bytes);
        try {
            link.ask(request);
        } catch (const Error &failed) {
            if (call.function == Function::reduce && failed.status() == PGKM_INVALID) // it says in which row
                fields(reader, call);
            throw;
        }
        fields(reader, call);
    });
}

} // namespace

const PgkmBackend *client_backend()
{
    static const PgkmBackend table = [] {
        PgkmBackend made = CallTable<ask>::table("cuda", close, load, unload);
        made.probe = probe;
        made.open = open;
        return made;
    }();
    return &table;
}

std::vector<PgkmDevice> devices(int channel, std::chrono::milliseconds limit, PgkmServiceCounts *counts)
{
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = Clock::now() + limit;
    const auto is_late = [](void *until) { return Clock::now() > *static_cast<Clock::time_point *>(until) ? 1 : 0; };
    Link link(channel, {is_late, nullptr, &end}, {}, 0);
    link.arena().grow(sizeof(PgkmServiceCounts) + most_devices * sizeof(PgkmDevice));
    const Reply reply = link.ask(request_of(Op::probe), link.arena().fd());
    *counts = *reinterpret_cast<const PgkmServiceCounts *>(link.arena().get());
    counts->n_devices = std::clamp(counts->n_devices, 0, most_devices);
    const auto *list = reinterpret_cast<const PgkmDevice *>(link.arena().get() + sizeof(PgkmServiceCounts));
    return {list, list + std::clamp(reply.count, 0, most_devices)};
}

} // namespace pgkm::service

// --- the session's functions of service.h ---

using namespace pgkm::service;

int pgkm_service_connect(const char *path)
{
    File socket = connect_to(path);
    return socket.is_open() && pgkm_service_ask_again(socket.get()) != 0 ? socket.release() : -1;
}

int pgkm_service_ready(int channel, int milliseconds, PgkmError *error)
{
    Reply reply;
    pgkm::set_error(error, PGKM_OK, "");
    const Received received = receive_message(channel, &reply, sizeof reply, milliseconds);
    const bool ours = received == Received::message && reply.magic == magic;
    if (received == Received::nothing || (ours && reply.serial != 0)) // that is of an earlier request
        return 0;
    if (ours) {
        knows_reduce.store(reply.has_reduce != 0);
        return 1;
    }
    if (received != Received::gone)
        pgkm::set_error(error, PGKM_UNAVAILABLE, "the GPU service belongs to another version of pg_kmeans");
    return -1;
}

int pgkm_service_ask_again(int channel)
{
    const Request request = request_of(Op::hello);
    return send_message(channel, &request, sizeof request) ? 1 : 0;
}

void pgkm_service_disconnect(int channel)
{
    ::close(channel);
}
