#include "engine/kmeans/resident.hpp"

#include <new>

namespace pgkm {
namespace {

// Everything that shapes a context or the rows in it.
std::string key_of(const BackendChoice &choice, const PgkmOpen &open, const PgkmOptions &options)
{
    std::string key = choice.table->name;
    for (const std::int64_t number :
         {std::int64_t{choice.device}, std::int64_t{open.threads}, static_cast<std::int64_t>(open.device_memory_limit),
          std::int64_t{options.standardize}, std::int64_t{options.metric}, std::int64_t{options.tol > 0.0}})
        key += "/" + std::to_string(number);
    for (const char *name : {open.tuning.assignment, open.tuning.execution, open.tuning.feature_sum,
                             open.tuning.mass_sum, open.tuning.instruction_set})
        key += std::string("/") + (name == nullptr ? "" : name);
    return key;
}

} // namespace

PgkmHost HostRelay::host()
{
    PgkmHost host = {};
    host.cancelled = [](void *self) {
        Monitor *monitor = static_cast<HostRelay *>(self)->monitor_.load();
        if (monitor == nullptr)
            return 0;
        const PgkmHost to = monitor->host();
        return to.cancelled(to.arg);
    };
    host.progress = [](void *self, const PgkmProgress *told) {
        Monitor *monitor = static_cast<HostRelay *>(self)->monitor_.load();
        if (monitor == nullptr)
            return;
        const PgkmHost to = monitor->host();
        to.progress(to.arg, told);
    };
    host.arg = this;
    return host;
}

} // namespace pgkm

template <>
std::unique_ptr<pgkm::Workplace<float>> &PgkmResident::slot<float>()
{
    return narrow_;
}

template <>
std::unique_ptr<pgkm::Workplace<double>> &PgkmResident::slot<double>()
{
    return wide_;
}

template <typename T>
pgkm::Workplace<T> &PgkmResident::workplace(const pgkm::BackendChoice &choice, const PgkmOpen &open,
                                            const PgkmFitRequest &request, pgkm::Monitor &monitor)
{
    const std::string key = pgkm::key_of(choice, open, request.options);
    relay_.lead_to(&monitor);
    if (slot<T>() != nullptr && key == key_)
        return *slot<T>();
    drop();
    PgkmOpen relayed = open;
    relayed.host = relay_.host();
    slot<T>() = std::make_unique<pgkm::Workplace<T>>(choice, relayed, request, monitor);
    key_ = key;
    return *slot<T>();
}

void PgkmResident::drop()
{
    narrow_.reset();
    wide_.reset();
    key_.clear();
}

template pgkm::Workplace<float> &PgkmResident::workplace<float>(const pgkm::BackendChoice &, const PgkmOpen &,
                                                                const PgkmFitRequest &, pgkm::Monitor &);
template pgkm::Workplace<double> &PgkmResident::workplace<double>(const pgkm::BackendChoice &, const PgkmOpen &,
                                                                  const PgkmFitRequest &, pgkm::Monitor &);

PgkmResident *pgkm_resident_create(void) { return new (std::nothrow) PgkmResident(); }

void pgkm_resident_free(PgkmResident *resident) { delete resident; }

void pgkm_resident_drop(PgkmResident *resident) { resident->drop(); }

int32_t pgkm_resident_channel(const PgkmResident *resident) { return resident == nullptr ? 0 : resident->channel; }

void pgkm_resident_set_channel(PgkmResident *resident, int32_t channel) { resident->channel = channel; }
