// products.cu (moments) - sums of products of deviations, in float64 on the tensor cores.
//
// Shape: float32 and float64 rows of any number of features d. The lower triangle of the d x d matrix is cut into
// squares of 128 features (plan.hpp). A block takes one square and one segment of the rows; a warp takes a tile of 32
// x 32 sums of the square, which stays in its registers. With fewer features than 97 a square has fewer tiles than a
// block has warps: the warps then share the rows, and each share has sums (a slot) of its own.
// Data: rows lie in shared memory as they came, three or four stages of 32 to 128 rows. Deviations from the shift are
// taken in float64 as values enter the registers, as the fragments of mma.sync (device/mma.cuh) want them.
// Threads: asynchronous copies (cp.async) fill the stages ahead. One barrier a stage shows it to all warps and frees
// the one before. slots_kernel adds up the slots in their order, so that the bits are the same from run to run.
// Error: each sum has the rounding of float64 additions, in an order that the shape and the device alone decide. The
// shift takes the place of a first pass over the rows (Chan, Golub, LeVeque 1979: Updating formulae and a pairwise
// algorithm for computing sample variances).
#include <type_traits>

#include "device/copy_rows.cuh"
#include "device/mma.cuh"
#include "moments/plan.hpp"
#include "moments/products.hpp"

namespace pgkm::cuda::moments {
namespace {

constexpr int side = 32; // of the tile of one warp

// The place of a warp: its tile of a square, and which of the stage's rows it takes.
struct Place {
    int row, column; // of the tile, in tiles
    int share;
    bool diagonal; // only the lower triangle of the tile counts
};

// Squares on the diagonal: the tiles of the lower triangle. The four tiles on the diagonal of a square
// of 4 x 4 have three quarters of the work of the others: two schedulers get two of those and one
// other each, the other two schedulers two full ones.
template <int Columns>
__device__ Place place_on_diagonal(int warp)
{
    constexpr int tiles = Columns * (Columns + 1) / 2;
    constexpr unsigned long long order = Columns == 4 ? 0x9587206431ULL : 0x543210ULL;
    const int number = static_cast<int>(order >> (4 * (warp % tiles))) & 15;
    const int row = number >= 6 ? 3 : number >= 3 ? 2 : number >= 1 ? 1 : 0;
    const int column = number - row * (row + 1) / 2;
    return {row, column, warp / tiles, row == column};
}

__device__ Place place_below(int warp)
{
    return {warp / 4, warp % 4, 0, false};
}

// The square below the diagonal of number `number`.
__device__ int2 square_below(int number)
{
    int row = 1;
    while ((row + 1) * row / 2 <= number)
        ++row;
    return {row, number - row * (row - 1) / 2};
}

// Whether rows can be copied 16 bytes at a time.
template <typename T>
__device__ bool copies_wide(const T *values, int d)
{
    return reinterpret_cast<std::uintptr_t>(values) % 16 == 0 && d * static_cast<int>(sizeof(T)) % 16 == 0;
}

// The rows of a segment that are at hand, and the first of their stages that is the segment's.
struct Run {
    std::int64_t first_row, n_rows, stage;
};

__device__ Run run_of(const Segment &segment, const Chunk &chunk, int stage_rows)
{
    if (chunk.n_rows == 0)
        return {segment.first_row, segment.n_rows, segment.index};
    const std::int64_t passed = chunk.first_row / stage_rows % segment.count;
    return {0, chunk.n_rows, segment.index - passed + (segment.index < passed ? segment.count : 0)};
}

// The shape of a kernel: squares on the diagonal (Below false) or below it.
template <typename T, int Columns, bool Below>
struct Shape {
    static constexpr int tiles = Below ? 16 : Columns * (Columns + 1) / 2;
    static constexpr int shares = Below ? 1 : row_shares(Columns);
    static constexpr int warps = tiles * shares;
    static constexpr int threads = warps * 32;
    static constexpr int width = Columns * side;
    static constexpr int rows = stage_rows(Columns);
    // Four rows' values of eight neighbouring features fall into banks of their own.
    static constexpr int stride = width + (sizeof(T) == 4 ? 8 : 4);
    static constexpr int panel = rows * stride;
    static constexpr int panels = Below ? 2 : 1;
    static constexpr int stages = Below && sizeof(T) == 8 ? 3 : 4;
    static constexpr int bytes = stages * panels * panel * static_cast<int>(sizeof(T));
};

// A warp's tile: 32 x 32 sums, and on the diagonal the sums of 32 features.
struct Tile {
    double acc[2][4][4];
    double sums[4];
};

struct Features {
    double shift[4]; // of features q * 8 + g
};

template <bool Whole, typename T>
__device__ double deviation(const T *row, int q, const Features &features, bool there)
{
    const double value = static_cast<double>(row[q * 8]) - features.shift[q];
    return Whole || there ? value : 0.0;
}

// Eight rows, all of them there where `Whole`. `a` and `b` point to the thread's first value of either
// side, in row t.
template <bool Below, bool Whole, typename T, int Stride>
__device__ void add_eight(Tile &tile, const T *a, const T *b, const Features &fa, const Features &fb, bool diagonal,
                          bool first, bool second)
{
    double left[2][4];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        left[q / 2][q % 2] = deviation<Whole>(a, q, fa, first);
        left[q / 2][2 + q % 2] = deviation<Whole>(a + 4 * Stride, q, fa, second);
    }
    if (!Below && diagonal) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
            const double right[2] = {left[q / 2][q % 2], left[q / 2][2 + q % 2]};
            tile.sums[q] = tile.sums[q] + right[0] + right[1];
            if (q < 2)
                mixture::multiply_add(tile.acc[0][q], left[0], right);
            mixture::multiply_add(tile.acc[1][q], left[1], right);
        }
        return;
    }
#pragma unroll
    for (int q = 0; q < 4; ++q) {
        const double right[2] = {deviation<Whole>(b, q, fb, first), deviation<Whole>(b + 4 * Stride, q, fb, second)};
        mixture::multiply_add(tile.acc[0][q], left[0], right);
        mixture::multiply_add(tile.acc[1][q], left[1], right);
    }
}

// Calls body(value, place in the triangle) for the tile's sums that are there.
template <typename Body>
__device__ void each_sum(Tile &tile, int a, int b, int d, Body &&body)
{
    const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int q = 0; q < 4; ++q)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = a + half * 16 + i / 2 * 8 + g, column = b + q * 8 + 2 * t + i % 2;
                if (row < d && column <= row)
                    body(tile.acc[half][q][i], triangle(row) + column);
            }
}

template <typename T, int Columns, bool Below>
__global__ void __launch_bounds__(Shape<T, Columns, Below>::threads, 1)
    products_kernel(const T *values, int d, const Segment *segments, Chunk chunk, Sums out)
{
    using S = Shape<T, Columns, Below>;
    extern __shared__ double memory[];
    T *const stages = reinterpret_cast<T *>(memory);
    if (__syncthreads_or(*const_cast<const volatile std::int32_t *>(out.stop)) != 0)
        return;
    const Segment segment = segments[blockIdx.x];
    const int2 square = Below ? square_below(static_cast<int>(blockIdx.y))
                              : int2{static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.y)};
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4,
              t = lane % 4;
    const Place place = Below ? place_below(warp) : place_on_diagonal<Columns>(warp);
    const int a = square.x * square_side + place.row * side, b = square.y * square_side + place.column * side;
    const Run run = run_of(segment, chunk, S::rows);
    const T *const rows = values + run.first_row * d;
    const bool wide = copies_wide(rows, d);

    Features fa, fb;
    const double *const shift = out.shift + segment.shift;
    for (int q = 0; q < 4; ++q) {
        fa.shift[q] = a + q * 8 + g < d ? shift[a + q * 8 + g] : 0.0;
        fb.shift[q] = b + q * 8 + g < d ? shift[b + q * 8 + g] : 0.0;
    }
    const std::int64_t slot = segment.slot + place.share;
    double *const cross = out.cross + slot * triangle(d), *const sums = out.sums + slot * 4 * d;
    Tile own = {};
    if (chunk.first_row > 0) {
        each_sum(own, a, b, d, [&](double &value, std::int64_t at) { value = cross[at]; });
        for (int q = 0; q < 4; ++q)
            if (place.diagonal && a + q * 8 + g < d)
                own.sums[q] = sums[t * d + a + q * 8 + g];
    }

    const auto fetch = [&](std::int64_t stage, int buffer) {
        const std::int64_t row = stage * S::rows;
        if (row < run.n_rows) {
            const int there =
                static_cast<int>(min(static_cast<long long>(S::rows), static_cast<long long>(run.n_rows - row)));
            T *const to = stages + buffer * S::panels * S::panel;
            const auto copy = [&](T *panel, int feature) {
                copy_rows<S::rows, S::width, S::stride, S::threads>(panel, rows + row * d + feature, d, there,
                                                                    d - feature, wide);
            };
            copy(to, square.x * square_side);
            if (Below)
                copy(to + S::panel, square.y * square_side);
        }
        commit_copies();
    };
    std::int64_t ahead = run.stage;
    for (int i = 0; i < S::stages - 1; ++i, ahead += segment.count)
        fetch(ahead, i);
    int buffer = 0;
    std::int32_t told = 0;
    for (std::int64_t stage = run.stage; stage * S::rows < run.n_rows; stage += segment.count) {
        wait_copies<S::stages - 2>();
        // One barrier shows the stage to all, lets its predecessor's memory go, and tells of a cancel
        // that was read a stage ago: nobody waits for that.
        if (__syncthreads_or(told) != 0)
            return;
        told = threadIdx.x == 0 ? *const_cast<const volatile std::int32_t *>(out.stop) : 0;
        fetch(ahead, (buffer + S::stages - 1) % S::stages);
        ahead += segment.count;
        const T *const panel = stages + buffer * S::panels * S::panel;
        const T *const left = panel + t * S::stride + place.row * side + g;
        const T *const right = panel + (Below ? S::panel : 0) + t * S::stride + place.column * side + g;
        const int there = static_cast<int>(
            min(static_cast<long long>(S::rows), static_cast<long long>(run.n_rows - stage * S::rows)));
        const auto add = [&](auto whole) {
#pragma unroll Below ? 1 : 2
            for (int row = place.share * 8; row < S::rows; row += S::shares * 8)
                add_eight<Below, decltype(whole)::value, T, S::stride>(own, left + row * S::stride,
                                                                       right + row * S::stride, fa, fb, place.diagonal,
                                                                       row + t < there, row + t + 4 < there);
        };
        if (a < d && b < d) {
            if (there == S::rows)
                add(std::true_type());
            else
                add(std::false_type());
        }
        buffer = (buffer + 1) % S::stages;
    }
    wait_copies<0>();
    each_sum(own, a, b, d, [&](double &value, std::int64_t at) { cross[at] = value; });
    for (int q = 0; q < 4; ++q)
        if (place.diagonal && a + q * 8 + g < d)
            sums[t * d + a + q * 8 + g] = own.sums[q];
}

template <typename T, int Columns, bool Below>
void launch(Context &context, const T *values, int d, const Segment *segments, std::int64_t n_segments,
            const Chunk &chunk, const Sums &sums)
{
    using S = Shape<T, Columns, Below>;
    if (static_cast<std::size_t>(S::bytes) > static_cast<std::size_t>(context.facts.shared_bytes_per_block))
        throw Error(PGKM_UNSUPPORTED, "PCA of these rows needs more shared memory than this GPU has");
    enqueue(products_kernel<T, Columns, Below>, {n_segments, Below ? squares_below(d) : squares(d)}, S::threads,
            S::bytes, context.compute.get(), values, d, segments, chunk, sums);
}

constexpr int slot_threads = 8; // that share the slots of a value

__global__ void slots_kernel(int d, const Total *totals, Sums sums)
{
    __shared__ double parts[slot_threads][32];
    const Total total = totals[blockIdx.y];
    const std::int64_t i = std::int64_t{blockIdx.x} * 32 + threadIdx.x, size = d + triangle(d);
    double own = 0.0;
    if (i < size) {
        for (std::int64_t s = threadIdx.y; s < total.count; s += slot_threads) {
            const std::int64_t slot = total.slot + s;
            if (i >= d)
                own += sums.cross[slot * triangle(d) + i - d];
            else
                for (int t = 0; t < 4; ++t)
                    own += sums.sums[(slot * 4 + t) * d + i];
        }
    }
    parts[threadIdx.y][threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.y != 0 || i >= size)
        return;
    for (int part = 1; part < slot_threads; ++part)
        own += parts[part][threadIdx.x];
    (i < d ? total.sums[i] : total.cross[i - d]) = own;
}

} // namespace

template <typename T>
void add_products(Context &context, const T *values, int d, const Segment *segments, std::int64_t n_segments,
                  const Chunk &chunk, const Sums &sums)
{
    switch (columns(d)) {
    case 1:
        return launch<T, 1, false>(context, values, d, segments, n_segments, chunk, sums);
    case 2:
        return launch<T, 2, false>(context, values, d, segments, n_segments, chunk, sums);
    case 3:
        return launch<T, 3, false>(context, values, d, segments, n_segments, chunk, sums);
    default:
        break;
    }
    launch<T, 4, false>(context, values, d, segments, n_segments, chunk, sums);
    if (squares_below(d) > 0)
        launch<T, 4, true>(context, values, d, segments, n_segments, chunk, sums);
}

void add_slots(Context &context, int d, const Total *totals, std::int64_t n_totals, const Sums &sums)
{
    enqueue(slots_kernel, {(d + triangle(d) + 31) / 32, n_totals}, {32, slot_threads}, 0, context.compute.get(), d,
            totals, sums);
}

template void add_products<float>(Context &, const float *, int, const Segment *, std::int64_t, const Chunk &,
                                  const Sums &);
template void add_products<double>(Context &, const double *, int, const Segment *, std::int64_t, const Chunk &,
                                   const Sums &);

} // namespace pgkm::cuda::moments
