// work.hpp - how much work and memory k-means takes; mixtures that begin with it count it, too.
#pragma once

#include "engine/api.h"
#include "engine/backends/work.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// Rows, features and clusters (or components, at most as many as rows) of one fit.
struct Shape {
    double n, d, k;
};
Shape shape_of(const PgkmGroup &group, std::int32_t d);

// Operations (work.hpp of backends) of one fit that never ends before max_iter.
double operations_of_fit(const Shape &fit, const PgkmOptions &options);

// Bytes of host memory that one fit needs; `copied`: for a copy of its rows, too.
double bytes_of_fit(const Shape &fit, PgkmElement element, bool weighted, bool copied);

// How many restarts, of all k, a backend on so many devices gets at once, so that each device does some by
// itself; 1 where that does not pay or cannot be. device_memory: bytes that each may take; 0: not known, which is no
// room.
std::int32_t restarts_at_once(const PgkmRequest &request, std::int32_t devices, std::uint64_t device_memory);

// As Algorithm has them.
Work work_of_clusters(const PgkmRequest &request, const PgkmGroup &group);
double bytes_of_clusters(const PgkmRequest &request, const PgkmGroup &group);

} // namespace pgkm
