// pivots.hpp - float32 rows in an order that brings near ones together, for the strips kernel.
//
// A float32 filter errs in proportion to |x - s| |c - s|. With one shift s for all rows, data
// that lies in clumps far apart makes that error larger than the gaps between centroids of
// one clump, and nearly every row must be settled. So rows go to the nearest of a few
// pivots, and each pivot is the shift of its rows; its radius also tells which centroids can
// be nearest to any of its rows at all (triangle inequality), often a small part of them.
// Any pivots are right: the bounds are taken from the rows that a pivot has.
//
// Pivots and order follow from the rows alone, so that they are kept beside loaded rows from one fit to the next, as
// long as nothing else wants the memory.
#pragma once

#include <cstdint>
#include <memory>

#include "device/pivots.hpp"
#include "plan/stages.hpp"

namespace pgkm::cuda {

struct RowOrder {
    DeviceArray<float> pivots;
    DeviceArray<float> radius;
    DeviceArray<std::int32_t> order;
    DeviceArray<std::int64_t> first_row;
    PivotedRows rows;

    std::uint64_t bytes() const { return pivots.bytes() + radius.bytes() + order.bytes() + first_row.bytes(); }
};

// Finds pivots among the n rows at `values` (loaded rows on the device, n x d, 16 < d <= 64, n below 2^31, within the
// box), and orders the rows, or takes what an earlier call made of them. May wait for the compute stream. PGKM_LIMIT:
// there is no room.
std::shared_ptr<RowOrder> order_rows(Context &context, const float *values, std::int64_t n, int d, const Box &box);

// Whether a few rows of these lie much farther out than the others, so that the box says little of where rows are.
// Waits for the compute stream.
bool has_heavy_tails(Context &context, const float *values, std::int64_t n, int d, const Box &box);

} // namespace pgkm::cuda
