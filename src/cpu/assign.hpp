// assign.hpp - assign() of the CPU backend.
#pragma once

#include "cpu/context.hpp"

namespace pgkm::cpu {

// One assignment to the problems' centroids with the sums over it.
void assign(Data &data, const PgkmProblem *problems, std::int64_t n_problems, PgkmAssignment *assignments);

} // namespace pgkm::cpu
