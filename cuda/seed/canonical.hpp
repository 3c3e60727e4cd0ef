// canonical.hpp - the canonical order of rows (numeric/row_key.hpp): by key, then by content. Errors throw Error:
// PGKM_LIMIT, PGKM_CANCELLED, or a fault of the device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/context.hpp"

namespace pgkm::cuda {

template <typename T>
class SharedRows;

// Rows on the device in the order of their keys, numbered from the first of them.
struct KeyedRows {
    DeviceArray<std::uint64_t> keys;
    DeviceArray<std::uint32_t> rows;
    bool collide; // rows of equal keys differ in content, or, where rows are streamed, may do so
    bool open;    // and they are not in canonical order yet
};

// Rows are numbered in 32 bits while they are seeded.
inline constexpr std::int64_t most_seed_rows = 0xffffffff;

// Sorts n rows (1 to most_seed_rows) by key; nothing where the device has no room for that.
template <typename T>
std::optional<KeyedRows> sort_by_key(Data &data, std::int64_t first_row, std::int64_t n);

// The row at each of a problem's n positions; nothing of entries, which lie in that order.
template <typename T>
NearArray<std::uint32_t> canonical_order(Data &data, std::int64_t first_row, std::int64_t n);

// The row at each position, by the number of SharedRows; PGKM_UNSUPPORTED where the order of equal keys stays open.
template <typename T>
DeviceArray<std::uint32_t> canonical_order(SharedRows<T> &rows);

// rows[i] = i, on the device.
void number_rows(const Context &context, std::int64_t n, std::uint32_t *rows);

// The keys of some loaded rows that are resident, numbered from first_row.
template <typename T>
std::vector<std::uint64_t> keys_of(Data &data, std::int64_t first_row, const std::vector<std::uint32_t> &rows);

// Turns positions into the rows that stand there; without an order they do already.
void look_up_rows(Context &context, const std::uint32_t *order, std::vector<std::int64_t> &positions);

} // namespace pgkm::cuda
