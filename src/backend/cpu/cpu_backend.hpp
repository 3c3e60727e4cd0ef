// cpu_backend.hpp - the vectorised, threaded CPU implementation of the backend table.
#pragma once

#include "backend/backend.h"
#include "engine/platform.hpp"

namespace pgkm {

// The table; always there.
const PgkmBackend *cpu_backend();

} // namespace pgkm
