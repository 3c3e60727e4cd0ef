// work.hpp - how much work and memory mixtures take, as Algorithm has them.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

Work work_of_mixture(const PgkmRequest &request, const PgkmGroup &group);
double bytes_of_mixture(const PgkmRequest &request, const PgkmGroup &group);
double fixed_bytes_of_mixtures(const PgkmRequest &request, double rows);

} // namespace pgkm
