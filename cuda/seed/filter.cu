// filter.cu (seed) - which rows the trials of a k-means++ step may bring nearer: products of rows and trials in fp16 on
// the tensor cores, all trials in one read of the rows, with a proven bound.
//
// The bound. Rows are relative to their pivot p, and so are the trials that they meet (order/ordered_rows.hpp): x' is
// (x - p) u, u a power of two, x~ is x' in fp16 and a >= |x' - x~|; c', c~ and b likewise of a trial. A trial c does
// not change v_i = w m where its distance is not below m, since rounding is monotonic. With r >= u sqrt(m) and t = r +
// a, that is so where |x~ - c~| >= t + b, or
//   x~.c~ <= (|x~|^2 + |c~|^2 - (t + b)^2) / 2.
// The tensor cores' acc is x~.c~ with an error of at most e |x~||c~|, e = d 2^-22 (assign/tensor.cu). So it suffices
// that
//   acc < h_x + h_c - (t + b)^2 / 2 - e |x~||c~|
// with h_x <= |x~|^2 / 2 and h_c <= |c~|^2 / 2. The right side is summed up in float32: each of its terms is off by
// 2^-22 of its size at most. h_x and h_c are lowered, t, b and e |c~| are raised by 2^-19 of themselves, which covers
// that. Clumps far from one another have pivots of their own: there c~ is coarse where rows are far from the trial
// alone. A trial that fp16 does not hold leaves all rows open.
//
// Layout: rows lie in the order of their pivots; 16 of one pivot make a tile, whose last one may have fewer. Of 64
// features (a chunk, a line of memory) lane 4 g + q of a warp holds values 16 q .. 16 q + 15 of rows g and g + 8: four
// products m16n8k16 with the features in another order, the same for rows and trials. Of up to 16 features it holds
// values 4 q .. 4 q + 3 for one product. Threads: a block takes tiles that follow one another, a warp a tile; it
// gathers what stays open in lists of its own, and sends 32 at a time to the trial's list. Trials are made anew in
// shared memory where the pivot changes.
#include "device/tensor_mma.cuh"
#include "plan/stages.hpp"
#include "seed/trials.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256, warps = threads / 32;
constexpr int batch = 32, list_room = batch + tile_rows; // rows that are sent at a time; a tile adds at most 16

__host__ __device__ inline std::int32_t chunks_of(std::int32_t d)
{
    return (d + 63) / 64;
}

// A warp's open rows of each trial, by their places, until there are enough of them to be sent.
struct OpenLists {
    std::uint32_t *counts; // of each column
    std::uint32_t *places; // columns x list_room
    int lane;

    __device__ void add(int column, std::uint32_t place) const
    {
        places[column * list_room + static_cast<int>(atomicAdd(counts + column, 1u))] = place;
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
            std::uint32_t *own = places + column * list_room, at = 0;
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
    uint4 *halves;  // chunks x 2 x N x 32 lanes; of up to 16 features a column's lie together
    float *squares; // columns: h_c
    float *lengths; // columns: at least e |c~|
    float *losts;   // columns: b

    template <bool Narrow>
    __device__ __half *at(int column, int f) const
    {
        const int lane = column % 8 * 4, pair = f / 64 * 2 + f % 16 / 8;
        if constexpr (Narrow)
            return reinterpret_cast<__half *>(halves + column / 8 * 32 + lane) + f;
        return reinterpret_cast<__half *>(halves + (pair * N + column / 8) * 32 + lane + f % 64 / 16) + f % 8;
    }

    // Relative to a pivot. A warp a trial; by all threads.
    template <bool Narrow, typename T>
    __device__ void prepare(const GreedyRows<T> &rows, int pivot) const
    {
        const int lane = static_cast<int>(threadIdx.x & 31), padded = Narrow ? 16 : chunks_of(rows.d) * 64;
        const float share = static_cast<float>((rows.d + 15) / 16 * 16) * 0x1p-22f; // e
        const T scale = static_cast<T>(rows.ordered.facts->scale), *from = rows.ordered.pivots + pivot * rows.d;
        __syncthreads(); // all have read those of the pivot before
        for (int column = static_cast<int>(threadIdx.x / 32); column < columns; column += warps) {
            const bool there = column < rows.trials;
            const T *row = there ? picked_row(rows, column) : nullptr;
            const Rounded all = round_by_warp(row, from, scale, rows.d, padded,
                                              [&](int f, __half half) { *at<Narrow>(column, f) = half; });
            if (lane == 0) {
                const bool held = all.square < 0x1p100 && all.rest < 0x1p100f; // false for NaN, too
                squares[column] = !there ? INFINITY : held ? all.half_square() : -INFINITY;
                lengths[column] = held ? all.length() * share * (1.0f + 0x1p-18f) : 0.0f;
                losts[column] = held ? all.lost(rows.d) * (1.0f + 0x1p-19f) : 0.0f;
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
    extern __shared__ uint4 memory[]; // the trials; then counts and lists of open rows
    constexpr int columns = 8 * N;
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int g = lane / 4, q = lane % 4;
    const int chunks = chunks_of(rows.d), pieces = rows.ordered.d8 / 8;
    auto *squares = reinterpret_cast<float *>(memory + chunks * N * 64);
    const Trials<N> trials = {memory, squares, squares + columns, squares + 2 * columns};
    auto *counts = reinterpret_cast<std::uint32_t *>(squares + 3 * columns);
    for (int i = static_cast<int>(threadIdx.x); i < warps * columns; i += threads)
        counts[i] = 0;
    __syncthreads(); // a block may have no tiles
    const OpenLists open = {counts + warp * columns, counts + warps * columns + warp * columns * list_room, lane};
    const OrderFacts &order = *rows.ordered.facts;
    const auto tiles_of = [&](int pivot) { return (order.count[pivot] + tile_rows - 1) / tile_rows; };
    int tiles = 0, next_tile = 0;
    for (int pivot = 0; pivot < most_pivots; ++pivot)
        tiles += tiles_of(pivot);
    const int share = (tiles + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x),
              from = static_cast<int>(blockIdx.x) * share;
    const float factor = 0.5f * (1.0f - 2.0f * sums_error(rows.d) - 0x1p-18f);
    for (int pivot = 0; pivot < most_pivots; ++pivot) {
        const int first_tile = next_tile;
        next_tile += tiles_of(pivot);
        const int begin = max(from, first_tile), end = min(from + share, next_tile);
        if (begin >= end)
            continue;
        const int last_place = order.offset[pivot + 1] - 1;
        trials.template prepare<Narrow>(rows, pivot);
        float square[N][2], length[N][2], lost[N][2];
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                square[t][j] = trials.squares[t * 8 + q * 2 + j];
                length[t][j] = trials.lengths[t * 8 + q * 2 + j];
                lost[t][j] = trials.losts[t * 8 + q * 2 + j];
            }
        for (int tile = begin + warp; tile < end; tile += warps) {
            const int first_place = order.offset[pivot] + (tile - first_tile) * tile_rows + g;
            HalfFacts facts[2];
            const uint4 *halves[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int place = min(first_place + 8 * h, last_place);
                facts[h] = rows.facts[place];
                if (first_place + 8 * h > last_place)
                    facts[h].reach = never_open;
                halves[h] = reinterpret_cast<const uint4 *>(rows.ordered.halves) + std::int64_t{place} * pieces;
            }
            float acc[N][4] = {};
            if constexpr (Narrow) {
                const bool there = q < 2 * pieces;
                const uint2 low = there ? reinterpret_cast<const uint2 *>(halves[0])[q] : uint2{},
                            high = there ? reinterpret_cast<const uint2 *>(halves[1])[q] : uint2{};
                const unsigned x[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
                for (int t = 0; t < N; ++t) {
                    const uint2 b = reinterpret_cast<const uint2 *>(memory + t * 32 + g * 4)[q];
                    tensor::multiply_fp16(acc[t], x, b.x, b.y);
                }
            } else {
#pragma unroll 4
                for (int pair = 0; pair < 2 * chunks; ++pair) {
                    const int piece = pair / 2 * 8 + q * 2 + pair % 2;
                    const uint4 low = piece < pieces ? halves[0][piece] : uint4{},
                                high = piece < pieces ? halves[1][piece] : uint4{};
                    const unsigned first[4] = {low.x, high.x, low.y, high.y},
                                   second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
                    for (int t = 0; t < N; ++t) {
                        const uint4 b = memory[(pair * N + t) * 32 + lane];
                        tensor::multiply_fp16(acc[t], first, b.x, b.y);
                        tensor::multiply_fp16(acc[t], second, b.z, b.w);
                    }
                }
            }
            unsigned mask = 0; // bit 4 t + e: acc[t][e] leaves a slot open
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const HalfFacts &row = facts[e / 2];
                const float half_square = factor * (row.length * row.length);
#pragma unroll
                for (int t = 0; t < N; ++t) {
                    const float apart = row.reach + lost[t][e % 2];
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
                        open.add(t * 8 + q * 2 + e % 2, static_cast<std::uint32_t>(first_place + e / 2 * 8));
            open.send(rows, batch);
        }
    }
    open.send(rows, 1);
}

template <int N, typename T>
void launch_filter(const Context &context, const GreedyRows<T> &rows)
{
    const std::size_t bytes = filter_bytes(rows.d, rows.trials);
    const auto kernel = rows.d <= 16 ? filter_kernel<T, N, true> : filter_kernel<T, N, false>;
    const int most = resident_blocks(context, kernel, threads, bytes);
    enqueue(kernel, blocks_for(rows.own, tile_rows * warps, most), threads, bytes, context.compute.get(), rows);
}

} // namespace

std::size_t filter_bytes(std::int32_t d, int trials)
{
    const std::size_t tiles = static_cast<std::size_t>(trials + 7) / 8;
    const std::size_t words = 3 + warps * (1 + list_room); // for each column
    return tiles * (static_cast<std::size_t>(chunks_of(d)) * 1024 + 8 * words * sizeof(std::uint32_t));
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
