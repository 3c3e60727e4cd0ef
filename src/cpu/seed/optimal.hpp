// optimal.hpp - the optimum of k-means over one feature, by dynamic programming.
#pragma once

#include "cpu/seed/row_order.hpp"

namespace pgkm::cpu {

// Sets the problem's centroids, ascending, to the means of the best clusters of its rows, whose canonical order this
// is. k becomes the number of distinct values where these are fewer. Throws Error(PGKM_UNSUPPORTED) for more than one
// feature.
template <typename T>
void seed_optimum(const BlockRunner &runner, const PgkmPoints &points, PgkmProblem &problem, const SeedRows<T> &rows,
                  const Buffer<RowNumber> &order);

} // namespace pgkm::cpu
