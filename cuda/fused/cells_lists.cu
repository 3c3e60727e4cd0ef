// cells_lists.cu (fused) - the boxes of a grid's cells and, for every set of centroids, their lists (cells.hpp).
//
// Boxes: a row a thread, minima and maxima by atomics on integers that order like the floats. Lists: a warp a cell; it
// finds the centroid nearest to the middle of the box, then tests 32 centroids at a time.
#include <cmath>

#include "plugin/check.hpp"
#include "plan/stages.hpp"
#include "fused/cells.cuh"
#include "fused/finish.cuh"
#include "device/load_row.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;
// Lists are worth their making where they leave a row at most 1 of so many centroids.
constexpr int least_gain = 6;
constexpr int pause = 16; // iterations

constexpr int most_bits = 20; // of a cell's number
constexpr int unlisted = 0xffff;

template <int D>
struct alignas(D == 1 ? 8 : 16) BoxBits {
    std::int32_t low[D], high[D];
};

__global__ void empty_boxes_kernel(std::int32_t *boxes, std::int64_t words, int d)
{
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < words;
         i += std::int64_t{gridDim.x} * threads)
        boxes[i] = i / d % 2 == 0 ? 0x7fffffff : static_cast<std::int32_t>(0x80000000);
}

// A cell's box as it was not long ago, no larger than it is.
template <int D>
__device__ inline BoxBits<D> recent_box(const std::int32_t *from)
{
    BoxBits<D> box;
    if constexpr (D == 1) {
        *reinterpret_cast<int2 *>(&box) = *reinterpret_cast<const int2 *>(from);
    } else {
#pragma unroll
        for (int i = 0; i < D / 2; ++i)
            reinterpret_cast<int4 *>(&box)[i] = reinterpret_cast<const int4 *>(from)[i];
    }
    return box;
}

template <int D>
__global__ void __launch_bounds__(threads)
    boxes_kernel(const float *values, std::int64_t n, int d, const __grid_constant__ CellGrid grid)
{
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n;
         i += std::int64_t{gridDim.x} * threads) {
        float x[D];
        load_any_row<D>(values, i, d, x);
        const int cell = cell_of<D>(grid, x);
        std::int32_t *at = grid.boxes + std::int64_t{cell} * 2 * D;
        const BoxBits<D> box = recent_box<D>(at);
#pragma unroll
        for (int f = 0; f < D; ++f) {
            const std::int32_t value = ordered_bits(__float_as_int(x[f]));
            if (value < box.low[f])
                atomicMin(at + f, value);
            if (value > box.high[f])
                atomicMax(at + D + f, value);
        }
        if (i % cell_sample == 0)
            atomicAdd(grid.rows + cell, 1);
    }
}

template <int D>
__global__ void __launch_bounds__(threads) occupied_kernel(const __grid_constant__ CellGrid grid, int cells)
{
    for (int cell = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); cell < cells;
         cell += static_cast<int>(gridDim.x) * threads) {
        const std::int32_t *box = grid.boxes + std::int64_t{cell} * 2 * D;
        if (box[0] <= box[D])
            grid.occupied[atomicAdd(&grid.state->occupied, 1u)] = cell;
    }
}

// The centroid nearest to the box's middle, by a warp.
template <int D>
__device__ int find_pivot(const float *centroids, int k, const Corners<D> &box)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    float least = INFINITY;
    int pivot = 0;
    for (int j = lane; j < k; j += 32) {
        const float sum = from_middle<D>(box, centroids + j * D);
        pivot = sum < least ? j : pivot;
        least = fminf(least, sum);
    }
    const unsigned bits = __float_as_uint(least), best = __reduce_min_sync(~0u, bits);
    return __shfl_sync(~0u, pivot, __ffs(static_cast<int>(__ballot_sync(~0u, bits == best))) - 1);
}

// The list of one cell, by a warp; returns its length.
template <int D>
__device__ int list_cell(const CellGrid &grid, int cell, const float *centroids, int k)
{
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int32_t *bits = grid.boxes + std::int64_t{cell} * 2 * D;
    Corners<D> box;
#pragma unroll
    for (int f = 0; f < D; ++f) {
        box.low[f] = __int_as_float(ordered_bits(bits[f]));
        box.high[f] = __int_as_float(ordered_bits(bits[D + f]));
    }
    measure_from<D>(box, centroids + find_pivot<D>(centroids, k, box) * D);
    auto *head = reinterpret_cast<std::uint16_t *>(grid.heads + cell);
    auto *tail = reinterpret_cast<std::uint16_t *>(grid.tails + std::int64_t{cell} * 3);
    const auto write = [&](int place, int number) {
        *(place < 8 ? head + place : tail + (place - 8)) = static_cast<std::uint16_t>(number);
    };
    int count = 0;
    for (int first = 0; first < k; first += 32) {
        const int j = first + lane;
        const bool taken = j < k && reaches<D>(box, centroids + j * D);
        const unsigned ballot = __ballot_sync(~0u, taken);
        const int place = count + __popc(ballot & ((1u << lane) - 1));
        if (taken && place < cell_list)
            write(1 + place, j);
        count += __popc(ballot);
    }
    if (lane > count) // number k is farther than any
        write(lane, k);
    if (lane == 0)
        write(0, count <= cell_list ? count : unlisted);
    return count;
}

template <int D>
__global__ void __launch_bounds__(threads, D == 8 ? 2 : 4)
    lists_kernel(const __grid_constant__ UpdateArguments<float> a, const __grid_constant__ CellGrid grid)
{
    extern __shared__ float centroids[]; // k x D
    __shared__ unsigned long long candidates;
    if (block_stopped(a) || a.control->n_iter < grid.state->again)
        return;
    for (int i = static_cast<int>(threadIdx.x); i < a.k * D; i += threads)
        centroids[i] = i % D < a.d ? a.centroids[i / D * a.d + i % D] : 0.0f;
    if (threadIdx.x == 0)
        candidates = 0;
    __syncthreads();
    const int occupied = static_cast<int>(grid.state->occupied);
    unsigned long long mine = 0;
    const int first = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x / 32);
    for (int i = first; i < occupied; i += static_cast<int>(gridDim.x) * warps) {
        const int cell = grid.occupied[i], count = list_cell<D>(grid, cell, centroids, a.k);
        mine += static_cast<unsigned long long>(grid.rows[cell]) *
                static_cast<unsigned>(count <= cell_list ? count : 4 * a.k);
    }
    if ((threadIdx.x & 31) == 0)
        atomicAdd(&candidates, mine);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&grid.state->candidates, candidates);
    if (!arrives_last(&grid.state->arrived) || threadIdx.x != 0)
        return;
    CellState &state = *grid.state;
    const auto all = static_cast<unsigned long long>(grid.sampled) * static_cast<unsigned>(a.k);
    state.serves = atomicExch(&state.candidates, 0ull) * least_gain <= all;
    if (!state.serves)
        state.again = a.control->n_iter + pause;
    state.arrived = 0;
}

// As many cells as leave each some rows.
int bits_per_feature(std::int64_t n, int d)
{
    int bits = 0;
    while (bits < most_bits && n >> (bits + 6) > 0)
        ++bits;
    return std::max(1, std::min(bits, d == 1 ? 12 : d == 2 ? 14 : most_bits) / d);
}

} // namespace

Cells::Cells(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    grid_.d = d;
    grid_.bits = bits_per_feature(n, d);
    grid_.sampled = (n + cell_sample - 1) / cell_sample;
    const int padded = padded_d(d);
    divide_box(box);
    const auto cells = std::size_t{1} << (grid_.bits * d);
    boxes_ = DeviceArray<std::int32_t>(context.budget, cells * 2 * static_cast<std::size_t>(padded));
    rows_ = DeviceArray<std::int32_t>(context.budget, cells);
    occupied_ = DeviceArray<std::int32_t>(context.budget, cells);
    heads_ = DeviceArray<uint4>(context.budget, cells);
    tails_ = DeviceArray<uint4>(context.budget, cells * 3);
    state_ = DeviceArray<CellState>(context.budget, 1);
    grid_.boxes = boxes_.get();
    grid_.rows = rows_.get();
    grid_.occupied = occupied_.get();
    grid_.heads = heads_.get();
    grid_.tails = tails_.get();
    grid_.state = state_.get();
    const cudaStream_t stream = context.compute.get();
    rows_.fill_zero(stream);
    state_.fill_zero(stream);
    const int most_blocks = context.facts.multiprocessors * 8;
    empty_boxes_kernel<<<most_blocks, threads, 0, stream>>>(boxes_.get(), static_cast<std::int64_t>(boxes_.count()),
                                                            padded);
    launched("empty_boxes_kernel");
    for_padded(d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        // A few rows first: the more a box has, the fewer of the next ones change it.
        std::int64_t rows = std::max<std::int64_t>(n >> 12, 4096);
        for (std::int64_t first = 0; first < n; first += rows, rows *= 16) {
            const std::int64_t count = std::min(rows, n - first);
            boxes_kernel<D>
                <<<blocks_for(count, threads, most_blocks), threads, 0, stream>>>(values + first * d, count, d, grid_);
            launched("boxes_kernel");
        }
        occupied_kernel<D><<<most_blocks, threads, 0, stream>>>(grid_, static_cast<int>(cells));
        launched("occupied_kernel");
    });
}

// Features that are padded, of no extent, or of one that float32 does not hold, are not divided: their scale stays 0.
void Cells::divide_box(const Box &box)
{
    for (std::size_t f = 0; f < box.min.size(); ++f) {
        const double extent = box.max[f] - box.min[f];
        if (extent > 1e-30 && extent < 1e30) {
            grid_.low[f] = static_cast<float>(box.min[f]);
            grid_.scale[f] = static_cast<float>((1 << grid_.bits) / extent);
        }
    }
}

void Cells::forget(cudaStream_t stream)
{
    checked("cudaMemsetAsync", [&] { return cudaMemsetAsync(&state_.get()->again, 0, sizeof(std::int32_t), stream); });
}

void Cells::prepare(const UpdateArguments<float> &arguments, int multiprocessors, cudaStream_t stream) const
{
    for_padded(arguments.d, [&](auto size) {
        constexpr int D = decltype(size)::value;
        const auto bytes = static_cast<std::size_t>(arguments.k) * D * sizeof(float);
        lists_kernel<D><<<multiprocessors * 4, threads, bytes, stream>>>(arguments, grid_);
        launched("lists_kernel");
    });
}

} // namespace pgkm::cuda
