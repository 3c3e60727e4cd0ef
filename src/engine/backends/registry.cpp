// registry.cpp - which backends and devices there are, and which of them a request is tried on.
#include "engine/backends/registry.hpp"

#include <algorithm>

#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"
#include "service/plugin.hpp"

namespace pgkm {
namespace {

constexpr std::size_t most_devices = 64;

// The first usable device that the settings allow: its ordinal, or -1 with the reason.
std::int32_t find_device(const PgkmBackend &table, std::int32_t wanted, std::string *why)
{
    const std::vector<PgkmDevice> devices = probe(table, why);
    if (why->empty())
        *why = devices.empty() ? "no device was found" : "there is no device " + std::to_string(wanted);
    for (const PgkmDevice &device : devices) {
        if (wanted >= 0 && device.ordinal != wanted)
            continue;
        if (device.usable != 0)
            return device.ordinal;
        *why = device.reason;
    }
    return -1;
}

// A device, or nothing with the reason. The service's device is checked when it is opened.
bool choose_device(const PgkmSettings &settings, BackendChoice *choice, std::string *why)
{
    if (settings.channel > 0) {
        *choice = {service::client_backend(), settings.device, settings.channel};
        return true;
    }
    if (settings.no_device != nullptr) {
        *why = settings.no_device;
        return false;
    }
    const PgkmBackend *table = cuda_backend(settings.plugin, why);
    const std::int32_t device = table == nullptr ? -1 : find_device(*table, settings.device, why);
    *choice = {table, device, 0};
    return device >= 0;
}

} // namespace

std::vector<PgkmDevice> probe(const PgkmBackend &table, std::string *why)
{
    std::vector<PgkmDevice> devices(most_devices);
    std::int32_t count = 0;
    PgkmError error = {};
    why->clear();
    if (table.probe(devices.data(), static_cast<std::int32_t>(most_devices), &count, &error) != PGKM_OK) {
        *why = error.text;
        return {};
    }
    devices.resize(std::min(static_cast<std::size_t>(count), most_devices));
    return devices;
}

bool wants_device(const PgkmSettings &settings, const Work &work)
{
    const CoreSeconds pays = settings.device_ready != 0 ? ready_device_pays : device_pays;
    return settings.backend == PGKM_BACKEND_CUDA ||
           (settings.backend == PGKM_BACKEND_AUTO && !work.at_home && work.shared >= pays);
}

std::vector<BackendChoice> choose_backends(const PgkmSettings &settings, const Work &work)
{
    std::vector<BackendChoice> choices;
    BackendChoice device = {};
    std::string why;
    if (wants_device(settings, work) && choose_device(settings, &device, &why))
        choices.push_back(device);
    else if (settings.backend == PGKM_BACKEND_CUDA)
        throw Error(PGKM_UNAVAILABLE, "no usable CUDA device: " + why);
    if (settings.backend != PGKM_BACKEND_CUDA)
        choices.push_back({cpu_backend(), -1, 0});
    return choices;
}

} // namespace pgkm
