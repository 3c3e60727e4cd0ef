// lloyd.hpp - fit() of the CPU backend.
#pragma once

#include "cpu/context.hpp"

namespace pgkm::cpu {

// Lloyd's iterations for every problem; results go to the problems.
void fit(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmFitParams &params);

} // namespace pgkm::cpu
