// registry.hpp - which backends may serve a request, in the order to try them.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/api.h"
#include "numeric/platform.hpp"
#include "engine/job/work.hpp"

namespace pgkm {

struct BackendChoice {
    const PgkmBackend *table;
    std::int32_t       device;  // ordinal for open()
    std::int32_t       channel; // likewise: to the GPU service; 0: none
};

// Whether a device comes before the CPU for this much work, if there is one.
bool wants_device(const PgkmSettings &settings, const Work &work);

// The backends to try for this much work, best first. With backend = auto the device comes
// first when it is usable and the work pays for reaching it, and the CPU always stands
// behind it. A device is reached through the GPU service when the settings hold a connection
// to it, otherwise from this process. Throws Error(PGKM_UNAVAILABLE) with the reason when cuda is forced and missing.
std::vector<BackendChoice> choose_backends(const PgkmSettings &settings, const Work &work);

// The first usable CUDA device that the settings allow: its ordinal, or -1 with the reason.
std::int32_t find_device(const PgkmBackend &table, std::int32_t wanted, std::string *why);

} // namespace pgkm
