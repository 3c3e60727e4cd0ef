// leaves_lists.cuh - which centroids can be nearest to some row of a branch or a leaf (leaves.hpp), and what a block of
// leaves.cu holds in shared memory.
//
// A branch's list is made by the whole block from all centroids, between barriers; a leaf's by a warp from its
// branch's.
#pragma once

#include "device/warp.cuh"
#include "fused/leaves_moves.cuh"
#include "fused/leaves_reach.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int per_lane = leaf_rows / 32;
constexpr int waiting = leaf_rows + 31; // rows in a warp's queue
constexpr int panel_size = 256;         // centroids of a branch's list that are held in shared memory
constexpr int batch = 64;               // of a leaf's list, compared at a time

// A centroid on a leaf's list: half the square of its distance from the leaf's middle, and its number.
struct alignas(8) Head {
    float half;
    std::int32_t number;
};

// A warp's own memory.
template <int D>
struct alignas(16) WarpMemory {
    BoxTest<D> box;
    float values[batch * D]; // relative to the leaf's middle
    Head heads[batch];
    Later::Entry moved[waiting + 1];
};

// The block's memory, in this order; sums follow.
template <int D>
struct Memory {
    WarpMemory<D> *warp; // of this warp
    BoxTest<D> *box;     // the branch's
    float *panel;        // panel_size x D: values of the list's first centroids
    std::uint16_t *list; // k: the branch's list

    __device__ Memory()
    {
        auto *at = reinterpret_cast<char *>(shared_words(0));
        warp = reinterpret_cast<WarpMemory<D> *>(at) + threadIdx.x / 32;
        at += sizeof(WarpMemory<D>) * warps;
        box = reinterpret_cast<BoxTest<D> *>(at);
        panel = reinterpret_cast<float *>(at + sizeof(BoxTest<D>));
        list = reinterpret_cast<std::uint16_t *>(panel + panel_size * D);
    }
    static constexpr __host__ __device__ std::size_t bytes(int k)
    {
        return sizeof(WarpMemory<D>) * warps + sizeof(BoxTest<D>) + panel_size * D * 4 +
               (static_cast<std::size_t>(k) + 7) / 8 * 16;
    }
};

template <int D>
__device__ inline void load_centroid(const View<float> &view, int j, float (&c)[D])
{
#pragma unroll
    for (int f = 0; f < D; ++f)
        c[f] = f < view.d ? view.centroids[j * view.d + f] : 0.0f;
}

template <int D>
__device__ inline void read_values(const float *from, float (&to)[D])
{
    load_row<D>(from, 0, D, to);
}

// A number and how near it is, by a word that orders like it.
struct Near {
    unsigned distance; // bits of a float that is not negative; NaN is far
    int number;

    __device__ void take(float other, int its_number)
    {
        number = __float_as_uint(other) < distance ? its_number : number;
        distance = min(distance, __float_as_uint(other));
    }
    // The nearest of the warp's.
    __device__ Near of_warp() const
    {
        const unsigned least = __reduce_min_sync(~0u, distance);
        return {least, __shfl_sync(~0u, number, __ffs(static_cast<int>(__ballot_sync(~0u, distance == least))) - 1)};
    }
};

// The list of a branch, by the whole block; returns its length.
template <int D>
__device__ int list_branch(const MoveArguments &a, const LeafRows &rows, const Memory<D> &memory, int branch)
{
    __shared__ Near nearest[warps];
    __shared__ int length;
    const int self = static_cast<int>(threadIdx.x), lane = self & 31, k = a.view.k;
    __syncthreads(); // all are done with the branch before
    if (self < D) {
        const float *box = rows.branch_boxes + std::int64_t{branch} * 2 * D;
        memory.box->ends[self].low = box[self];
        memory.box->ends[self].high = box[D + self];
    }
    if (self == 0)
        length = 0;
    __syncthreads();
    Near mine = {~0u, 0};
    for (int j = self; j < k; j += threads) {
        float c[D];
        load_centroid<D>(a.view, j, c);
        mine.take(memory.box->from_middle(c), j);
    }
    mine = mine.of_warp();
    if (lane == 0)
        nearest[self / 32] = mine;
    __syncthreads();
    if (self < 32) {
        const int pivot = (lane < warps ? nearest[lane] : Near{~0u, 0}).of_warp().number;
        if (lane < D)
            memory.box->measure(lane, lane < a.view.d ? a.view.centroids[pivot * a.view.d + lane] : 0.0f);
    }
    __syncthreads();
    for (int first = self - lane; first < k; first += threads) {
        const int j = first + lane;
        float c[D];
        load_centroid<D>(a.view, min(j, k - 1), c);
        const bool taken = j < k && memory.box->reaches(c);
        const int place = append_by_warp(&length, taken);
        if (!taken)
            continue;
        memory.list[place] = static_cast<std::uint16_t>(j);
        if (place < panel_size)
#pragma unroll
            for (int f = 0; f < D; ++f)
                memory.panel[place * D + f] = c[f];
    }
    __syncthreads();
    return length;
}

// A centroid of the branch's list.
template <int D>
__device__ inline void listed_centroid(const MoveArguments &a, const Memory<D> &memory, int place, float (&c)[D])
{
    if (place < panel_size)
        read_values<D>(memory.panel + place * D, c);
    else
        load_centroid<D>(a.view, memory.list[place], c);
}

// The box of a leaf, and from which of the branch's list of `length` others are measured; returns its place there.
template <int D>
__device__ int open_leaf(const MoveArguments &a, const LeafRows &rows, const Memory<D> &memory, int leaf, int length)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    WarpMemory<D> &own = *memory.warp;
    __syncwarp();
    if (lane < D) {
        const float *box = rows.boxes + std::int64_t{leaf} * 2 * D;
        own.box.ends[lane].low = box[lane];
        own.box.ends[lane].high = box[D + lane];
    }
    __syncwarp();
    Near mine = {~0u, 0};
    for (int place = lane; place < length; place += 32) {
        float c[D];
        listed_centroid<D>(a, memory, place, c);
        mine.take(own.box.from_middle(c), place);
    }
    const int pivot = mine.of_warp().number;
    if (lane < D) {
        const float value = pivot < panel_size ? memory.panel[pivot * D + lane]
                            : lane < a.view.d  ? a.view.centroids[memory.list[pivot] * a.view.d + lane]
                                               : 0.0f;
        own.box.measure(lane, value);
    }
    __syncwarp();
    return pivot;
}

// Writes centroid c to place `at` of the warp's memory; returns half its squared length there.
template <int D>
__device__ inline float write_centroid(WarpMemory<D> &own, int at, int number, const float (&c)[D])
{
    float square = 0.0f;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        const float centred = c[f] - own.box.middle(f);
        own.values[at * D + f] = centred;
        square = __fmaf_rn(centred, centred, square);
    }
    own.heads[at] = {0.5f * square, number};
    return 0.5f * square;
}

} // namespace
} // namespace pgkm::cuda
