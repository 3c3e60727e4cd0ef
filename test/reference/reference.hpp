// reference.hpp - the definition of every result, as a backend: one thread, no blocking,
// no filter, nothing clever. Tests compare every other backend with it by ==.
#pragma once

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// The table of the reference; usable wherever a backend is. Its context ignores tuning.
const PgkmBackend *reference_backend();

} // namespace pgkm
