// api.cpp - the C functions of service.h for the process that runs the service.
#include "service/service.h"

#include <memory>

#include "service/plugin.hpp"
#include "numeric/error.hpp"
#include "numeric/signals.hpp"
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
