#include "backend/registry.hpp"

#include <algorithm>
#include <array>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/plugin.hpp"
#include "engine/contract.hpp"
#include "engine/error.hpp"

namespace pgkm {
namespace {

// Below this much work a CPU is done before a CUDA context stands (about 0.3 s).
constexpr double device_pays = 4e9;
constexpr int max_devices = 64;

BackendChoice forced_device(const PgkmSettings &settings)
{
    std::string why;
    const PgkmBackend *table = cuda_backend(settings.plugin_directory, &why);
    const std::int32_t device = table == nullptr ? -1 : find_device(*table, settings.device, &why);
    if (device < 0)
        throw Error(PGKM_UNAVAILABLE, "no usable CUDA device: " + why);
    return {table, device};
}

} // namespace

double fit_work(std::int64_t n, std::int32_t d, std::int64_t k, const PgkmOptions &options)
{
    const double passes = std::min<double>(options.max_iter, 30) + greedy_trials(static_cast<int>(
                                                                       std::min<std::int64_t>(k, n)));
    return static_cast<double>(n) * d * static_cast<double>(std::min(k, n)) * passes * options.n_init;
}

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

std::vector<BackendChoice> choose_backends(const PgkmSettings &settings, double work)
{
    if (settings.backend == PGKM_BACKEND_CUDA)
        return {forced_device(settings)};
    std::vector<BackendChoice> choices;
    if (settings.backend == PGKM_BACKEND_AUTO && work >= device_pays) {
        std::string why;
        const PgkmBackend *table = cuda_backend(settings.plugin_directory, &why);
        const std::int32_t device = table == nullptr ? -1 : find_device(*table, settings.device, &why);
        if (device >= 0)
            choices.push_back({table, device});
    }
    choices.push_back({cpu_backend(), -1});
    return choices;
}

} // namespace pgkm
