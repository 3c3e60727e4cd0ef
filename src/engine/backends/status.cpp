// status.cpp - what kmeans_status() lists.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cpu/cpu_backend.hpp"
#include "engine/api.h"
#include "engine/backends/registry.hpp"
#include "numeric/error.hpp"
#include "service/client.hpp"
#include "service/plugin.hpp"

namespace {

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
    if (pgkm::guarded(&error, [&] { devices = pgkm::service::devices(settings.channel, counts); }) != PGKM_OK)
        *why = error.text;
    return devices;
}

// Appends a line for each device, or one that says why there is none.
std::int32_t append(const char *name, std::vector<PgkmDevice> devices, const std::string &why, PgkmBackendStatus *lines,
                    std::int32_t capacity, std::int32_t used)
{
    if (devices.empty()) {
        PgkmDevice none = {};
        none.ordinal = -1;
        std::snprintf(none.reason, sizeof none.reason, "%s", why.empty() ? "no device was found" : why.c_str());
        devices.push_back(none);
    }
    for (const PgkmDevice &device : devices) {
        if (used < capacity) {
            lines[used] = {};
            std::snprintf(lines[used].backend, sizeof lines[used].backend, "%s", name);
            lines[used].device = device;
            lines[used].available = device.usable;
        }
        ++used;
    }
    return used;
}

} // namespace

int32_t pgkm_status(const PgkmSettings *settings, PgkmBackendStatus *lines, int32_t capacity)
{
    PgkmError error = {};
    std::int32_t used = 0;
    pgkm::guarded(&error, [&] {
        std::string why;
        used = append("cpu", pgkm::probe(*pgkm::cpu_backend(), &why), why, lines, capacity, used);
        why.clear();
        PgkmServiceCounts counts = {};
        std::vector<PgkmDevice> devices = probe_cuda(*settings, &counts, &why);
        const std::int32_t first = used;
        used = append("cuda", std::move(devices), why, lines, capacity, used);
        for (std::int32_t i = first; i < std::min(used, capacity); ++i) {
            lines[i].served = settings->channel > 0 ? 1 : 0;
            const auto end = std::begin(counts.devices) + counts.n_devices;
            const auto own = std::find_if(std::begin(counts.devices), end, [&](const PgkmDeviceCounts &one) {
                return one.ordinal == lines[i].device.ordinal;
            });
            if (own == end)
                continue;
            lines[i].jobs = own->jobs;
            lines[i].jobs_waiting = own->waiting;
            lines[i].memory_held = own->memory_held;
        }
    });
    return used;
}
