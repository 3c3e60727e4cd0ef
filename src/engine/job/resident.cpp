// resident.cpp - rows that stay with the backends from job to job.
#include "engine/job/resident.hpp"

#include <new>

namespace pgkm {
namespace {

bool is_cpu(const BackendChoice &choice)
{
    return choice.device < 0 && choice.channel == 0 && choice.devices.empty();
}

// Everything that shapes a context. The CPU's is made anew when the limit of its memory has changed, which costs next
// to nothing.
std::string key_of(const BackendChoice &choice, const PgkmOpen &open)
{
    std::string key = choice.table->name;
    for (const std::int64_t number :
         {std::int64_t{choice.device}, std::int64_t{open.threads}, static_cast<std::int64_t>(open.device_memory_limit),
          is_cpu(choice) ? static_cast<std::int64_t>(open.memory_limit) : 0})
        key += "/" + std::to_string(number);
    for (const std::int32_t device : choice.devices)
        key += "," + std::to_string(device);
    for (const char *name : {open.tuning.assignment, open.tuning.execution, open.tuning.feature_sum,
                             open.tuning.mass_sum, open.tuning.reduction_layout, open.tuning.instruction_set})
        key += std::string("/") + (name == nullptr ? "" : name);
    return key;
}

} // namespace

PgkmHost HostRelay::host()
{
    PgkmHost host = {};
    host.cancelled = [](void *self) {
        const Monitor *const monitor = static_cast<HostRelay *>(self)->monitor_.load();
        return monitor != nullptr && monitor->cancelled() ? 1 : 0;
    };
    host.progress = [](void *self, const PgkmProgress *told) {
        if (Monitor *const monitor = static_cast<HostRelay *>(self)->monitor_.load())
            monitor->note(*told);
    };
    host.arg = this;
    return host;
}

} // namespace pgkm

pgkm::Workplace &PgkmResident::workplace(const pgkm::BackendChoice &choice, const PgkmOpen &open)
{
    const std::string key = pgkm::key_of(choice, open);
    Place &place = pgkm::is_cpu(choice) ? on_cpu_ : on_device_;
    if (place.kept != nullptr && place.key == key)
        return *place.kept;
    PgkmOpen relayed = open;
    relayed.host = relay.host();
    place.kept.reset();
    place.kept = std::make_unique<pgkm::Workplace>(choice, relayed);
    place.key = key;
    return *place.kept;
}

void PgkmResident::drop()
{
    on_cpu_.kept.reset();
    on_device_.kept.reset();
}

void PgkmResident::unload()
{
    for (Place *place : {&on_cpu_, &on_device_})
        if (place->kept != nullptr)
            place->kept->session.unload();
}

PgkmResident *pgkm_resident_create(void)
{
    return new (std::nothrow) PgkmResident();
}

void pgkm_resident_free(PgkmResident *resident)
{
    delete resident;
}

void pgkm_resident_drop(PgkmResident *resident)
{
    resident->drop();
}

void pgkm_resident_unload(PgkmResident *resident)
{
    resident->unload();
}

int32_t pgkm_resident_channel(const PgkmResident *resident)
{
    return resident == nullptr ? 0 : resident->channel;
}

void pgkm_resident_set_channel(PgkmResident *resident, int32_t channel)
{
    resident->channel = channel;
}
