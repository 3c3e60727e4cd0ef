// pivots.hpp - rows in an order that brings near ones together, for the tiled kernels and the strips kernels.
//
// A float32 filter errs in proportion to |x - s| |c - s|. With one shift s for all rows, data
// that lies in clumps far apart makes that error larger than the gaps between centroids of
// one clump, and nearly every row must be settled. So rows go to the nearest of a few
// pivots, and each pivot is the shift of its rows; its radius also tells which centroids can
// be nearest to any of its rows at all (triangle inequality), often a small part of them.
// Any pivots are right: the bounds are taken from the rows that a pivot has.
#pragma once

#include <cstdint>

#include "device/pivots.hpp"
#include "plan/stages.hpp"

namespace pgkm::cuda {

// Owner of the memory.
template <typename T>
struct PivotMemory {
    DeviceArray<T> pivots;
    DeviceArray<float> radius;
    DeviceArray<std::int32_t> order;
    DeviceArray<std::int64_t> first_row;
    DeviceArray<std::int64_t> first_tile;
    DeviceArray<std::int32_t> list;
    DeviceArray<float> panel;
    DeviceArray<float> half;
    DeviceArray<std::int32_t> listed;
    DeviceArray<float2> reach;
    DeviceArray<float> scratch;
    PivotedRows<T> rows;
};

// Finds pivots among the n rows at `values` (device memory, n x d, n below 2^31) for k centroids, and orders the rows.
// Waits for the compute stream. PGKM_LIMIT: there is no room for it.
template <typename T>
PivotMemory<T> order_rows(Context &context, const T *values, std::int64_t n, int d, int k);

// One pivot in the middle of the box, for rows that come in chunks.
template <typename T>
PivotMemory<T> one_pivot(Context &context, const Box &box, int d, int k);

// Enqueues the lists, panels and reaches for a set of centroids, k x d on the device.
template <typename T>
void prepare_pivots(const PivotedRows<T> &rows, const T *centroids, int k, int d, const Control *control,
                    cudaStream_t stream);

} // namespace pgkm::cuda
