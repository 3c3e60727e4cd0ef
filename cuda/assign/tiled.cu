// tiled.cu - distances as a matrix product tiled through shared memory (Li, Zhao, Chu, Liu 2010, Algorithm 4). As the
// work has it, all n x k distances are written to global memory, and a second kernel finds the least of each row
// (distance_matrix). Or a block keeps the best of its rows as the tiles pass, for labels alone (tiled) or for sums in
// the same read of the rows (single_pass of rows that no register kernel takes).
//
// A block of 16 x 16 threads makes 64 rows x 64 columns: a tile of both by 32 features at a time in shared memory, four
// rows by four columns of distances in each thread's registers. Of float64 rows, and in the matrix, distances are the
// contract's, without a square root, which could tie two. Of float32 rows they are a float32 filter. To use: for rows
// that the tensor cores' filter leaves open, where it has no room for a tile of rows, and to compare.
//
// The filter: sums of squares (best.cuh), each term in a step's 32 and the steps' sums one after the other. Rows that
// it leaves open a warp each settles by the contract's distance.
#include "assign/tiled.hpp"

#include <type_traits>

#include "device/best.cuh"
#include "device/exact.cuh"
#include "device/limbs.cuh"

namespace pgkm::cuda {
namespace {

constexpr int side = 16, each = 4, tile = side * each, threads = side * side;

// Four values that are read at once.
template <typename Real>
struct alignas(16) Four {
    Real value[each];
};

// Features of 64 rows and 64 centroids.
template <typename Real>
struct Panel {
    static constexpr int depth = 128 / sizeof(Real); // features
    Four<Real> rows[depth][side + 1], columns[depth][side + 1];
    std::int64_t row[tile]; // of the view
};

// The thread's squared distances of rows 4 y + i of the panel from centroids column + 4 x + j, by the whole block. In
// float64 in one chain, as the contract has it; in float32 in a chain for each step. After a barrier behind panel.row.
template <typename T, typename Real>
__device__ void measure(const View<T> &view, int column, Panel<Real> &panel, Real (&sums)[each][each])
{
    constexpr int depth = Panel<Real>::depth;
    const int self = static_cast<int>(threadIdx.x), x = self % side, y = self / side;
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
        for (int j = 0; j < each; ++j)
            sums[i][j] = 0;
    for (int from = 0; from < view.d; from += depth) {
        const int f = self % depth, count = min(depth, view.d - from);
        constexpr int copies = tile * depth / threads, apart = threads / depth;
        Real row_value[copies] = {}, centroid_value[copies] = {}; // all on their way at a time
        if (f < count)
#pragma unroll
            for (int i = 0; i < copies; ++i) {
                const int at = self / depth + i * apart, centroid = min(column + at, view.k - 1);
                row_value[i] = static_cast<Real>(view.values[panel.row[at] * view.d + from + f]);
                centroid_value[i] = static_cast<Real>(view.centroids[std::int64_t{centroid} * view.d + from + f]);
            }
        __syncthreads(); // all have read the features before
#pragma unroll
        for (int i = 0; i < copies; ++i) {
            const int at = self / depth + i * apart;
            panel.rows[f][at / each].value[at % each] = row_value[i];
            panel.columns[f][at / each].value[at % each] = centroid_value[i];
        }
        __syncthreads();
        Real step[each][each] = {};
        Real(&chain)[each][each] = sizeof(Real) == 8 ? sums : step;
#pragma unroll 4
        for (int i = 0; i < count; ++i) {
            const Four<Real> row = panel.rows[i][y], centroid = panel.columns[i][x];
#pragma unroll
            for (int m = 0; m < each; ++m)
#pragma unroll
                for (int n = 0; n < each; ++n) {
                    const Real difference = row.value[m] - centroid.value[n];
                    chain[m][n] = ::fma(difference, difference, chain[m][n]);
                }
        }
        if constexpr (sizeof(Real) == 4)
#pragma unroll
            for (int m = 0; m < each; ++m)
#pragma unroll
                for (int n = 0; n < each; ++n)
                    sums[m][n] += step[m][n];
    }
}

template <typename T>
__global__ void __launch_bounds__(threads) distances_kernel(View<T> view, const Control *control, double *matrix)
{
    if (block_stopped(control))
        return;
    __shared__ Panel<double> panel;
    const std::int64_t first = std::int64_t{blockIdx.x} * tile;
    const int column = static_cast<int>(blockIdx.y) * tile, self = static_cast<int>(threadIdx.x);
    if (self < tile)
        panel.row[self] = min(first + self, view.n - 1);
    __syncthreads();
    double sums[each][each];
    measure(view, column, panel, sums);
#pragma unroll
    for (int i = 0; i < each; ++i)
#pragma unroll
        for (int j = 0; j < each; ++j) {
            const std::int64_t row = first + self / side * each + i;
            const int at = column + self % side * each + j;
            if (row < view.n && at < view.k)
                matrix[row * view.k + at] = sums[i][j];
        }
}

// A row a thread.
__global__ void least_kernel(const Control *control, const double *matrix, std::int64_t n, int k, std::int32_t *labels)
{
    const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (stopped(control) || row >= n)
        return;
    Nearest best = {__longlong_as_double(0x7ff0000000000000LL), 0};
    for (int j = 0; j < k; ++j)
        if (matrix[row * k + j] < best.distance)
            best = {matrix[row * k + j], j};
    labels[row] = best.label;
}

// Adds the panel's first `count` rows to the sums of their clusters.
template <typename T>
__device__ void add_rows(const View<T> &view, const std::int64_t *row, int count, const std::int32_t *labels,
                         const Accumulators &sums)
{
    const int self = static_cast<int>(threadIdx.x);
    for (int i = self; i < count * view.d; i += threads) {
        const int at = i / view.d, f = i - at * view.d;
        add_limbs(sums.totals + (std::int64_t{labels[at]} * view.d + f) * 2, plain_limbs(view, row[at], f));
    }
    if (self < count)
        add64(sums.masses + 2 * labels[self] + 1, 1);
}

// What a thread keeps of a float64 row, or of one that is measured exactly.
struct NearestSoFar {
    Nearest nearest;

    __device__ static NearestSoFar none() { return {{__longlong_as_double(0x7ff0000000000000LL), 0}}; }
    __device__ void take(double distance, int at) // at: ascending
    {
        if (distance < nearest.distance)
            nearest = {distance, at};
    }
    template <int Lanes>
    __device__ void join_lanes()
    {
        nearest = nearest_in_lanes<Lanes>(nearest);
    }
    __device__ int label(int) const { return nearest.label; }
};

struct BestSoFar : Best {
    __device__ static BestSoFar none() { return {Best::none()}; }
    // -1: open.
    __device__ int label(int d) const
    {
        constexpr int depth = Panel<float>::depth;
        return is_sole(depth + d / depth) ? index : -1;
    }
};

// Blocks take 64 rows of the view at a time, or of the list where there is one. Labels are written where `labels` is
// given, else sums are made.
template <typename T>
__global__ void __launch_bounds__(threads)
    tiled_kernel(View<T> view, const Control *control, RowList list, std::int32_t *labels, Accumulators sums)
{
    __shared__ Panel<T> panel;
    __shared__ std::int32_t label[tile];
    const std::int64_t end = list.count != nullptr ? *list.count : view.n;
    const int self = static_cast<int>(threadIdx.x), x = self % side, y = self / side;
    for (std::int64_t first = std::int64_t{blockIdx.x} * tile; first < end; first += std::int64_t{gridDim.x} * tile) {
        const int count = static_cast<int>(min(std::int64_t{tile}, end - first));
        if (self < tile) {
            const std::int64_t at = first + min(self, count - 1);
            panel.row[self] = list.count != nullptr ? list.rows[at] : at;
        }
        using Kept = std::conditional_t<sizeof(T) == 8, NearestSoFar, BestSoFar>;
        Kept kept[each];
#pragma unroll
        for (int i = 0; i < each; ++i)
            kept[i] = Kept::none();
        for (int column = 0; column < view.k; column += tile) {
            if (block_stopped(control))
                return;
            T distances[each][each];
            measure(view, column, panel, distances);
#pragma unroll
            for (int j = 0; j < each; ++j)
#pragma unroll
                for (int i = 0; i < each; ++i)
                    if (const int at = column + x * each + j; at < view.k)
                        kept[i].take(distances[i][j], at);
        }
#pragma unroll
        for (int i = 0; i < each; ++i) {
            kept[i].template join_lanes<side>();
            if (x == 0)
                label[y * each + i] = kept[i].label(view.d);
        }
        __syncthreads();
        if constexpr (sizeof(T) == 4) {
            for (int i = self / 32; i < count && !__any_sync(~0u, stopped(control)); i += threads / 32)
                if (label[i] < 0) {
                    const T *row = view.values + panel.row[i] * view.d;
                    const Nearest nearest = settle_by_warp(row, view.centroids, view.k, view.d);
                    __syncwarp();
                    label[i] = nearest.label;
                }
            if (block_stopped(control)) // some are not settled
                return;
        }
        if (labels == nullptr)
            add_rows(view, panel.row, count, label, sums);
        else if (self < count)
            labels[panel.row[self]] = label[self];
        __syncthreads();
    }
}

template <typename T>
void launch(const Stage<T> &stage, const View<T> &view, std::int32_t *labels, const Accumulators &sums)
{
    in_exact_launches(stage, view, 1e12, [&](std::int64_t first, std::int64_t rows) {
        enqueue(tiled_kernel<T>, (rows + tile - 1) / tile, threads, 0, stage.stream, slice(view, first, rows),
                stage.control, RowList{}, labels == nullptr ? nullptr : labels + first, sums);
    });
}

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    launch(stage, view, labels, {});
}

template <typename T>
void fuse(const Stage<T> &stage, const View<T> &view, const Accumulators &sums)
{
    launch(stage, view, nullptr, sums);
}

template <typename T>
void assign_by_matrix(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
    const std::uint64_t line = static_cast<std::uint64_t>(view.k) * sizeof(double);
    const std::int64_t blocks_of_columns = (std::int64_t{view.k} + tile - 1) / tile;
    const std::uint64_t wanted = std::min(static_cast<std::uint64_t>(view.n) * line, most_bytes);
    const auto step = static_cast<std::int64_t>(stage.context.scratch_room(wanted) / line);
    if (step < 1 || blocks_of_columns > 65535)
        return assign(stage, view, labels);
    auto *matrix = reinterpret_cast<double *>(stage.context.scratch(static_cast<std::size_t>(step) * line));
    in_exact_launches(stage, view, 2e11, [&](std::int64_t first, std::int64_t rows) {
        for (std::int64_t done = 0; done < rows; done += step) {
            const View<T> part = slice(view, first + done, std::min(step, rows - done));
            enqueue(distances_kernel<T>, {(part.n + tile - 1) / tile, blocks_of_columns}, threads, 0, stage.stream,
                    part, stage.control, matrix);
            enqueue(least_kernel, (part.n + 127) / 128, 128, 0, stage.stream, stage.control, matrix, part.n, part.k,
                    labels + first + done);
        }
    });
}

} // namespace

void label_listed(const Stage<float> &stage, const View<float> &view, const RowList &list, std::int32_t *labels)
{
    const int blocks = blocks_for(view.n, tile, stage.context.facts.multiprocessors * 4);
    enqueue(tiled_kernel<float>, blocks, threads, 0, stage.stream, view, stage.control, list, labels, Accumulators{});
}

const Both<Assign> assign_tiled = {assign<float>, assign<double>};
const Both<Assign> assign_distance_matrix = {assign_by_matrix<float>, assign_by_matrix<double>};
const Both<Fuse> fused_tiled = {fuse<float>, fuse<double>};

} // namespace pgkm::cuda
