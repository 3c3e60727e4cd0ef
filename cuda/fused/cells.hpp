// cells.hpp - rows of few features in the cells of a grid: each cell has a list of the centroids
// that can be nearest to one of its rows, so that a row is compared with few of many centroids.
//
// Rows do not move: the box around the rows of a cell is taken once for a fit. In each iteration
// the centroid nearest to the middle of a box (any would do) leaves out every other centroid that
// is farther than it from all points of the box. The squared distance to one centroid less that to
// another is linear in each feature, so that its bounds over a box lie at the box's ends.
#pragma once

#include "plan/choose.hpp"
#include "plugin/context.hpp"
#include "sums/update.cuh"

namespace pgkm::cuda {

inline constexpr int cell_list = 31;   // most centroids of a list; a longer one means all of them
inline constexpr int cell_sample = 16; // one of so many rows is counted

// On the device.
struct CellState {
    unsigned long long candidates; // of the sampled rows, in the iteration being prepared
    std::uint32_t arrived;         // blocks that are done
    std::int32_t serves;           // lists are short enough for this iteration
    std::int32_t again;            // iteration that lists are made in again, after they were not
    std::uint32_t occupied;        // cells with rows
};

// What kernels read.
struct CellGrid {
    float low[cells_d];   // of the rows' box
    float scale[cells_d]; // cells per unit
    int d;
    int bits;               // of a feature's part of a cell's number
    std::int64_t sampled;   // rows
    std::int32_t *boxes;    // cells x 2 x padded features: least and largest values, as ordered_bits()
    std::int32_t *rows;     // cells: sampled ones
    std::int32_t *occupied; // numbers of cells with rows
    uint4 *heads;           // cells: eight 16-bit numbers, the length of the list and its first 7
    uint4 *tails;           // cells x 3: the other 24
    CellState *state;
};

// Features as the kernels are built for.
constexpr int padded_d(int d)
{
    return d <= 2 ? d : d <= 4 ? 4 : 8;
}

// The grid's memory and what the host knows of it.
class Cells {
  public:
    // Takes the boxes of n rows at `values` (device memory), all within `box`.
    Cells(Context &context, const float *values, std::int64_t n, int d, const Box &box);

    // Nothing is known of the centroids any more.
    void forget(cudaStream_t stream);
    // Enqueues the lists for the current centroids, and whether they serve.
    void prepare(const UpdateArguments<float> &arguments, int multiprocessors, cudaStream_t stream) const;
    const CellGrid &grid() const { return grid_; }

  private:
    void divide_box(const Box &box);

    CellGrid grid_{};
    DeviceArray<std::int32_t> boxes_, rows_, occupied_;
    DeviceArray<uint4> heads_, tails_;
    DeviceArray<CellState> state_;
};

} // namespace pgkm::cuda
