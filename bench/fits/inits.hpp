// inits.hpp - k-means++ beside k-means||: time and inertia of whole fits over many seeds, and which one 'auto' takes.
#pragma once

#include "engine/api.h"
#include "lines.hpp"
#include "rows.hpp"

namespace bench {

// Fits a line with default options, with each init and the seeds 0 .. seeds - 1, and prints a line of a table for each
// init: least, median and most of the milliseconds of the seeding and of all, and of the inertia. On the CPU these are
// milliseconds of processor time.
void compare_inits(const Line &line, const Rows &rows, const PgkmSettings &settings, int seeds);

} // namespace bench
