// leaves_settle.cuh - rows that a leaf's scores do not decide: by the warp, one after the other (leaves.cu).
//
// Leaves that list very many centroids, at the ends of long tails, would keep one warp busy while the others have
// ended. Where sums are the problem's own, some of them are put off: a launch of its own deals their rows out over all
// warps, and compares a row with all centroids.
#pragma once

#include "device/best.cuh"
#include "fused/leaves_lists.cuh"

namespace pgkm::cuda {
namespace {

constexpr int longest_list = 512; // of a leaf that is not put off

// The centroids on a leaf's list: those in the warp's memory, or, where they do not fit, the branch's.
struct Listed {
    const Head *heads; // nullptr: not all are there
    const std::uint16_t *list;

    __device__ int operator()(int i) const { return heads != nullptr ? heads[i].number : int{list[i]}; }
};

struct AllCentroids {
    __device__ int operator()(int i) const { return i; }
};

// The label of one row among `length` centroids, by the warp; number(i) is the i-th of them. Those on a short list get
// the contract's distance. On a long one, only centroids near the least float32 sum of squares do (best.cuh).
template <int D, typename Number>
__device__ __noinline__ int settle(const View<float> &view, const float *row, int length, Number number)
{
    constexpr int long_list = 64;
    Nearest mine = {__longlong_as_double(0x7ff0000000000000LL), 0x7fffffff};
    const auto compare_exactly = [&](int j) {
        const Nearest other = {exact_distance(row, view.centroids + j * view.d, view.d), j};
        if (before(other, mine))
            mine = other;
    };
    if (length <= long_list) {
        for (int i = static_cast<int>(threadIdx.x & 31); i < length; i += 32)
            compare_exactly(number(i));
        return nearest_in_lanes(mine).label;
    }
    float x[D];
    load_row<D>(row, 0, D, x);
    const auto square = [&](int j) {
        float c[D], sum = 0.0f;
        load_centroid<D>(view, j, c);
#pragma unroll
        for (int f = 0; f < D; ++f)
            sum = __fmaf_rn(x[f] - c[f], x[f] - c[f], sum);
        return sum;
    };
    Best best = Best::none(); // of the lane
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x & 31); i < length; i += 32) {
        const int j = number(i);
        best.take(square(j), j);
    }
    const float limit = limit_of_squares(__uint_as_float(__reduce_min_sync(~0u, __float_as_uint(best.least))), D);
    if (!(best.second > limit)) { // more than one of the lane's; NaN is none, for values are finite
        for (int i = static_cast<int>(threadIdx.x & 31); i < length; i += 32)
            if (!(square(number(i)) > limit))
                compare_exactly(number(i));
    } else if (!(best.least > limit)) {
        compare_exactly(best.index);
    }
    return nearest_in_lanes(mine).label;
}

// Puts a leaf off, unless too many are already; by the whole warp.
__device__ inline bool put_off(const LeafRows &leaves, int leaf)
{
    int place = 0;
    if ((threadIdx.x & 31) == 0) {
        place = atomicAdd(&leaves.counts->put_off, 1);
        if (place < leaves.most_put_off)
            leaves.put_off[place] = leaf;
    }
    return __shfl_sync(~0u, place, 0) < leaves.most_put_off;
}

// The rows of the leaves that were put off, a warp a row.
template <int D>
__global__ void __launch_bounds__(threads)
    put_off_kernel(const __grid_constant__ MoveArguments a, const __grid_constant__ LeafRows leaves)
{
    if (block_stopped(a.update.control))
        return;
    const LeafSums sums(a, 0, false);
    sums.prepare(a);
    __syncthreads();
    const int rows = min(leaves.counts->put_off, leaves.most_put_off) * leaf_rows;
    for (int i = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x / 32); i < rows;
         i += static_cast<int>(gridDim.x) * warps) {
        if (__any_sync(~0u, stopped(a.update.control))) // all rows against all centroids can take a second
            return;
        const LeafRange range = leaves.rows_of[leaves.put_off[i / leaf_rows]];
        if (i % leaf_rows >= range.count)
            continue;
        const int row = range.first + i % leaf_rows, last = a.last.get(row);
        const int label = settle<D>(a.view, leaves.values + std::int64_t{row} * D, a.view.k, AllCentroids());
        if (label != last)
            sums.move<D>(a, leaves, Later::entry((threadIdx.x & 31) == 0 ? row : -1, last, label));
    }
}

} // namespace
} // namespace pgkm::cuda
