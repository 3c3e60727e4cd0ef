// batch_order.hpp - the order of rows that mini-batches are cut from.
//
// It depends on the rows' contents and the seed, not on the order in which they arrive: rows are sorted by a hash of
// their bits. Rows that repeat are spread: the rank of each among its equals goes into its hash, too.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// What the order costs for each row while it is made, in bytes.
inline constexpr double bytes_per_ordered_row = 32.0;

// Rows first .. first + n - 1 in that order, counted from `first`. Asks poll(), which
// may throw, every few milliseconds. With labels, of all points, these are a part of the contents of rows.
std::vector<std::int64_t> batch_order(const PgkmPoints &points, std::int64_t first, std::int64_t n, std::uint64_t seed,
                                      const std::function<void()> &poll, const std::int32_t *labels = nullptr);

} // namespace pgkm
