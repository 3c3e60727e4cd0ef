// api.cpp - the C functions of service.h.
#include "service/service.h"

#include <unistd.h>

#include <memory>

#include "service/plugin.hpp"
#include "numeric/error.hpp"
#include "numeric/signals.hpp"
#include "service/client/client.hpp"
#include "service/server/server.hpp"

using pgkm::Error;

struct PgkmService : pgkm::service::Server {
    using Server::Server;
};

PgkmStatus pgkm_service_start(const char *plugin, const char *path, const PgkmServiceLimits *limits,
                              PgkmServiceFailed on_failure, PgkmService **service, PgkmError *error)
{
    *service = nullptr;
    return pgkm::guarded(error, [&] {
        const pgkm::SignalsBlocked guard; // a library may start threads when it is loaded
        std::string why;
        const PgkmBackend *table = pgkm::cuda_backend(plugin, &why);
        if (table == nullptr)
            throw Error(PGKM_UNAVAILABLE, why);
        *service = std::make_unique<PgkmService>(*table, path, *limits, on_failure).release();
    });
}

void pgkm_service_stop(PgkmService *service)
{
    delete service;
}

void pgkm_service_set_limits(PgkmService *service, const PgkmServiceLimits *limits)
{
    service->set_limits(*limits);
}

void pgkm_service_counts(PgkmService *service, PgkmServiceCounts *counts)
{
    *counts = service->state().counts();
}

int pgkm_service_close_if_idle(PgkmService *service, uint64_t requests_seen)
{
    return service->state().close_if_idle(requests_seen) ? 1 : 0;
}

int pgkm_service_connect(const char *path)
{
    pgkm::service::File socket = pgkm::service::connect_to(path);
    return socket.is_open() && pgkm::service::hello(socket.get()) ? socket.release() : -1;
}

int pgkm_service_ready(int channel, int milliseconds, PgkmError *error)
{
    return pgkm::service::await_hello(channel, milliseconds, error);
}

int pgkm_service_ask_again(int channel)
{
    return pgkm::service::hello(channel) ? 1 : 0;
}

void pgkm_service_disconnect(int channel)
{
    close(channel);
}
