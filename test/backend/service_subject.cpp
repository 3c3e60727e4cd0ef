#include "service_subject.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"
#include "service/server/server.hpp"

namespace conformance {
namespace {

constexpr int patience_ms = 10000;

std::string socket_path()
{
    return "/tmp/pg_kmeans_test." + std::to_string(getpid());
}

void end_service();

pgkm::service::Server *server()
{
    static pgkm::service::Server *const running = [] {
        const PgkmServiceLimits limits = {4, 0};
        std::atexit(end_service);
        return new pgkm::service::Server(*pgkm::cpu_backend(), socket_path().c_str(), limits);
    }();
    return running;
}

void end_service()
{
    delete server();
}

std::mutex mutex;
std::map<PgkmContext *, int> channels; // of the open contexts

int new_channel()
{
    server();
    PgkmError error = {};
    const int channel = pgkm_service_connect(socket_path().c_str());
    if (channel < 0 || pgkm_service_ready(channel, patience_ms, &error) != 1)
        throw pgkm::Error(PGKM_INTERNAL, "the service does not answer");
    return channel;
}

PgkmStatus probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error)
{
    return pgkm::guarded(error, [&] {
        const int channel = new_channel();
        PgkmServiceCounts counts;
        const std::vector<PgkmDevice> found = pgkm::service::devices(channel, std::chrono::minutes(1), &counts);
        pgkm_service_disconnect(channel);
        *count = static_cast<std::int32_t>(found.size());
        std::copy_n(found.begin(), std::min(*count, capacity), devices);
    });
}

PgkmStatus open(const PgkmOpen *options, PgkmContext **context, PgkmError *error)
{
    const int channel = new_channel();
    PgkmOpen full = *options;
    full.channel = channel;
    const PgkmStatus status = pgkm::service::client_backend()->open(&full, context, error);
    if (status != PGKM_OK) {
        pgkm_service_disconnect(channel);
        return status;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    channels[*context] = channel;
    return status;
}

void close(PgkmContext *context)
{
    if (context == nullptr)
        return;
    const std::lock_guard<std::mutex> lock(mutex);
    const int channel = channels.extract(context).mapped();
    pgkm::service::client_backend()->close(context);
    pgkm_service_disconnect(channel);
}

} // namespace

const PgkmBackend *service_table()
{
    static const PgkmBackend table = [] {
        PgkmBackend made = *pgkm::service::client_backend();
        made.probe = probe;
        made.open = open;
        made.close = close;
        return made;
    }();
    return &table;
}

} // namespace conformance
