// leaves_cut.cuh - cuts rows that lie in the order of a k-d tree's nodes into leaves and branches (leaves.hpp).
//
// A block takes the subtree of a branch, a thread a node. A thread looks up the tree for the largest subtree with its
// node whose rows one leaf takes; the first node of such a subtree writes the leaf. Where leaves and branches lie in
// memory depends on which block comes first; what they hold does not.
//
// With few clusters a list is short whatever its box: leaves are then full ones, and begin where the last one ended.
#pragma once

#include <cub/block/block_scan.cuh>

#include "fused/leaves.hpp"

namespace pgkm::cuda {
namespace {

constexpr int most_per_branch = 64, least_per_branch = 16; // nodes, and leaves

// Rows of a node begin at places[node]; `size` nodes are a branch.
__global__ void __launch_bounds__(most_per_branch)
    cut_kernel(const std::uint32_t *places, int n, int nodes, int size, LeafRange *rows_of, LeafRange *leaves_of,
               LeafCounts *counts)
{
    using Scan = cub::BlockScan<int, most_per_branch>;
    __shared__ typename Scan::TempStorage scan;
    __shared__ LeafRange rows[most_per_branch]; // of the leaves that begin with a node
    __shared__ int ends[most_per_branch];       // leaves of a node and those before it
    __shared__ LeafCounts before;               // of other subtrees
    const int self = static_cast<int>(threadIdx.x), first = static_cast<int>(blockIdx.x) * size;
    const auto begin_of = [&](int node) { return node < nodes ? static_cast<int>(places[node]) : n; };
    LeafRange own = {0, 0};
    if (self < size) {
        int width = 1; // nodes of the largest subtree with this one whose rows a leaf takes
        const auto rows_within = [&](int count) {
            const int begin = first + self / count * count;
            return begin_of(begin + count) - begin_of(begin);
        };
        while (width < size && rows_within(2 * width) <= leaf_rows)
            width *= 2;
        if (self % width == 0)
            own = {begin_of(first + self), rows_within(width)};
    }
    int end, total;
    Scan(scan).InclusiveSum((own.count + leaf_rows - 1) / leaf_rows, end, total);
    rows[self] = own;
    ends[self] = end;
    if (self == 0)
        before = {atomicAdd(&counts->leaves, total), atomicAdd(&counts->branches, (total + size - 1) / size), 0};
    __syncthreads();
    for (int leaf = self; leaf < total; leaf += most_per_branch) {
        int node = 0; // the first one whose leaves end behind this one
        for (int step = most_per_branch / 2; step > 0; step /= 2)
            node += ends[node + step - 1] <= leaf ? step : 0;
        const int done = (leaf - (node == 0 ? 0 : ends[node - 1])) * leaf_rows;
        rows_of[before.leaves + leaf] = {rows[node].first + done, min(rows[node].count - done, leaf_rows)};
    }
    for (int branch = self; branch * size < total; branch += most_per_branch)
        leaves_of[before.branches + branch] = {before.leaves + branch * size, min(total - branch * size, size)};
}

// Leaf by leaf of leaf_rows rows each.
__global__ void __launch_bounds__(256)
    full_leaves_kernel(int n, int per_branch, LeafRange *rows_of, LeafRange *leaves_of, LeafCounts *counts)
{
    const int leaf = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), leaves = (n + leaf_rows - 1) / leaf_rows;
    if (leaf == 0)
        *counts = {leaves, (leaves + per_branch - 1) / per_branch, 0};
    if (leaf >= leaves)
        return;
    rows_of[leaf] = {leaf * leaf_rows, min(n - leaf * leaf_rows, leaf_rows)};
    if (leaf % per_branch == 0)
        leaves_of[leaf / per_branch] = {leaf, min(leaves - leaf, per_branch)};
}

} // namespace
} // namespace pgkm::cuda
