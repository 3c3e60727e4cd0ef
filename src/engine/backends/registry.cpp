#include "engine/backends/registry.hpp"

#include <algorithm>
#include <array>

#include "cpu/cpu_backend.hpp"
#include "service/plugin.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"

namespace pgkm {
namespace {

constexpr int max_devices = 64;

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

std::int32_t find_device(const PgkmBackend &table, std::int32_t wanted, std::string *why)
{
    std::array<PgkmDevice, max_devices> devices;
    std::int32_t count = 0;
    PgkmError error = {};
    if (table.probe(devices.data(), max_devices, &count, &error) != PGKM_OK) {
        *why = error.text;
        return -1;
    }
    *why = count == 0 ? "no device was found" : "there is no device " + std::to_string(wanted);
    for (std::int32_t i = 0; i < std::min(count, max_devices); ++i) {
        const PgkmDevice &device = devices[static_cast<std::size_t>(i)];
        if (wanted >= 0 && device.ordinal != wanted)
            continue;
        if (device.usable != 0)
            return device.ordinal;
        *why = device.reason;
    }
    return -1;
}

bool wants_device(const PgkmSettings &settings, const Work &work)
{
    const double pays = settings.device_ready != 0 ? ready_device_pays : device_pays;
    return settings.backend == PGKM_BACKEND_CUDA || (settings.backend == PGKM_BACKEND_AUTO && work.shared >= pays);
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
