// halves.cu (seed) - rows as the filter reads them (filter.cu): each relative to the nearest of some pivots, in fp16,
// in slots by pivot.
//
// Which pivot a row takes, and its place among the rows of that pivot, change no result: draws go by position.
// Threads: four lanes a row, or a thread a position; blocks reserve slots by one atomic a pivot.
#include "plan/stages.hpp"
#include "seed/halves.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256, warps = threads / 32;

template <typename T>
__global__ void __launch_bounds__(threads) pivots_kernel(GreedyRows<T> rows, const T *values)
{
    const int pieces = rows.chunks * 4;
    for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < rows.pivot_count * pieces;
         i += static_cast<int>(gridDim.x) * threads) {
        float x[8];
        scaled_eight(rows, values + std::int64_t{i / pieces} * rows.d, i % pieces, x);
        rows.pivots[i] = pack_eight(x);
    }
}

// The pivot nearest to a row, about; for all lanes of its quad.
template <typename T>
__device__ inline int nearest_pivot(const GreedyRows<T> &rows, const T *row, int q)
{
    constexpr int some = 8; // pivots at a time
    float least = INFINITY;
    int nearest = 0;
    for (int first = 0; rows.pivot_count > 1 && first < rows.pivot_count; first += some) {
        float square[some] = {};
        for (int piece = q; piece < rows.chunks * 4; piece += 4) {
            float x[8], y[8];
            scaled_eight(rows, row, piece, x);
#pragma unroll
            for (int p = 0; p < some; ++p) {
                const int pivot = min(first + p, rows.pivot_count - 1);
                unpack_eight(rows.pivots[pivot * rows.chunks * 4 + piece], y);
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    square[p] = ::fmaf(x[j] - y[j], x[j] - y[j], square[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < some; ++p) {
            square[p] = sum_lanes<4>(square[p]);
            if (first + p < rows.pivot_count && square[p] < least) {
                least = square[p];
                nearest = first + p;
            }
        }
    }
    return nearest;
}

// The pivot of `count` own rows from `first` on, into the first list, and how many rows each pivot has.
template <typename T>
__global__ void __launch_bounds__(threads) group_kernel(GreedyRows<T> rows, std::int64_t first, std::int64_t count)
{
    __shared__ unsigned members[most_pivots];
    if (threadIdx.x < most_pivots)
        members[threadIdx.x] = 0;
    __syncthreads();
    const int q = static_cast<int>(threadIdx.x & 3);
    const std::int64_t stride = std::int64_t{gridDim.x} * (threads / 4), end = first + count;
    std::int64_t i = first + std::int64_t{blockIdx.x} * (threads / 4) + threadIdx.x / 4;
    for (; __any_sync(~0u, i < end); i += stride) {
        const bool there = i < end;
        const T *row = there ? row_at(rows, own_position(rows, i)) : nullptr;
        const int pivot = nearest_pivot(rows, row, q);
        if (!there || q != 0)
            continue;
        rows.lists[i] = static_cast<std::uint32_t>(pivot);
        atomicAdd(members + pivot, 1u);
    }
    __syncthreads();
    if (threadIdx.x < most_pivots && members[threadIdx.x] != 0)
        atomicAdd(rows.state->next_slot + threadIdx.x, members[threadIdx.x]);
}

// One thread: from the pivots' numbers of rows to their first tiles and slots.
__global__ void borders_kernel(GreedyState *state, int pivots)
{
    std::uint32_t tile = 0;
    for (int p = 0; p < pivots; ++p) {
        const std::uint32_t members = state->next_slot[p];
        state->first_tile[p] = tile;
        state->next_slot[p] = tile * tile_slots;
        tile += (members + tile_slots - 1) / tile_slots;
    }
    state->first_tile[pivots] = tile;
}

template <typename T>
__global__ void __launch_bounds__(threads) place_kernel(GreedyRows<T> rows)
{
    __shared__ unsigned members[most_pivots], begin[most_pivots];
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t first = std::int64_t{blockIdx.x} * threads; first < rows.own; first += stride) {
        const std::int64_t i = first + threadIdx.x;
        if (threadIdx.x < most_pivots)
            members[threadIdx.x] = 0;
        __syncthreads();
        const std::uint32_t pivot = i < rows.own ? rows.lists[i] : 0;
        const unsigned rank = i < rows.own ? atomicAdd(members + pivot, 1u) : 0;
        __syncthreads();
        if (threadIdx.x < most_pivots && members[threadIdx.x] != 0)
            begin[threadIdx.x] = atomicAdd(rows.state->next_slot + threadIdx.x, members[threadIdx.x]);
        __syncthreads();
        if (i < rows.own)
            rows.places[begin[pivot] + rank] = static_cast<std::uint32_t>(own_position(rows, i));
    }
}

// A warp a tile.
template <typename T>
__global__ void __launch_bounds__(threads) halves_kernel(GreedyRows<T> rows, std::int64_t first, std::int64_t count)
{
    const int lane = static_cast<int>(threadIdx.x & 31), g = lane / 4, q = lane % 4;
    const std::int64_t stride = std::int64_t{gridDim.x} * warps, end = (first + count) / tile_slots;
    int pivot = 0;
    for (std::int64_t tile = first / tile_slots + std::int64_t{blockIdx.x} * warps + threadIdx.x / 32; tile < end;
         tile += stride) {
        while (pivot + 1 < rows.pivot_count && tile >= rows.state->first_tile[pivot + 1])
            ++pivot;
        for (int half = 0; half < 2; ++half) {
            const std::int64_t slot = tile * tile_slots + half * 8 + g;
            const std::uint32_t position = rows.places[slot];
            const bool there = position != no_row;
            const T *row = there ? row_at(rows, position) : nullptr;
            Rounded sums = {};
            for (int chunk = 0; chunk < rows.chunks; ++chunk) {
                float x[8];
                scaled_eight(rows, row, chunk * 4 + q, x);
                const uint4 rounded = round_eight(x, rows.pivots[(pivot * rows.chunks + chunk) * 4 + q], sums);
                if (q < rows.pieces)
                    rows.halves[((tile * rows.chunks + chunk) * tile_slots + half * 8 + g) * rows.pieces + q] =
                        there ? rounded : uint4{0, 0, 0, 0};
            }
            sums.add_lane(1);
            sums.add_lane(2);
            if (q == 0)
                rows.facts[slot] = {never_open, sums.length(), sums.rounding(rows.d)};
        }
    }
}

} // namespace

template <typename T>
void halve_pivots(const GreedyRows<T> &rows, const T *values, cudaStream_t stream)
{
    pivots_kernel<<<blocks_for(rows.pivot_count * rows.chunks * 4, threads, 1 << 10), threads, 0, stream>>>(rows,
                                                                                                            values);
    launched("pivots_kernel");
}

template <typename T>
void group_rows(const GreedyRows<T> &rows, std::int64_t first, std::int64_t count, cudaStream_t stream)
{
    group_kernel<<<blocks_for(count, threads / 4, 1 << 14), threads, 0, stream>>>(rows, first, count);
    launched("group_kernel");
}

template <typename T>
void place_rows(const GreedyRows<T> &rows, cudaStream_t stream)
{
    borders_kernel<<<1, 1, 0, stream>>>(rows.state, rows.pivot_count);
    launched("borders_kernel");
    place_kernel<<<blocks_for(rows.own, threads, 1 << 12), threads, 0, stream>>>(rows);
    launched("place_kernel");
}

template <typename T>
void prepare_halves(const GreedyRows<T> &rows, std::int64_t first, std::int64_t count, cudaStream_t stream)
{
    halves_kernel<<<blocks_for(count, tile_slots * warps, 1 << 16), threads, 0, stream>>>(rows, first, count);
    launched("halves_kernel");
}

template void halve_pivots<float>(const GreedyRows<float> &, const float *, cudaStream_t);
template void halve_pivots<double>(const GreedyRows<double> &, const double *, cudaStream_t);
template void group_rows<float>(const GreedyRows<float> &, std::int64_t, std::int64_t, cudaStream_t);
template void group_rows<double>(const GreedyRows<double> &, std::int64_t, std::int64_t, cudaStream_t);
template void place_rows<float>(const GreedyRows<float> &, cudaStream_t);
template void place_rows<double>(const GreedyRows<double> &, cudaStream_t);
template void prepare_halves<float>(const GreedyRows<float> &, std::int64_t, std::int64_t, cudaStream_t);
template void prepare_halves<double>(const GreedyRows<double> &, std::int64_t, std::int64_t, cudaStream_t);

} // namespace pgkm::cuda
