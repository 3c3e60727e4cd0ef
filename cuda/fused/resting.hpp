// resting.hpp - rows whose cell of a grid lies with one cluster need not be read.
//
// A cell is with centroid j where no point of its box can be as near to another one. Where that was so in
// the iteration before, and is so again, the labels of its rows are what they were, and since sums follow
// the rows (moves.cuh) nothing is left to do. A row at rest costs the two bytes of its cell's
// number instead of its values and its label. This is the pruning of Kanungo et al. 2002, "An efficient
// k-means clustering algorithm" (a cell's candidates), over cells that lie side by side: nothing is known
// of how far centroids went, so that a long way of one does no harm.
#pragma once

#include "plugin/context.hpp"
#include "fit/update.cuh"
#include "fused/cells.hpp"

namespace pgkm::cuda {

inline constexpr int resting_cells = 1 << 16; // at most
inline constexpr int resting_sample = 64;     // one of so many rows is counted
inline constexpr int resting_stride = 512;    // rows that a warp looks at together

// On the device.
struct RestingState : CellState {
    std::int32_t recorded; // iteration that `with` is of
};

// What kernels read.
struct RestingGrid {
    float          low[cells_d];   // of the rows' box
    float          scale[cells_d]; // cells per unit
    double         least[cells_d], most[cells_d]; // of the rows' values
    int            d;
    int            bits;    // of a feature's part of a cell's number
    std::int64_t   sampled; // rows
    std::uint16_t *of_row;  // n, and room for a warp: the row's cell
    std::int32_t  *rows;    // cells: sampled ones
    std::uint8_t  *with;    // cells: the cluster that all of it was with in the last iteration, or 0xff
    std::uint32_t *rest;    // cells / 32: bits of those at rest in the iteration being prepared
    RestingState  *state;
};

// The grid's memory and what the host knows of it.
class RestingCells {
  public:
    // Finds the cells of n rows at `values` (device memory), all within `box`; d <= cells_d.
    RestingCells(Context &context, const float *values, std::int64_t n, int d, const Box &box);

    // Nothing is known of the rows' labels any more.
    void forget(cudaStream_t stream);
    // Enqueues what rests with the current centroids, and whether that serves. Once for each iteration.
    void prepare(const UpdateArguments<float> &arguments, cudaStream_t stream) const;
    const RestingGrid &grid() const { return grid_; }

  private:
    RestingGrid                grid_{};
    DeviceArray<std::uint16_t> of_row_;
    DeviceArray<std::int32_t>  rows_;
    DeviceArray<std::uint8_t>  with_;
    DeviceArray<std::uint32_t> rest_;
    DeviceArray<RestingState>  state_;
};

} // namespace pgkm::cuda
