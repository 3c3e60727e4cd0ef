// size_bounds.hpp - how many rows a cluster may have: options min_size and max_size.
#pragma once

#include <cstdint>

#include "engine/api.h"
#include "numeric/platform.hpp"

namespace pgkm {

inline bool sizes_are_bounded(const PgkmOptions &options)
{
    return options.min_size != 0.0 || options.max_size != 0.0;
}

// Of k clusters over n rows. Below 1 an option is a share of the rows: min_size is rounded up then, max_size down, so
// that sizes keep within the share. No cluster is empty. Throws Error(PGKM_INVALID) saying why it cannot be.
PgkmSizeBounds size_bounds(const PgkmOptions &options, std::int64_t n, std::int64_t k);

} // namespace pgkm
