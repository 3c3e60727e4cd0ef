// moments.hpp - the CPU backend's moments().
#pragma once

#include "backend/cpu/context.hpp"

namespace pgkm::cpu {

void moments(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmMoments *moments);

} // namespace pgkm::cpu
