// filter.cu (seed) - which rows the trials of a k-means++ step may bring nearer: products of rows and trials in fp16 on
// the tensor cores, all trials in one read of the rows, with a proven bound.
//
// The bound. Values are scaled by a power of two u after a shift: x', c'. A tile's rows are relative to a near one of
// some pivots y, whose values fp16 holds, and so are the trials that they meet: x~ is x' - y in fp16, c~ is c' - y in
// fp16; a >= |x' - y - x~| and b >= |c' - y - c~|. A trial c does not change v_i = w m where its distance is not below
// m, since rounding is monotonic. With r >= u sqrt(m) and t = r + a, that is so where |x~ - c~| >= t + b, or
//   x~.c~ <= (|x~|^2 + |c~|^2 - (t + b)^2) / 2.
// The tensor cores' acc is x~.c~ with an error of at most e |x~||c~|, e = d 2^-22 (assign/tensor.cu). So it suffices
// that
//   acc < h_x + h_c - (t + b)^2 / 2 - e |x~||c~|
// with h_x <= |x~|^2 / 2 and h_c <= |c~|^2 / 2. The right side is summed up in float32: each of its terms is off by
// 2^-22 of its size at most. h_x and h_c are lowered, t, b and e |c~| are raised by 2^-19 of themselves, which covers
// that. Clumps far from one another have pivots of their own: there c~ is coarse where rows are far from the trial
// alone.
//
// Layout: rows lie in the order of their pivots, in slots; 16 slots make a tile, whose rows have one pivot. Of 32
// features (a chunk) lane 4 g + q of a warp holds values 8 q .. 8 q + 7 of slots g and g + 8: two products m16n8k16
// with the features in another order, the same for rows and trials. Of up to 16 features it holds values 4 q .. 4 q + 3
// for one product. Threads: a block takes tiles that follow one another, a warp a tile; it gathers what stays open in
// lists of its own, and sends 32 at a time to the trial's list. Trials are made anew in shared memory where the pivot
// changes.
#include <type_traits>

#include "plan/stages.hpp"
#include "seed/halves.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256, warps = threads / 32;
constexpr int batch = 32, list_room = batch + 16; // slots that are sent at a time; a tile adds at most 16

// A warp's open slots of each trial, until there are enough of them to be sent.
struct OpenLists {
    std::uint32_t *counts; // of each column
    std::uint32_t *slots;  // columns x list_room
    int lane;

    __device__ void add(int column, std::uint32_t slot) const
    {
        slots[column * list_room + static_cast<int>(atomicAdd(counts + column, 1u))] = slot;
    }
    // Sends those of columns that have `least` or more.
    template <typename T>
    __device__ void send(const GreedyRows<T> &rows, std::uint32_t least) const
    {
        __syncwarp();
        const std::uint32_t mine = lane < rows.trials ? counts[lane] : 0;
        for (unsigned full = __ballot_sync(~0u, mine >= least); full != 0; full &= full - 1) {
            const int column = __ffs(static_cast<int>(full)) - 1;
            const std::uint32_t count = __shfl_sync(~0u, mine, column), some = min(count, std::uint32_t{batch});
            std::uint32_t *own = slots + column * list_room, at = 0;
            if (lane == 0)
                at = atomicAdd(rows.state->open + column, some);
            at = __shfl_sync(~0u, at, 0);
            if (static_cast<std::uint32_t>(lane) < some)
                rows.lists[column * rows.own + at + static_cast<std::uint32_t>(lane)] = own[lane];
            const bool left = batch + static_cast<std::uint32_t>(lane) < count;
            const std::uint32_t later = left ? own[batch + lane] : 0;
            __syncwarp();
            if (left)
                own[lane] = later;
            if (lane == 0)
                counts[column] = count - some;
            __syncwarp();
        }
    }
};

// What a block's products need of the trials, in shared memory.
template <int N>
struct Trials {
    static constexpr int columns = 8 * N;
    uint4 *halves;    // chunks x N x 32 lanes
    float *squares;   // columns: h_c
    float *lengths;   // columns: at least e |c~|
    float *roundings; // columns: b

    __device__ uint4 *piece(int column, int piece) const
    {
        return halves + ((piece / 4 * N + column / 8) * 8 + column % 8) * 4 + piece % 4;
    }

    // Relative to a pivot. A warp a trial; by all threads.
    template <typename T>
    __device__ void prepare(const GreedyRows<T> &rows, int pivot) const
    {
        const int lane = static_cast<int>(threadIdx.x & 31), pieces = rows.chunks * 4;
        const float share = 32.0f * static_cast<float>(rows.chunks) * 0x1p-22f; // e
        __syncthreads(); // all have read those of the pivot before
        for (int column = static_cast<int>(threadIdx.x / 32); column < columns; column += warps) {
            const bool there = column < rows.trials;
            const T *row = there ? picked_row(rows, column) : nullptr;
            Rounded all = {};
            for (int i = lane; i < pieces; i += 32) {
                float x[8];
                scaled_eight(rows, row, i, x);
                *piece(column, i) = round_eight(x, rows.pivots[pivot * pieces + i], all);
            }
            for (int offset = 1; offset < 32; offset *= 2)
                all.add_lane(offset);
            if (lane == 0) {
                squares[column] = there ? all.half_square() : INFINITY;
                lengths[column] = all.length() * share * (1.0f + 0x1p-18f);
                roundings[column] = all.rounding(rows.d) * (1.0f + 0x1p-19f);
            }
        }
        __syncthreads();
    }
};

// N: tiles of eight trials. Narrow: rows of up to 16 features.
template <typename T, int N, bool Narrow>
__global__ void __launch_bounds__(threads) filter_kernel(GreedyRows<T> rows)
{
    if (rows.state->seed.done != 0)
        return;
    extern __shared__ uint4 memory[]; // the trials; then counts and lists of open slots
    constexpr int columns = 8 * N;
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int g = lane / 4, q = lane % 4;
    auto *squares = reinterpret_cast<float *>(memory + rows.chunks * N * 32);
    const Trials<N> trials = {memory, squares, squares + columns, squares + 2 * columns};
    auto *counts = reinterpret_cast<std::uint32_t *>(squares + 3 * columns);
    for (int i = static_cast<int>(threadIdx.x); i < warps * columns; i += threads)
        counts[i] = 0;
    __syncthreads(); // a block may have no tiles
    const OpenLists open = {counts + warp * columns, counts + warps * columns + warp * columns * list_room, lane};
    const std::uint32_t *first_tile = rows.state->first_tile;
    const std::uint32_t share = (first_tile[rows.pivot_count] + gridDim.x - 1) / gridDim.x, from = blockIdx.x * share;
    for (int pivot = 0; pivot < rows.pivot_count; ++pivot) {
        const std::uint32_t begin = max(from, first_tile[pivot]), end = min(from + share, first_tile[pivot + 1]);
        if (begin >= end)
            continue;
        trials.prepare(rows, pivot);
        float square[N][2], length[N][2], rounding[N][2];
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                square[t][j] = trials.squares[t * 8 + q * 2 + j];
                length[t][j] = trials.lengths[t * 8 + q * 2 + j];
                rounding[t][j] = trials.roundings[t * 8 + q * 2 + j];
            }
        for (std::uint32_t tile = begin + static_cast<std::uint32_t>(warp); tile < end; tile += warps) {
            using Halves = std::conditional_t<Narrow, uint2, uint4>;
            const auto *of_tile =
                reinterpret_cast<const Halves *>(rows.halves) + std::int64_t{tile} * rows.chunks * 64 + lane;
            const HalfFacts facts[2] = {rows.facts[std::int64_t{tile} * 16 + g],
                                        rows.facts[std::int64_t{tile} * 16 + g + 8]};
            float acc[N][4] = {};
#pragma unroll 4
            for (int chunk = 0; chunk < rows.chunks; ++chunk) {
                const Halves low = of_tile[chunk * 64], high = of_tile[chunk * 64 + 32];
                const unsigned first[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
                for (int t = 0; t < N; ++t) {
                    if constexpr (Narrow) {
                        const uint2 b = reinterpret_cast<const uint2 *>(memory + t * 32 + g * 4)[q];
                        tensor::multiply_fp16(acc[t], first, b.x, b.y);
                    } else {
                        const unsigned second[4] = {low.z, high.z, low.w, high.w};
                        const uint4 b = memory[(chunk * N + t) * 32 + lane];
                        tensor::multiply_fp16(acc[t], first, b.x, b.y);
                        tensor::multiply_fp16(acc[t], second, b.z, b.w);
                    }
                }
            }
            unsigned mask = 0; // bit 4 t + e: acc[t][e] leaves a slot open
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const HalfFacts &row = facts[e / 2];
                const float half_square = 0.5f * (1.0f - 0x1p-18f) * (row.length * row.length);
#pragma unroll
                for (int t = 0; t < N; ++t) {
                    const float apart = row.reach + rounding[t][e % 2];
                    const float bound = ::fmaf(-row.length, length[t][e % 2],
                                               ::fmaf(-0.5f * apart, apart, half_square + square[t][e % 2]));
                    mask |= row.reach < 0.0f || acc[t][e] < bound ? 0u : 1u << (4 * t + e);
                }
            }
            if (!__any_sync(~0u, mask != 0))
                continue;
#pragma unroll
            for (int t = 0; t < N; ++t)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if ((mask >> (4 * t + e) & 1) != 0)
                        open.add(t * 8 + q * 2 + e % 2, tile * 16 + static_cast<std::uint32_t>(g + e / 2 * 8));
            open.send(rows, batch);
        }
    }
    open.send(rows, 1);
}

template <int N, typename T>
void launch_filter(const Context &context, const GreedyRows<T> &rows)
{
    const std::size_t bytes = filter_bytes(rows.chunks, rows.trials);
    const auto kernel = rows.pieces == 2 ? filter_kernel<T, N, true> : filter_kernel<T, N, false>;
    const int most = resident_blocks(context, kernel, threads, bytes);
    kernel<<<blocks_for(rows.own, 16 * warps, most), threads, bytes, context.compute.get()>>>(rows);
    launched("filter_kernel");
}

} // namespace

std::size_t filter_bytes(std::int32_t chunks, int trials)
{
    const std::size_t tiles = static_cast<std::size_t>(trials + 7) / 8;
    const std::size_t words = 3 + warps * (1 + list_room); // for each column
    return tiles * (static_cast<std::size_t>(chunks) * 512 + 8 * words * sizeof(std::uint32_t));
}

template <typename T>
void filter_trials(const Context &context, const GreedyRows<T> &rows)
{
    if (rows.trials <= 8)
        launch_filter<1>(context, rows);
    else if (rows.trials <= 16)
        launch_filter<2>(context, rows);
    else
        launch_filter<3>(context, rows);
}

template void filter_trials<float>(const Context &, const GreedyRows<float> &);
template void filter_trials<double>(const Context &, const GreedyRows<double> &);

} // namespace pgkm::cuda
