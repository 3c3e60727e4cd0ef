// filter.cu (seed) - which rows the trials of a k-means++ step may bring nearer: products of rows and trials in fp16 on
// the tensor cores, all trials in one read of the rows, with a proven bound.
//
// The bound. Take a shift from the values and scale them by a power of two u: x', c'. Rows are relative to a near one
// of some pivots y, whose values fp16 holds: x~ is x' - y in fp16, c~ is c' in fp16; a >= |x' - y - x~| and
// b >= |c' - c~|. A trial c does not change v_i = w m where its distance is not below m, since rounding is monotonic.
// With r >= u sqrt(m) and t = r + a, that is so where |y + x~ - c~| >= t + b. Its square is
//   |x~|^2 + 2 x~.y + |y - c~|^2 - 2 x~.c~,
// and (t + b)^2 <= (1 + 2^-7) t^2 + (1 + 2^7) b^2. The tensor cores' acc is x~.c~ with an error of at most
// d 2^-22 |x~||c~| (assign/tensor.cu). So it suffices that
//   acc < limit + constant - e |x~||c~|,
//   limit = (|x~|^2 + 2 x~.y - (1 + 2^-7) t^2) / 2, of a row; constant = (|y - c~|^2 - (1 + 2^7) b^2) / 2, of a pivot
// and a trial; e = d 2^-22. We take e = d 2^-22 + 2^-19: it covers the rounding of the right side, which matters where
// that is about as large as acc. Limits are rounded down, and so are constants, after the error of their sums.
// Without pivots, |x~||c~| of rows that lie in clumps far from the shift would be far above their distances.
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

// Eight values as halves.
__device__ inline uint4 pack_eight(const float (&x)[8])
{
    return {pack_halves(x[0], x[1]), pack_halves(x[2], x[3]), pack_halves(x[4], x[5]), pack_halves(x[6], x[7])};
}

__device__ inline void unpack_eight(const uint4 &halves, float (&x)[8])
{
    const unsigned pairs[4] = {halves.x, halves.y, halves.z, halves.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&pairs[i]));
        x[2 * i] = pair.x;
        x[2 * i + 1] = pair.y;
    }
}

// Values 8 piece .. 8 piece + 7 of a row, as halves are made from them; zeros beyond d, and where there is no row.
template <typename T>
__device__ inline void scaled_eight(const GreedyRows<T> &rows, const T *row, int piece, float (&x)[8])
{
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int f = piece * 8 + j;
        x[j] = row != nullptr && f < rows.d ? scaled(rows, row[f], f) : 0.0f;
    }
}

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
            square[p] += __shfl_xor_sync(~0u, square[p], 1);
            square[p] += __shfl_xor_sync(~0u, square[p], 2);
            if (first + p < rows.pivot_count && square[p] < least) {
                least = square[p];
                nearest = first + p;
            }
        }
    }
    return nearest;
}

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
            const T *row = there ? rows.values + row_number(rows, position) * rows.d : nullptr;
            const int pivot = nearest_pivot(rows, row, q);
            double square = 0.0, product = 0.0; // |x~|^2, x~.y
            float rest = 0.0f, whole = 0.0f;    // |x' - y - x~|^2, |x'|^2
            for (int chunk = 0; chunk < rows.chunks; ++chunk) {
                float x[8], y[8];
                scaled_eight(rows, row, chunk * 4 + q, x);
                unpack_eight(rows.pivots[(pivot * rows.chunks + chunk) * 4 + q], y);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const float value = there ? x[j] - y[j] : 0.0f, rounded = upper_half(value);
                    rest = ::fmaf(value - rounded, value - rounded, rest);
                    whole = ::fmaf(x[j], x[j], whole);
                    square = ::fma(static_cast<double>(rounded), static_cast<double>(rounded), square);
                    product = ::fma(static_cast<double>(rounded), static_cast<double>(y[j]), product);
                    x[j] = rounded;
                }
                rows.halves[(tile * rows.chunks + chunk) * 64 + half * 32 + lane] = pack_eight(x);
            }
            for (int offset = 1; offset < 4; offset *= 2) {
                square += __shfl_xor_sync(~0u, square, offset);
                product += __shfl_xor_sync(~0u, product, offset);
                rest += __shfl_xor_sync(~0u, rest, offset);
                whole += __shfl_xor_sync(~0u, whole, offset);
            }
            if (q == 0) {
                const double length = sqrt(square), lengths = length + static_cast<double>(sqrtf(whole));
                rows.facts[position] = {__double2float_rd(square + 2.0 * product - 0x1p-36 * length * lengths),
                                        rounding_of(static_cast<float>(lengths), rest, rows.d),
                                        __double2float_ru(length * (1.0 + 0x1p-40)), static_cast<std::uint32_t>(pivot)};
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

// What a block's products need of the trials, in shared memory.
template <int N>
struct Trials {
    static constexpr int columns = 8 * N;
    uint4 *halves;    // chunks x N x 32 lanes
    float *constants; // pivots x columns; infinity where there is no trial
    float *lengths;   // columns: at least e |c~|
    float *roundings; // columns: b

    __device__ uint4 *piece(int column, int piece) const
    {
        return halves + ((piece / 4 * N + column / 8) * 8 + column % 8) * 4 + piece % 4;
    }

    // A warp a trial, then a quad of lanes a pivot and a trial; by all threads.
    template <typename T>
    __device__ void prepare(const GreedyRows<T> &rows) const
    {
        const int lane = static_cast<int>(threadIdx.x & 31), pieces = rows.chunks * 4;
        const auto share = static_cast<float>(share_of(rows));
        for (int column = static_cast<int>(threadIdx.x / 32); column < columns; column += warps) {
            const bool there = column < rows.trials;
            const T *row = there ? rows.values + row_number(rows, rows.state->seed.picks[column]) * rows.d : nullptr;
            float square = 0.0f, rest = 0.0f;
            for (int i = lane; i < pieces; i += 32) {
                float x[8];
                scaled_eight(rows, row, i, x);
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const float rounded = upper_half(x[j]);
                    rest = ::fmaf(x[j] - rounded, x[j] - rounded, rest);
                    square = ::fmaf(rounded, rounded, square);
                    x[j] = rounded;
                }
                *piece(column, i) = pack_eight(x);
            }
            for (int offset = 1; offset < 32; offset *= 2) {
                square += __shfl_xor_sync(~0u, square, offset);
                rest += __shfl_xor_sync(~0u, rest, offset);
            }
            if (lane == 0) {
                const float length = sqrtf(square) * (1.0f + 0x1p-20f * static_cast<float>(rows.d + 8));
                lengths[column] = length * share * (1.0f + 0x1p-20f);
                roundings[column] = rounding_of(length, rest, rows.d);
            }
        }
        __syncthreads();
        const auto slack = 1.0f - 0x1p-22f * static_cast<float>(rows.d + 8); // of a sum of d squares
        for (int i = static_cast<int>(threadIdx.x / 4); i < rows.pivot_count * columns; i += threads / 4) {
            const int pivot = i / columns, column = i % columns;
            float square = 0.0f;
            for (int at = static_cast<int>(threadIdx.x & 3); at < pieces; at += 4) {
                float y[8], c[8];
                unpack_eight(rows.pivots[pivot * pieces + at], y);
                unpack_eight(*piece(column, at), c);
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    square = ::fmaf(y[j] - c[j], y[j] - c[j], square);
            }
            const unsigned quad = 15u << (lane & 28);
            square += __shfl_xor_sync(quad, square, 1);
            square += __shfl_xor_sync(quad, square, 2);
            const float constant = 0.5f * (square * slack - 129.5f * roundings[column] * roundings[column]);
            constants[i] = column < rows.trials ? constant - 0x1p-22f * (square + fabsf(constant)) : INFINITY;
        }
        __syncthreads();
    }
};

// N: tiles of eight trials.
template <typename T, int N>
__global__ void __launch_bounds__(threads) filter_kernel(GreedyRows<T> rows)
{
    if (rows.state->seed.done != 0)
        return;
    extern __shared__ uint4 memory[]; // the trials; then counts and lists of open positions
    constexpr int columns = 8 * N;
    const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    const int g = lane / 4, q = lane % 4;
    auto *constants = reinterpret_cast<float *>(memory + rows.chunks * N * 32);
    const Trials<N> trials = {memory, constants, constants + most_pivots * columns,
                              constants + (most_pivots + 1) * columns};
    auto *counts = reinterpret_cast<std::uint32_t *>(constants + (most_pivots + 2) * columns);
    for (int i = static_cast<int>(threadIdx.x); i < warps * columns; i += threads)
        counts[i] = 0;
    trials.prepare(rows);
    float length[N][2];
#pragma unroll
    for (int t = 0; t < N; ++t)
#pragma unroll
        for (int j = 0; j < 2; ++j)
            length[t][j] = trials.lengths[t * 8 + q * 2 + j];
    const OpenLists open = {counts + warp * columns, counts + warps * columns + warp * columns * list_room, lane};
    const std::int64_t tiles = (rows.n + 15) / 16, stride = std::int64_t{gridDim.x} * warps;
    for (std::int64_t tile = std::int64_t{blockIdx.x} * warps + warp; tile < tiles; tile += stride) {
        const uint4 *from = rows.halves + tile * rows.chunks * 64 + lane;
        const float limit[2] = {rows.limits[tile * 16 + g], rows.limits[tile * 16 + g + 8]};
        const HalfFacts facts[2] = {rows.facts[tile * 16 + g], rows.facts[tile * 16 + g + 8]};
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
        unsigned mask = 0; // bit 4 t + e: acc[t][e] leaves a position open
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float constant = constants[facts[e / 2].pivot * columns + t * 8 + q * 2 + e % 2];
                const float bound = ::fmaf(-facts[e / 2].length, length[t][e % 2], limit[e / 2] + constant);
                mask |= acc[t][e] < bound ? 0u : 1u << (4 * t + e);
            }
        if (!__any_sync(~0u, mask != 0))
            continue;
#pragma unroll
        for (int t = 0; t < N; ++t)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if ((mask >> (4 * t + e) & 1) != 0)
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
    const std::size_t words = most_pivots + 2 + warps * (1 + list_room); // for each column
    return tiles * (static_cast<std::size_t>(chunks) * 512 + 8 * words * sizeof(std::uint32_t));
}

template <typename T>
void halve_pivots(const GreedyRows<T> &rows, const T *values, cudaStream_t stream)
{
    pivots_kernel<<<blocks_for(rows.pivot_count * rows.chunks * 4, threads, 1 << 10), threads, 0, stream>>>(rows,
                                                                                                            values);
    launched("pivots_kernel");
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

template void halve_pivots<float>(const GreedyRows<float> &, const float *, cudaStream_t);
template void halve_pivots<double>(const GreedyRows<double> &, const double *, cudaStream_t);
template void prepare_halves<float>(const GreedyRows<float> &, std::int64_t, std::int64_t, cudaStream_t);
template void prepare_halves<double>(const GreedyRows<double> &, std::int64_t, std::int64_t, cudaStream_t);
template void filter_trials<float>(const Context &, const GreedyRows<float> &);
template void filter_trials<double>(const Context &, const GreedyRows<double> &);

} // namespace pgkm::cuda
