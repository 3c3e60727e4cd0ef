// cpu_backend.hpp - the CPU as a backend: vectorised, threaded, always there.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

const PgkmBackend *cpu_backend();

} // namespace pgkm
