// registry.hpp - which backends and devices there are, and which may serve a request, in the order to try them.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/api.h"
#include "engine/backends/work.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

struct BackendChoice {
    const PgkmBackend *table;
    std::int32_t device;                    // ordinal for open()
    std::int32_t channel;                   // likewise: to the GPU service; 0: none
    std::vector<std::int32_t> devices = {}; // of a fit over several: likewise, in place of `device`
};

// The CPU, in this process.
BackendChoice cpu_choice();

// The devices of a backend, usable or not; none, with the reason in *why, where it cannot tell.
std::vector<PgkmDevice> probe(const PgkmBackend &table, std::string *why);

// Whether a device comes before the CPU for this much work, if there is one.
bool wants_device(const PgkmSettings &settings, const Work &work);

// The backends to try for this much work, best first. With backend = auto the device comes
// first when it is usable and the work pays for reaching it, and the CPU always stands
// behind it. A device is reached through the GPU service when the settings hold a connection
// to it, otherwise from this process. Throws Error(PGKM_UNAVAILABLE) with the reason when cuda is forced and missing.
std::vector<BackendChoice> choose_backends(const PgkmSettings &settings, const Work &work);

} // namespace pgkm
