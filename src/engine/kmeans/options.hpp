// options.hpp - checks of what a request may ask for.
#pragma once

#include <cstdint>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Throws Error(PGKM_INVALID) naming the option and what it takes.
void check_options(const PgkmOptions &options, std::int64_t k, std::int32_t d);

} // namespace pgkm
