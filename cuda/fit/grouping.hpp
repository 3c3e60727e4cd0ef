// grouping.hpp - rows in an order that brings near ones together, for the tiled kernels.
//
// A float32 filter errs in proportion to |x - s| |c - s|. With one shift s for all rows, data
// that lies in clumps far apart makes that error larger than the gaps between centroids of
// one clump, and nearly every row must be settled. So rows are grouped by the nearest of a few
// anchors, and each group has its own shift; a group's radius also tells which centroids can
// be nearest to any of its rows at all (triangle inequality), often a small part of them.
// Any grouping is right: the bounds are taken from the rows that are in a group.
#pragma once

#include <cstdint>
#include <vector>

#include "plugin/context.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

inline constexpr int most_anchors = 32;
inline constexpr int chain_step = 32; // features summed by themselves before they join the total
inline constexpr int tile_rows = 128; // rows of one block's matrix product

// What kernels read. Without an order rows are taken as they come and there is one group.
template <typename T>
struct Groups {
    int                 count = 0;   // groups; 0: not in use
    const T            *anchors = nullptr;    // count x d: the shifts
    const float        *radius = nullptr;     // count: at least |x - s| of every row
    const std::int32_t *order = nullptr;      // rows, group by group
    const std::int64_t *first_row = nullptr;  // count + 1, in the order
    const std::int64_t *first_tile = nullptr; // count + 1
    std::int64_t        tiles = 0;
    // Remade for every set of centroids: those that can be nearest to a row of the group.
    std::int32_t *list = nullptr;   // count x k: ascending indices
    float        *panel = nullptr;  // count x d x stride: c - s, feature by feature
    float        *half = nullptr;   // count x stride: |c - s|^2 / 2; +infinity beyond the list
    std::int32_t *listed = nullptr; // count
    float        *margin = nullptr; // count x 2: scores this near to the best are settled, for
                                    // products summed in one chain, and in steps of `chain_step`
    float        *scratch = nullptr; // count x k
    int           stride = 0;       // k padded to a multiple of 64
};

// Owner of a grouping's memory.
template <typename T>
struct Grouping {
    DeviceArray<T>            anchors;
    DeviceArray<float>        radius;
    DeviceArray<std::int32_t> order;
    DeviceArray<std::int64_t> first_row;
    DeviceArray<std::int64_t> first_tile;
    DeviceArray<std::int32_t> list;
    DeviceArray<float>        panel;
    DeviceArray<float>        half;
    DeviceArray<std::int32_t> listed;
    DeviceArray<float>        margin;
    DeviceArray<float>        scratch;
    Groups<T>                 groups;
};

// Groups the n rows at `values` (device memory) for k centroids.
template <typename T>
Grouping<T> group_rows(Context &context, const T *values, std::int64_t n, int d, int k);

// One group around the middle of the box, for rows that come in chunks.
template <typename T>
Grouping<T> one_group(Context &context, const Box &box, int d, int k);

// Enqueues the lists, panels and margins for a set of centroids.
template <typename T>
void prepare_groups(const Groups<T> &groups, const T *centroids, int k, int d, const Control *control, cudaStream_t stream);

} // namespace pgkm::cuda
