// registry.cpp - which backends and devices there are, and which of them a request is tried on.
#include "engine/backends/registry.hpp"

#include <algorithm>

#include "backend/spread/spread.hpp"
#include "cpu/cpu_backend.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"
#include "service/plugin.hpp"

namespace pgkm {
namespace {

constexpr std::size_t most_devices = 64;

// Of the devices that were found the usable one of that number, or the first (-1); NULL with the reason.
const PgkmDevice *find_device(const std::vector<PgkmDevice> &found, std::int32_t wanted, std::string *why)
{
    if (why->empty())
        *why = found.empty() ? "no device was found" : "there is no device " + std::to_string(wanted);
    for (const PgkmDevice &device : found) {
        if (wanted >= 0 && device.ordinal != wanted)
            continue;
        if (device.usable != 0)
            return &device;
        *why = device.reason;
    }
    return nullptr;
}

// The ordinals that the settings name, or up to so many usable devices of the first one's kind; none with the reason.
std::vector<std::int32_t> find_devices(const PgkmBackend &table, const std::vector<std::int32_t> &wanted,
                                       std::string *why)
{
    const std::vector<PgkmDevice> found = probe(table, why);
    std::vector<std::int32_t> ordinals;
    const PgkmDevice *first = nullptr;
    for (const std::int32_t ordinal : wanted) {
        const PgkmDevice *const device = find_device(found, ordinal, why);
        if (device == nullptr)
            return {};
        first = first == nullptr ? device : first;
        if (ordinal >= 0)
            ordinals.push_back(ordinal);
    }
    for (const PgkmDevice &device : found)
        if (ordinals.size() < wanted.size() && device.usable != 0 && spread::is_same_kind(device, *first))
            ordinals.push_back(device.ordinal);
    return ordinals;
}

// What to ask for: what is forced, or as many of any as the work is worth (-1 each).
std::vector<std::int32_t> wanted_devices(const PgkmSettings &settings, const Work &work)
{
    if (settings.device >= 0)
        return {settings.device};
    if (settings.n_devices > 0)
        return {settings.devices, settings.devices + settings.n_devices};
    return std::vector<std::int32_t>(static_cast<std::size_t>(work.devices), -1);
}

// A device, or nothing with the reason. The service's device is checked when it is opened.
bool choose_device(const PgkmSettings &settings, const Work &work, BackendChoice *choice, std::string *why)
{
    std::vector<std::int32_t> devices = wanted_devices(settings, work);
    const auto take = [&](const PgkmBackend *table) {
        const bool several = devices.size() > 1;
        *choice = {table, several ? -1 : devices[0], settings.channel, several ? devices : std::vector<std::int32_t>()};
        return true;
    };
    if (settings.channel > 0)
        return take(service::client_backend());
    if (settings.no_device != nullptr) {
        *why = settings.no_device;
        return false;
    }
    const PgkmBackend *table = cuda_backend(settings.plugin, why);
    devices = table == nullptr ? std::vector<std::int32_t>() : find_devices(*table, devices, why);
    return !devices.empty() && take(table);
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
    const double pays = settings.device_ready != 0 ? ready_device_pays : device_pays;
    return settings.backend == PGKM_BACKEND_CUDA ||
           (settings.backend == PGKM_BACKEND_AUTO && !work.at_home && work.shared >= pays);
}

BackendChoice cpu_choice()
{
    return {cpu_backend(), -1, 0};
}

std::vector<BackendChoice> choose_backends(const PgkmSettings &settings, const Work &work)
{
    std::vector<BackendChoice> choices;
    BackendChoice device = {};
    std::string why;
    if (wants_device(settings, work) && choose_device(settings, work, &device, &why))
        choices.push_back(device);
    else if (settings.backend == PGKM_BACKEND_CUDA)
        throw Error(PGKM_UNAVAILABLE, "no usable CUDA device: " + why);
    if (settings.backend != PGKM_BACKEND_CUDA)
        choices.push_back(cpu_choice());
    return choices;
}

} // namespace pgkm
