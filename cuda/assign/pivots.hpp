// pivots.hpp - rows in an order that brings near ones together, for the tiled kernel and the strips kernel.
//
// A float32 filter errs in proportion to |x - s| |c - s|. With one shift s for all rows, data
// that lies in clumps far apart makes that error larger than the gaps between centroids of
// one clump, and nearly every row must be settled. So rows go to the nearest of a few
// pivots, and each pivot is the shift of its rows; its radius also tells which centroids can
// be nearest to any of its rows at all (triangle inequality), often a small part of them.
// Any pivots are right: the bounds are taken from the rows that a pivot has.
//
// Pivots and order follow from the rows alone, so that they are kept beside loaded rows from one fit to the next, and
// to its labels, as long as nothing else wants the memory.
#pragma once

#include <cstdint>
#include <memory>

#include "device/pivots.hpp"
#include "plan/stages.hpp"

namespace pgkm::cuda {

// What follows from the rows alone.
template <typename T>
struct RowOrder {
    DeviceArray<T> pivots;
    DeviceArray<float> radius;
    DeviceArray<std::int32_t> order;
    DeviceArray<std::int64_t> first_row;
    DeviceArray<std::int64_t> first_tile;
    PivotedRows<T> rows; // without lists
    int most = 1;        // pivots that there might have been

    std::uint64_t bytes() const
    {
        return pivots.bytes() + radius.bytes() + order.bytes() + first_row.bytes() + first_tile.bytes();
    }
};

// Owner of an order and of the lists for k centroids.
template <typename T>
struct PivotMemory {
    std::shared_ptr<RowOrder<T>> order;
    DeviceArray<std::int32_t> list;
    DeviceArray<float> panel;
    DeviceArray<float> half;
    DeviceArray<std::int32_t> listed;
    DeviceArray<float2> reach;
    DeviceArray<float> scratch;
    PivotedRows<T> rows;
};

constexpr int padded_clusters(int k)
{
    return (k + 63) / 64 * 64;
}

// Finds pivots among the n rows at `values` (loaded rows on the device, n x d, n below 2^31, within the box) for k
// centroids, and orders the rows, or takes what an earlier call made of them. May wait for the compute stream.
// PGKM_LIMIT: there is no room.
template <typename T>
PivotMemory<T> order_rows(Context &context, const T *values, std::int64_t n, int d, const Box &box, int k);

// Whether a few rows of these lie much farther out than the others, so that the box says little of where rows are.
// Waits for the compute stream.
template <typename T>
bool has_heavy_tails(Context &context, const T *values, std::int64_t n, int d, const Box &box);

// One pivot in the middle of the box, for rows that come in chunks.
template <typename T>
PivotMemory<T> one_pivot(Context &context, const Box &box, int d, int k);

// Enqueues the lists, panels and reaches for a set of centroids, k x d on the device.
template <typename T>
void prepare_pivots(const PivotedRows<T> &rows, const T *centroids, int k, int d, const Control *control,
                    cudaStream_t stream);

} // namespace pgkm::cuda
