// reduction.hpp - what a user's reduction means (src/backend/reduction.h), in the plainest code: one row after the
// other, one expression at a time, nothing remembered.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// Fills `out`. Throws Error(PGKM_INVALID) with out.fault set where a row or a total fails.
void reference_reduce(const std::vector<std::vector<double>> &rows, const PgkmReduction &program, PgkmReduced &out);

template <typename T>
void reference_reduce_of(const PgkmPoints &points, const PgkmProblem &problem, const PgkmReduction &program,
                         PgkmReduced &out)
{
    std::vector<std::vector<double>> rows;
    for (std::int64_t i = 0; i < problem.n_rows; ++i) {
        const T *const row = static_cast<const T *>(points.values) + (problem.first_row + i) * points.d;
        rows.emplace_back(row, row + points.d);
    }
    reference_reduce(rows, program, out);
}

} // namespace pgkm
