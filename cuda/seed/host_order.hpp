// host_order.hpp - what the canonical order of rows needs of the host.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/context.hpp"

namespace pgkm::cuda {

struct HostOrder {
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> rows;

    static constexpr std::uint64_t row_bytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
};

// n rows by key, then by content; while it works it holds twice its memory. Both throw PGKM_CANCELLED.
template <typename T>
HostOrder order_on_host(const Context &context, const T *values, std::int64_t n, std::int32_t d);

// Puts rows of equal keys, which follow each other, in the order of their contents.
template <typename T>
void order_equal_keys(const Context &context, const T *values, std::int32_t d, HostOrder &order);

} // namespace pgkm::cuda
