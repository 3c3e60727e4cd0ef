// row_order.hpp - the canonical order of a problem's rows (numeric/row_key.hpp), made once for loaded rows.
#pragma once

#include <cstdint>

#include "cpu/seed/runner.hpp"

namespace pgkm::cpu {

// Rows are numbered in 32 bits while they are seeded.
using RowNumber = std::uint32_t;

// Throws Error(PGKM_LIMIT) for more rows than RowNumber can count.
void check_row_count(std::int64_t n);

// The key of each row.
template <typename T>
Buffer<std::uint64_t> find_keys(const BlockRunner &runner, const SeedRows<T> &rows);

// The rows by key, then by content. Rows of equal content follow one another.
template <typename T>
Buffer<RowNumber> canonical_order(const BlockRunner &runner, const SeedRows<T> &rows);

} // namespace pgkm::cpu
