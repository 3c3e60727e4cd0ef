// leaves_order.cu - orders rows by a k-d tree (leaves.hpp, leaves_tree.cuh).
//
// Tree: a stage takes a sample of the rows to the nodes that there are, then a block for each node halves its sample
// again and again at the median of the widest feature (Bentley 1975), a thread a row, by bitonic sorts in shared
// memory. Order: rows are counted by node, counts are added up (CUB), and each row is written to the next place of its
// node. Leaves: leaves_cut.cuh. Boxes: a warp a leaf, a block a branch.
#include <cub/device/device_scan.cuh>

#include "device/warp.cuh"
#include "plan/stages.hpp"
#include "fused/leaves_cut.cuh"
#include "fused/leaves_tree.cuh"
#include "device/carver.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

// Rows of a sample, spread evenly: multiples of the golden ratio.
__device__ inline std::int64_t sampled_row(std::int64_t i, std::int64_t n)
{
    const auto part = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ull;
    return static_cast<std::int64_t>(__umul64hi(part, static_cast<std::uint64_t>(n)));
}

// A row's values in the thread's column of shared memory, where features are chosen by number.
template <int D>
struct Column {
    float *values;

    __device__ void store(const float (&x)[D]) const
    {
#pragma unroll
        for (int f = 0; f < D; ++f)
            values[f * threads + static_cast<int>(threadIdx.x)] = x[f];
    }
    __device__ float operator()(int f) const
    {
        return values[f * threads + static_cast<int>(threadIdx.x)];
    }
};

// Takes `count` rows to the nodes of the tree; a node keeps the first `most` of them.
template <int D>
__global__ void __launch_bounds__(threads)
    sample_kernel(const float *values, std::int64_t n, int d, const __grid_constant__ Tree tree, int count, int most,
                  std::uint32_t *counts, float *samples)
{
    __shared__ std::uint32_t cached[cached_words];
    __shared__ float columns[D * threads];
    cache_tree(tree, cached);
    const Column<D> column = {columns};
    for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < count;
         i += static_cast<int>(gridDim.x) * threads) {
        float x[D];
        load_any_row<D>(values, sampled_row(i, n), d, x);
        column.store(x);
        const int node = descend(tree, cached, column);
        const auto place = static_cast<int>(atomicAdd(counts + node, 1u));
        if (place >= most)
            continue;
        float *to = samples + (std::int64_t{node} * most + place) * D;
#pragma unroll
        for (int f = 0; f < D; ++f)
            to[f] = x[f];
    }
}

// A sampled row by one of its values.
struct Keyed {
    std::int32_t key;
    std::int32_t row;
};

__device__ inline bool before(const Keyed &a, const Keyed &b)
{
    return a.key < b.key || (a.key == b.key && a.row < b.row);
}

// Sorts every run of `size` entries, one a thread, by the whole block. `shared`: one entry a thread.
__device__ inline Keyed sort_runs(Keyed mine, int size, Keyed *shared)
{
    const int self = static_cast<int>(threadIdx.x);
    for (int length = 2; length <= size; length *= 2)
        for (int apart = length / 2; apart > 0; apart /= 2) {
            Keyed other;
            if (apart >= 32) {
                __syncthreads();
                shared[self] = mine;
                __syncthreads();
                other = shared[self ^ apart];
            } else {
                other = {__shfl_xor_sync(~0u, mine.key, apart), __shfl_xor_sync(~0u, mine.row, apart)};
            }
            const bool ascending = (self & length) == 0 || length == size;
            const bool keeps_less = ((self & apart) == 0) == ascending;
            mine = before(other, mine) == keeps_less ? other : mine;
        }
    return mine;
}

// The subtree of each node of one stage, a block a node, a thread a sampled row. Shared memory: D x threads values, an
// entry a thread, and the ranges of up to 32 nodes.
template <int D>
__global__ void __launch_bounds__(1024)
    grow_kernel(const float *samples, const std::uint32_t *counts, int levels, std::uint32_t *words)
{
    extern __shared__ float memory[];
    const int self = static_cast<int>(threadIdx.x), size = static_cast<int>(blockDim.x);
    float *values = memory; // D x size
    auto *entries = reinterpret_cast<Keyed *>(memory + D * size);
    auto *ranges = reinterpret_cast<std::int32_t *>(entries + size); // 32 x D x 2
    const int count = min(static_cast<int>(counts[blockIdx.x]), size);
    std::uint32_t *subtree = words + std::int64_t{blockIdx.x} * subtree_words;
    const float *from = samples + (std::int64_t{blockIdx.x} * size + (count == 0 ? 0 : self % count)) * D;
#pragma unroll
    for (int f = 0; f < D; ++f)
        values[f * size + self] = count == 0 ? 0.0f : from[f];
    __syncthreads();
    int row = self;
    for (int level = 0; level < levels; ++level) {
        const int run = size >> level, node = self / run;
        for (int i = self; i < (1 << level) * D * 2; i += size)
            ranges[i] = i % 2 == 0 ? 0x7fffffff : static_cast<std::int32_t>(0x80000000);
        __syncthreads();
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const std::int32_t key = ordered_bits(__float_as_int(values[f * size + row]));
            std::int32_t *range = ranges + (node * D + f) * 2;
            if (run >= 32) {
                const int low = __reduce_min_sync(~0u, key), high = __reduce_max_sync(~0u, key);
                if (self % 32 == 0) {
                    atomicMin(range, low);
                    atomicMax(range + 1, high);
                }
            } else {
                atomicMin(range, key);
                atomicMax(range + 1, key);
            }
        }
        __syncthreads();
        int widest = 0;
        float width = -1.0f;
        for (int f = 0; f < D; ++f) {
            const std::int32_t *range = ranges + (node * D + f) * 2;
            const float extent = __int_as_float(ordered_bits(range[1])) - __int_as_float(ordered_bits(range[0]));
            widest = extent > width ? f : widest;
            width = fmaxf(width, extent);
        }
        const Keyed sorted = sort_runs({ordered_bits(__float_as_int(values[widest * size + row])), row}, run, entries);
        row = sorted.row;
        if (self % run == run / 2)
            subtree[(1 << level) + node] =
                (static_cast<std::uint32_t>(ordered_bits(sorted.key)) & ~15u) | static_cast<std::uint32_t>(widest);
        __syncthreads();
    }
}

// Counts rows by node, or writes each to the next place of its node.
template <int D, bool Writes>
__global__ void __launch_bounds__(threads)
    order_kernel(const float *values, std::int64_t n, int d, const __grid_constant__ Tree tree, std::uint32_t *places,
                 float *ordered)
{
    __shared__ std::uint32_t cached[cached_words];
    __shared__ float columns[D * threads];
    cache_tree(tree, cached);
    const Column<D> column = {columns};
    const int lane = static_cast<int>(threadIdx.x & 31);
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads; first < n;
         first += std::int64_t{gridDim.x} * threads) {
        const std::int64_t row = first + threadIdx.x;
        float x[D];
        load_any_row<D>(values, min(row, n - 1), d, x);
        column.store(x);
        const int node = row < n ? descend(tree, cached, column) : -1;
        // Rows of one node may be many, and neighbours: a warp adds them at once.
        const unsigned same = __match_any_sync(~0u, node);
        const int leader = __ffs(static_cast<int>(same)) - 1;
        std::uint32_t place = 0;
        if (lane == leader && node >= 0)
            place = atomicAdd(places + node, static_cast<unsigned>(__popc(same)));
        if constexpr (Writes) {
            place = __shfl_sync(~0u, place, leader) + static_cast<unsigned>(lanes_below(same));
            float *to = ordered + std::int64_t{place} * D;
            if (node < 0)
                continue;
            if constexpr (D % 4 == 0) {
#pragma unroll
                for (int f = 0; f < D; f += 4)
                    *reinterpret_cast<float4 *>(to + f) = *reinterpret_cast<const float4 *>(&x[f]);
            } else {
#pragma unroll
                for (int f = 0; f < D; ++f)
                    to[f] = x[f];
            }
        }
    }
}

// Boxes of the leaves of a branch, and the branch's own.
template <int D>
__global__ void __launch_bounds__(threads)
    leaf_boxes_kernel(const __grid_constant__ LeafRows rows, float *boxes, float *branch_boxes)
{
    __shared__ std::int32_t all[2 * D];
    if (static_cast<int>(blockIdx.x) >= rows.counts->branches)
        return;
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    if (threadIdx.x < 2 * D)
        all[threadIdx.x] = threadIdx.x < D ? 0x7fffffff : static_cast<std::int32_t>(0x80000000);
    __syncthreads();
    const LeafRange leaves = rows.leaves_of[blockIdx.x];
    for (int leaf = leaves.first + warp; leaf < leaves.first + leaves.count; leaf += threads / 32) {
        const LeafRange range = rows.rows_of[leaf];
        std::int32_t low[D], high[D];
#pragma unroll
        for (int part = 0; part < leaf_rows / 32; ++part) {
            float x[D];
            load_row<D>(rows.values, range.first + min(part * 32 + lane, range.count - 1), D, x);
#pragma unroll
            for (int f = 0; f < D; ++f) {
                const std::int32_t value = ordered_bits(__float_as_int(x[f]));
                low[f] = part == 0 ? value : min(low[f], value);
                high[f] = part == 0 ? value : max(high[f], value);
            }
        }
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const int least = __reduce_min_sync(~0u, low[f]), most = __reduce_max_sync(~0u, high[f]);
            if (lane == f) {
                boxes[std::int64_t{leaf} * 2 * D + f] = __int_as_float(ordered_bits(least));
                boxes[std::int64_t{leaf} * 2 * D + D + f] = __int_as_float(ordered_bits(most));
                atomicMin(all + f, least);
                atomicMax(all + D + f, most);
            }
        }
    }
    __syncthreads();
    if (threadIdx.x < 2 * D)
        branch_boxes[std::int64_t{blockIdx.x} * 2 * D + threadIdx.x] = __int_as_float(ordered_bits(all[threadIdx.x]));
}

// Sampled rows for each node of a stage, at most, and as many threads.
constexpr int sample_size[tree_stages] = {512, 512, 128};

// What is needed while rows are put in order.
struct Scratch {
    std::uint32_t *words;  // of the tree
    std::uint32_t *places; // one for each of its nodes
    float *samples;        // as many rows as there are
    char *scan;
};

template <int D>
void grow(Context &context, const float *values, std::int64_t n, int d, Tree &tree, const Scratch &scratch)
{
    const cudaStream_t stream = context.compute.get();
    int nodes = 1;
    for (int stage = 0; stage < tree_stages && tree.levels[stage] > 0; ++stage) {
        int size = sample_size[stage];
        while (std::int64_t{nodes} * size > n)
            size /= 2;
        const int count = nodes * size;
        enqueue_fill(scratch.places, 0, static_cast<std::size_t>(nodes) * sizeof *scratch.places, stream);
        enqueue(sample_kernel<D>, blocks_for(count, threads, context.facts.multiprocessors * 4), threads, 0, stream,
                values, n, d, tree, count, size, scratch.places, scratch.samples);
        const std::size_t bytes = static_cast<std::size_t>(size) * (D * 4 + sizeof(Keyed)) + 32 * D * 2 * 4;
        enqueue(grow_kernel<D>, nodes, size, bytes, stream, scratch.samples, scratch.places, tree.levels[stage],
                tree.words + stage_begin(stage));
        nodes <<= tree.levels[stage];
        tree.stages = stage + 1;
    }
}

// About two nodes for a leaf.
Tree plan_tree(std::int64_t n)
{
    Tree tree{};
    int levels = 1;
    while (levels < tree_stages * stage_levels && (n / leaf_rows) >> (levels - 1) > 0)
        ++levels;
    for (int &stage : tree.levels) {
        stage = std::min(levels, stage_levels);
        levels -= stage;
    }
    return tree;
}

} // namespace

Leaves::Leaves(Context &context, const float *values, std::int64_t n, int d, int k)
{
    constexpr int few_clusters = 256;
    const bool full = k <= few_clusters;
    const cudaStream_t stream = context.compute.get();
    rows_.n = static_cast<std::int32_t>(n);
    rows_.stride = leaf_stride(d);
    Tree tree = plan_tree(n);
    const int levels = tree.levels[0] + tree.levels[1] + tree.levels[2];
    const std::size_t nodes = std::size_t{1} << levels;
    const auto subtrees = static_cast<std::int32_t>(nodes);
    rows_.per_branch = most_per_branch;
    while (rows_.per_branch > least_per_branch && subtrees / rows_.per_branch < 10 * context.facts.multiprocessors)
        rows_.per_branch /= 2;
    rows_.leaves = full ? (rows_.n + leaf_rows - 1) / leaf_rows : subtrees + rows_.n / leaf_rows;
    rows_.most_put_off = rows_.n / leaf_rows / 64 + 1;
    rows_.per_branch /= full ? 2 : 1; // a leaf has about two nodes
    rows_.branches = rows_.leaves / rows_.per_branch + (full ? 1 : subtrees / rows_.per_branch);
    std::size_t scan_bytes = 0;
    Scratch scratch{};
    const auto scan = [&] {
        return cub::DeviceScan::ExclusiveSum(scratch.scan, scan_bytes, scratch.places, scratch.places,
                                             static_cast<int>(nodes), stream);
    };
    checked("cub::DeviceScan", scan);
    const auto stride = static_cast<std::size_t>(rows_.stride), leaves = static_cast<std::size_t>(rows_.leaves);
    std::size_t used = 0;
    float *ordered = nullptr, *boxes = nullptr, *branch_boxes = nullptr;
    LeafRange *rows_of = nullptr, *leaves_of = nullptr;
    LeafCounts *counts = nullptr;
    const auto carve = [&] { // twice: to know the size, and with the memory
        Carver carver(memory_.get());
        const auto take = [&](auto *&array, std::size_t count) {
            array = carver.take<std::remove_pointer_t<std::remove_reference_t<decltype(array)>>>(count);
        };
        take(ordered, static_cast<std::size_t>(n) * stride);
        take(boxes, leaves * 2 * stride);
        take(branch_boxes, static_cast<std::size_t>(rows_.branches) * 2 * stride);
        take(rows_.sole, leaves);
        take(rows_of, leaves);
        take(leaves_of, static_cast<std::size_t>(rows_.branches));
        take(counts, 1);
        take(rows_.put_off, static_cast<std::size_t>(rows_.most_put_off));
        take(scratch.words, stage_begin(2) + (levels > 2 * stage_levels ? std::size_t{1} << 18 : 0));
        take(scratch.places, nodes);
        take(scratch.scan, scan_bytes);
        used = carver.used();
    };
    carve();
    memory_ = DeviceArray<char>(context.budget, used);
    carve();
    scratch.samples = ordered; // not written yet
    tree.words = scratch.words;
    with_leaf_stride(d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        grow<D>(context, values, n, d, tree, scratch);
        const int blocks = blocks_for(n, threads, context.facts.multiprocessors * 8);
        enqueue_fill(scratch.places, 0, nodes * sizeof *scratch.places, stream);
        enqueue(order_kernel<D, false>, blocks, threads, 0, stream, values, n, d, tree, scratch.places, nullptr);
        checked("cub::DeviceScan", scan);
        if (full) {
            enqueue(full_leaves_kernel, rows_.leaves / threads + 1, threads, 0, stream, rows_.n, rows_.per_branch,
                    rows_of, leaves_of, counts);
        } else {
            enqueue_fill(counts, 0, sizeof *counts, stream);
            enqueue(cut_kernel, nodes / static_cast<std::size_t>(rows_.per_branch), most_per_branch, 0, stream,
                    scratch.places, rows_.n, static_cast<int>(nodes), rows_.per_branch, rows_of, leaves_of, counts);
        }
        enqueue(order_kernel<D, true>, blocks, threads, 0, stream, values, n, d, tree, scratch.places, ordered);
        rows_.values = ordered;
        rows_.rows_of = rows_of;
        rows_.leaves_of = leaves_of;
        rows_.counts = counts;
        enqueue(leaf_boxes_kernel<D>, rows_.branches, threads, 0, stream, rows_, boxes, branch_boxes);
    });
    rows_.boxes = boxes;
    rows_.branch_boxes = branch_boxes;
}

void Leaves::forget(cudaStream_t stream)
{
    enqueue_fill(rows_.sole, 0xff, static_cast<std::size_t>(rows_.leaves) * sizeof *rows_.sole, stream);
}

} // namespace pgkm::cuda
