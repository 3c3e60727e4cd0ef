// filter.cu (seed) - which rows the trials of a k-means++ step may bring nearer: products of rows and trials in fp16 on
// the tensor cores, all trials in one read of the rows, with a proven bound.
//
// The bound. Take a shift from the values and scale them by a power of two u: x', c'. fp16 makes x~ and c~ of them;
// a >= |x' - x~| and b >= |c' - c~| are computed for each row. A trial c does not change v_i = w m where its distance
// is not below m, since rounding is monotonic. With r >= u sqrt(m) and t = r + a, that is so where
//   |x~ - c~| >= t + b, for |x' - c'| >= |x~ - c~| - a - b.
// The tensor cores' acc is x~.c~ with an error of at most d 2^-22 |x~||c~| (assign/tensor.cu). As
// 2 |x~||c~| <= |x~|^2 + |c~|^2 and (t + b)^2 <= (1 + 2^-11) t^2 + (1 + 2^11) b^2, it suffices that
//   acc < limit + constant,
//   limit = ((1 - e) |x~|^2 - (1 + 2^-11) t^2) / 2, constant = ((1 - e) |c~|^2 - (1 + 2^11) b^2) / 2, e = d 2^-22.
// We take e = d 2^-21 + 2^-18 and 2^-10 for 2^-11: they cover the roundings of |x~|^2, which float32 sums, of the
// limit, the constant and their sum, and those of the contract's distance.
//
// Layout: 16 positions make a tile. Of 32 features (a chunk) lane 4 g + q of a warp holds values 8 q .. 8 q + 7 of
// positions g and g + 8: two products m16n8k16 with the features in another order, the same for rows and trials.
// Threads: a warp a tile; it gathers what stays open in lists of its own, and sends 32 at a time to the trial's list.
#include "device/halves.cuh"
#include "plan/stages.hpp"
#include "seed/limits.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256, warps = threads / 32;
constexpr int batch = 32, list_room = batch + 16; // positions that are sent at a time; a tile adds at most 16

template <typename T>
__global__ void __launch_bounds__(threads)
    halves_kernel(GreedyRows<T> rows, std::int64_t first_tile, std::int64_t tiles)
{
    const int lane = static_cast<int>(threadIdx.x & 31), g = lane / 4, q = lane % 4;
    const std::int64_t stride = std::int64_t{gridDim.x} * warps;
    for (std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32; i < tiles; i += stride) {
        const std::int64_t tile = first_tile + i;
        for (int half = 0; half < 2; ++half) {
            const std::int64_t position = tile * 16 + half * 8 + g;
            const bool there = position < rows.n;
            const T *row = rows.values + (there ? row_number(rows, position) : 0) * rows.d;
            float square = 0.0f, rest = 0.0f;
            for (int chunk = 0; chunk < rows.chunks; ++chunk) {
                unsigned packed[4];
#pragma unroll
                for (int pair = 0; pair < 4; ++pair) {
                    float rounded[2];
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const int f = chunk * 32 + q * 8 + pair * 2 + j;
                        const float value = there && f < rows.d ? scaled(rows, row[f], f) : 0.0f;
                        rounded[j] = upper_half(value);
                        square = ::fmaf(rounded[j], rounded[j], square);
                        rest = ::fmaf(value - rounded[j], value - rounded[j], rest);
                    }
                    packed[pair] = pack_halves(rounded[0], rounded[1]);
                }
                rows.halves[(tile * rows.chunks + chunk) * 64 + half * 32 + lane] = {packed[0], packed[1], packed[2],
                                                                                     packed[3]};
            }
            for (int offset = 1; offset < 4; offset *= 2) {
                square += __shfl_xor_sync(~0u, square, offset);
                rest += __shfl_xor_sync(~0u, rest, offset);
            }
            if (q == 0) {
                rows.facts[position] = {square, rounding_of(square, rest, rows.d)};
                if (!there)
                    rows.limits[position] = never_open;
            }
        }
    }
}

// A warp's open positions of each trial, until there are enough of them to be sent.
struct OpenLists {
    std::uint32_t *counts;    // of each column
    std::uint32_t *positions; // columns x list_room
    int lane;

    __device__ void add(int column, std::uint32_t position) const
    {
        positions[column * list_room + static_cast<int>(atomicAdd(counts + column, 1u))] = position;
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
            std::uint32_t *own = positions + column * list_room, at = 0;
            if (lane == 0)
                at = atomicAdd(rows.state->open + column, some);
            at = __shfl_sync(~0u, at, 0);
            if (static_cast<std::uint32_t>(lane) < some)
                rows.lists[column * rows.n + at + static_cast<std::uint32_t>(lane)] = own[lane];
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

// N: tiles of eight trials.
template <typename T, int N>
__global__ void __launch_bounds__(threads) filter_kernel(GreedyRows<T> rows)
{
    if (rows.state->seed.done != 0)
        return;
    extern __shared__ uint4 memory[]; // the trials' halves, chunks x N x 32 lanes; counts; lists
    constexpr int columns = 8 * N;
    auto *counts = reinterpret_cast<std::uint32_t *>(memory + rows.chunks * N * 32);
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int g = lane / 4, q = lane % 4;
    for (int i = static_cast<int>(threadIdx.x); i < rows.chunks * N * 32; i += threads) {
        const int column = i / 32 % N * 8 + i % 32 / 4, chunk = i / 32 / N;
        uint4 value = {0, 0, 0, 0};
        if (column < rows.trials) {
            const std::int64_t position = rows.state->seed.picks[column];
            value = rows.halves[(position / 16 * rows.chunks + chunk) * 64 + position % 16 * 4 + i % 4];
        }
        memory[i] = value;
    }
    for (int i = static_cast<int>(threadIdx.x); i < warps * columns; i += threads)
        counts[i] = 0;
    float constant[N][2];
#pragma unroll
    for (int t = 0; t < N; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int column = t * 8 + q * 2 + j;
            constant[t][j] = column < rows.trials ? constant_of(rows, rows.state->seed.picks[column]) : INFINITY;
        }
    __syncthreads();
    const OpenLists open = {counts + warp * columns, counts + warps * columns + warp * columns * list_room, lane};
    const std::int64_t tiles = (rows.n + 15) / 16, stride = std::int64_t{gridDim.x} * warps;
    for (std::int64_t tile = std::int64_t{blockIdx.x} * warps + warp; tile < tiles; tile += stride) {
        const uint4 *from = rows.halves + tile * rows.chunks * 64 + lane;
        const float limit[2] = {rows.limits[tile * 16 + g], rows.limits[tile * 16 + g + 8]};
        float acc[N][4] = {};
#pragma unroll 4
        for (int chunk = 0; chunk < rows.chunks; ++chunk) {
            const uint4 low = from[chunk * 64], high = from[chunk * 64 + 32];
            const unsigned first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
            for (int t = 0; t < N; ++t) {
                const uint4 b = memory[(chunk * N + t) * 32 + lane];
                tensor::multiply_fp16(acc[t], first, b.x, b.y);
                tensor::multiply_fp16(acc[t], second, b.z, b.w);
            }
        }
        bool any = false;
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                any = any || !(acc[t][e] < limit[e / 2] + constant[t][e % 2]);
        if (!__any_sync(~0u, any))
            continue;
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (!(acc[t][e] < limit[e / 2] + constant[t][e % 2]))
                    open.add(t * 8 + q * 2 + e % 2, static_cast<std::uint32_t>(tile * 16 + g + e / 2 * 8));
        open.send(rows, batch);
    }
    open.send(rows, 1);
}

template <typename T, int N>
void launch_filter(const Context &context, const GreedyRows<T> &rows)
{
    const std::size_t bytes = filter_bytes(rows.chunks, rows.trials);
    const auto kernel = filter_kernel<T, N>;
    const int most = resident_blocks(context, kernel, threads, bytes);
    kernel<<<blocks_for(rows.n, 16 * warps, most), threads, bytes, context.compute.get()>>>(rows);
    launched("filter_kernel");
}

} // namespace

std::size_t filter_bytes(std::int32_t chunks, int trials)
{
    const std::size_t tiles = static_cast<std::size_t>(trials + 7) / 8;
    return tiles * (static_cast<std::size_t>(chunks) * 512 + warps * 8 * (1 + list_room) * sizeof(std::uint32_t));
}

template <typename T>
void prepare_halves(const GreedyRows<T> &rows, std::int64_t first, std::int64_t count, cudaStream_t stream)
{
    const std::int64_t tiles = (count + 15) / 16;
    halves_kernel<<<blocks_for(tiles, warps, 1 << 16), threads, 0, stream>>>(rows, first / 16, tiles);
    launched("halves_kernel");
}

template <typename T>
void filter_trials(const Context &context, const GreedyRows<T> &rows)
{
    if (rows.trials <= 8)
        launch_filter<T, 1>(context, rows);
    else if (rows.trials <= 16)
        launch_filter<T, 2>(context, rows);
    else
        launch_filter<T, 3>(context, rows);
}

template void prepare_halves<float>(const GreedyRows<float> &, std::int64_t, std::int64_t, cudaStream_t);
template void prepare_halves<double>(const GreedyRows<double> &, std::int64_t, std::int64_t, cudaStream_t);
template void filter_trials<float>(const Context &, const GreedyRows<float> &);
template void filter_trials<double>(const Context &, const GreedyRows<double> &);

} // namespace pgkm::cuda
