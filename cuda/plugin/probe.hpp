// probe.hpp - which devices there are, and which of them this build can use.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace pgkm::cuda {

// The table's probe().
PgkmStatus probe(PgkmDevice *devices, std::int32_t capacity, std::int32_t *count, PgkmError *error);

} // namespace pgkm::cuda
