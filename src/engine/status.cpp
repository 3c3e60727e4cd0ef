// status.cpp - what kmeans_status() lists.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "backend/cpu/cpu_backend.hpp"
#include "backend/plugin.hpp"
#include "engine/api.h"
#include "engine/error.hpp"

namespace {

// Appends the devices of one table, or one line that says why there is none.
std::int32_t append(const char *name, const PgkmBackend *table, const std::string &why, PgkmBackendStatus *lines,
                    std::int32_t capacity, std::int32_t used)
{
    std::array<PgkmDevice, 64> devices = {};
    std::int32_t count = 0;
    PgkmError error = {};
    if (table == nullptr)
        pgkm::set_error(&error, PGKM_UNAVAILABLE, why.c_str());
    else
        table->probe(devices.data(), static_cast<std::int32_t>(devices.size()), &count, &error);
    if (count == 0) {
        count = 1;
        devices[0] = {};
        devices[0].ordinal = -1;
        const std::string reason = error.text[0] != '\0' ? error.text : "no device was found";
        reason.copy(devices[0].reason, sizeof devices[0].reason - 1);
    }
    for (std::int32_t i = 0; i < std::min<std::int32_t>(count, static_cast<std::int32_t>(devices.size())); ++i, ++used) {
        if (used >= capacity)
            continue;
        lines[used] = {};
        std::snprintf(lines[used].backend, sizeof lines[used].backend, "%s", name);
        lines[used].device = devices[static_cast<std::size_t>(i)];
        lines[used].available = lines[used].device.usable;
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
        used = append("cpu", pgkm::cpu_backend(), "", lines, capacity, used);
        const PgkmBackend *cuda = pgkm::cuda_backend(settings->plugin_directory, &why);
        used = append("cuda", cuda, why, lines, capacity, used);
    });
    return used;
}
