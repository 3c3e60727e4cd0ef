// share_rows.hpp - rows that the CPU and the device take from both hands of one dispatcher (Lutz et al. 2018, section
// 5).
#pragma once

#include <functional>

#include "backend/update.hpp"
#include "plugin/context.hpp"

namespace pgkm::cuda {

// Takes the next rows, up to so many, from a problem's; returns the first of them, counted from the problem's first, or
// at least n_rows: there are none left.
using NextRows = std::function<std::int64_t(std::int64_t)>;

// Calls device(next) in this thread, which hands rows to the device until there are none left. Meanwhile other threads
// assign the other rows to k centroids, exactly, and sum them. Returns their sums.
template <typename T>
Sums share_rows(Context &context, const PgkmPoints &points, const PgkmProblem &problem, const T *centroids,
                const std::function<void(const NextRows &)> &device);

} // namespace pgkm::cuda
