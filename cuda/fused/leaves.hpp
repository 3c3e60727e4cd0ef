// leaves.hpp - rows of few features in the order of a k-d tree, cut into leaves. The rows of a leaf lie close together,
// so that few of many centroids can be nearest to one of them.
//
// A leaf has the rows of the largest subtree that has at most leaf_rows of them. (A leaf that begins in one subtree and
// ends in the next would have a box as wide as both.) A branch has the leaves of a subtree of a fixed number of nodes.
// A node of more rows than a leaf takes is cut into several leaves; a subtree of many leaves into several branches.
// Where there are few clusters, leaves are full ones instead (leaves_cut.cuh).
//
// The order is made once for a fit. In each iteration a leaf lists the centroids in reach of its box: the filtering
// algorithm of Kanungo et al. (2002), down two levels, branches and leaves.
#pragma once

#include "plan/stages.hpp"

namespace pgkm::cuda {

inline constexpr int leaf_rows = 128; // at most
inline constexpr int no_centroid = 0xffff;

// Rows of a leaf, or leaves of a branch.
struct LeafRange {
    std::int32_t first;
    std::int32_t count;
};

// How many there are; the device alone knows.
struct LeafCounts {
    std::int32_t leaves;
    std::int32_t branches;
    std::int32_t put_off; // by the last iteration, or more than there is room for
};

// What kernels read.
struct LeafRows {
    const float *values;        // n x stride: the rows in order, zeros from feature d on
    const float *boxes;         // leaves x 2 x stride: least and greatest values
    const float *branch_boxes;  // branches x 2 x stride
    std::uint16_t *sole;        // leaves: the one centroid that the last iteration listed, or no_centroid
    const LeafRange *rows_of;   // leaves
    const LeafRange *leaves_of; // branches
    LeafCounts *counts;
    std::int32_t *put_off; // most_put_off: leaves whose rows a launch of its own sees to
    std::int32_t n;
    std::int32_t leaves;     // room for so many
    std::int32_t branches;   // the same
    std::int32_t per_branch; // leaves, at most
    std::int32_t most_put_off;
    std::int32_t stride;
};

// Features as the kernels are built for, which is how far apart rows lie.
constexpr int leaf_stride(int d)
{
    return d <= 2 ? d : (d + 3) / 4 * 4;
}

// Calls body(std::integral_constant) with the stride.
template <typename Body>
void with_leaf_stride(int d, Body &&body)
{
    with_size<1, 2, 4, leaves_d>(d, body);
}

// The rows' memory.
class Leaves {
  public:
    // Orders n < 2^31 rows of d features at `values` (device memory), for about k clusters.
    Leaves(Context &context, const float *values, std::int64_t n, int d, int k);

    // Nothing is known of the centroids any more.
    void forget(cudaStream_t stream);
    const LeafRows &rows() const { return rows_; }

  private:
    LeafRows rows_{};
    DeviceArray<char> memory_; // one block: to allocate and free it takes longer than to order a million rows
};

} // namespace pgkm::cuda
