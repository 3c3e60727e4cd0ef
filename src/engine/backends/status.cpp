// status.cpp - what kmeans_status() lists.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "engine/api.h"
#include "engine/backends/registry.hpp"
#include "numeric/error.hpp"
#include "service/client/client.hpp"
#include "service/plugin.hpp"

namespace {

constexpr std::chrono::milliseconds patience(1000); // with a service that is asked for its devices

// Those of CUDA: as the service sees them, if there is a connection to it, or else this process.
std::vector<PgkmDevice> probe_cuda(const PgkmSettings &settings, PgkmServiceCounts *counts, std::string *why)
{
    if (settings.no_device != nullptr) {
        *why = settings.no_device;
        return {};
    }
    if (settings.channel <= 0) {
        const PgkmBackend *const table = pgkm::cuda_backend(settings.plugin, why);
        return table == nullptr ? std::vector<PgkmDevice>() : pgkm::probe(*table, why);
    }
    std::vector<PgkmDevice> devices;
    PgkmError error = {};
    const PgkmStatus status =
        pgkm::guarded(&error, [&] { devices = pgkm::service::devices(settings.channel, patience, counts); });
    if (status != PGKM_OK)
        *why = status == PGKM_CANCELLED ? "the GPU service does not answer" : error.text;
    return devices;
}

// One line for each device, or one that says why there is none.
void append(const char *name, std::vector<PgkmDevice> devices, const std::string &why,
            std::vector<PgkmBackendStatus> *lines)
{
    if (devices.empty()) {
        PgkmDevice none = {};
        none.ordinal = -1;
        std::snprintf(none.reason, sizeof none.reason, "%s", why.empty() ? "no device was found" : why.c_str());
        devices.push_back(none);
    }
    for (const PgkmDevice &device : devices) {
        PgkmBackendStatus &line = lines->emplace_back();
        std::snprintf(line.backend, sizeof line.backend, "%s", name);
        line.device = device;
        line.available = device.usable;
    }
}

// Generated kernels want a compiler, which is no part of the driver.
void note_reductions(const PgkmSettings &settings, PgkmDevice *device)
{
    std::string why;
    const PgkmBackend *const table =
        settings.channel > 0 ? pgkm::service::client_backend() : pgkm::cuda_backend(settings.plugin, &why);
    PgkmError error = {};
    if (table != nullptr && table->reduce(nullptr, nullptr, 0, nullptr, nullptr, &error) == PGKM_UNSUPPORTED)
        std::snprintf(device->reason, sizeof device->reason, "reductions of your own run on the CPU: %.200s",
                      error.text);
}

std::vector<PgkmBackendStatus> status_of(const PgkmSettings &settings)
{
    std::vector<PgkmBackendStatus> lines;
    std::string why;
    append("cpu", pgkm::probe(*pgkm::cpu_choice().table, &why), why, &lines);
    why.clear();
    PgkmServiceCounts counts = {};
    append("cuda", probe_cuda(settings, &counts, &why), why, &lines);
    for (PgkmBackendStatus &line : lines) {
        if (std::strcmp(line.backend, "cuda") != 0)
            continue;
        line.served = settings.channel > 0 ? 1 : 0;
        if (line.available != 0)
            note_reductions(settings, &line.device);
        for (std::int32_t i = 0; i < counts.n_devices; ++i) {
            const PgkmDeviceCounts &own = counts.devices[i];
            if (own.ordinal != line.device.ordinal)
                continue;
            line.jobs = own.jobs;
            line.jobs_waiting = own.waiting;
            line.memory_held = own.memory_held;
        }
    }
    return lines;
}

} // namespace

int32_t pgkm_status(const PgkmSettings *settings, PgkmBackendStatus *lines, int32_t capacity)
{
    PgkmError error = {};
    std::int32_t count = 0;
    pgkm::guarded(&error, [&] {
        const std::vector<PgkmBackendStatus> all = status_of(*settings);
        count = static_cast<std::int32_t>(all.size());
        std::copy_n(all.begin(), std::min(count, capacity), lines);
    });
    return count;
}
