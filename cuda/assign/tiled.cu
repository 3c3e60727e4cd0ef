// tiled.cu - distances as a matrix product tiled through shared memory (Li, Zhao, Chu, Liu
// 2010, Algorithm 4), for any d and k; labels alone or fused with the sums.
//
// A block takes 128 rows of one group (grouping.hpp) and the centroids listed for the group,
// 64 or 16 at a time; a thread keeps a small tile of products in registers. The scores
// |c'|^2 / 2 - x'.c' are a float32 filter whose margin prepare_groups() proves; rows it leaves
// open are settled by warps over the list. For the sums the block reads its rows again, from
// the second-level cache, into 32-bit limbs in shared memory. To use: d > 16.
#include "../exact.cuh"
#include "../limbs.cuh"
#include "../stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int depth = chain_step; // features per step

template <typename T>
struct Arguments {
    View<T>        view;
    Groups<T>      groups;
    const Control *control;
    Accumulators   sums;   // or nullptrs
    std::int32_t  *labels; // or nullptr
    int            skip;   // groups with lists of at most this length are left out
    int            held;   // clusters whose sums fit the block's memory
    std::int64_t   first;  // tile of this launch
    std::int64_t   tiles;  // end of its tiles
    std::int64_t   share;  // tiles per block
};

struct Shared {
    float        rows[depth * tile_rows]; // x', feature by feature, groups of four rows swizzled
    float        panel[depth * 64];
    std::int32_t row[tile_rows];    // row numbers within the view, -1 beyond the group
    std::int32_t label[tile_rows];  // places in the group's list
    std::int32_t queue[tile_rows];
    std::int32_t queued;
};

// What a block works on at a time.
template <typename T>
struct Tile {
    int          group;
    int          listed;
    const T     *anchor;
    const float *panel;
    const float *half;
    const std::int32_t *list;
    float        margin;
};

template <typename T>
__device__ Tile<T> tile_of(const Arguments<T> &a, int group)
{
    const Groups<T> &g = a.groups;
    return {group, g.listed[group], g.anchors + std::int64_t{group} * a.view.d,
            g.panel + std::int64_t{group} * g.stride * a.view.d, g.half + std::int64_t{group} * g.stride,
            g.list + std::int64_t{group} * a.view.k, g.margin[2 * group + 1]};
}

// Where a group of four rows stands in a line of `rows`: no two lanes of a store meet in a bank.
__device__ inline int swizzled(int four, int feature) { return (four ^ ((feature >> 2) & 7)) << 2; }

// The next step's values, on their way from global to shared memory.
template <int Cols>
struct Staged {
    float rows[4][4];
    float panel[Cols == 4 ? 2 : 1][4];
};

template <typename T, int Cols>
__device__ void fetch(const Arguments<T> &a, const Tile<T> &tile, const Shared &shared, int first, int column,
                      Staged<Cols> &staged)
{
    const int d = a.view.d, feature = first + (static_cast<int>(threadIdx.x) & 7) * 4;
    T shift[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        shift[i] = feature + i < d ? tile.anchor[feature + i] : T{0};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const std::int32_t row = shared.row[(threadIdx.x >> 3) + 32 * r];
        const T *from = a.view.values + std::int64_t{max(row, 0)} * d + feature;
        if (sizeof(T) == 4 && (d & 3) == 0) {
            float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (feature < d)
                four = *reinterpret_cast<const float4 *>(from);
            staged.rows[r][0] = four.x - static_cast<float>(shift[0]);
            staged.rows[r][1] = four.y - static_cast<float>(shift[1]);
            staged.rows[r][2] = four.z - static_cast<float>(shift[2]);
            staged.rows[r][3] = four.w - static_cast<float>(shift[3]);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                staged.rows[r][i] = feature + i < d ? static_cast<float>(from[i] - shift[i]) : 0.0f;
        }
    }
    constexpr int columns = Cols == 4 ? 64 : 16, fours = columns / 4;
#pragma unroll
    for (int i = 0; i < (Cols == 4 ? 2 : 1); ++i) {
        const int place = static_cast<int>(threadIdx.x) + i * threads;
        const int f = first + place / fours;
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (place < depth * fours && f < d)
            four = *reinterpret_cast<const float4 *>(tile.panel + std::int64_t{f} * a.groups.stride + column + place % fours * 4);
        *reinterpret_cast<float4 *>(staged.panel[i]) = four;
    }
}

template <int Cols>
__device__ void stage(Shared &shared, const Staged<Cols> &staged)
{
    const int four = static_cast<int>(threadIdx.x) & 7;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const int row = (static_cast<int>(threadIdx.x) >> 3) + 32 * r;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            shared.rows[(four * 4 + i) * tile_rows + swizzled(row >> 2, four * 4) + (row & 3)] = staged.rows[r][i];
    }
    constexpr int fours = (Cols == 4 ? 64 : 16) / 4;
#pragma unroll
    for (int i = 0; i < (Cols == 4 ? 2 : 1); ++i) {
        const int place = static_cast<int>(threadIdx.x) + i * threads;
        if (place < depth * fours)
            *reinterpret_cast<float4 *>(shared.panel + place * 4) = *reinterpret_cast<const float4 *>(staged.panel[i]);
    }
}

// One step of the product: Rows x Cols per thread, `depth` features, summed by themselves first:
// the margin counts on it.
template <int Rows, int Cols>
__device__ void multiply(const Shared &shared, float (&product)[Rows][Cols])
{
    constexpr int columns = Cols == 4 ? 64 : 16, across = columns / Cols;
    const int tx = static_cast<int>(threadIdx.x) % across, ty = static_cast<int>(threadIdx.x) / across;
    float part[Rows][Cols] = {};
#pragma unroll 8
    for (int f = 0; f < depth; ++f) {
        float x[Rows], c[Cols];
#pragma unroll
        for (int r = 0; r < Rows; r += 4)
            *reinterpret_cast<float4 *>(&x[r]) =
                *reinterpret_cast<const float4 *>(shared.rows + f * tile_rows + swizzled((ty * Rows + r) >> 2, f));
        if constexpr (Cols == 4)
            *reinterpret_cast<float4 *>(c) = *reinterpret_cast<const float4 *>(shared.panel + f * columns + tx * 4);
        else
            *reinterpret_cast<float2 *>(c) = *reinterpret_cast<const float2 *>(shared.panel + f * columns + tx * 2);
#pragma unroll
        for (int r = 0; r < Rows; ++r)
#pragma unroll
            for (int j = 0; j < Cols; ++j)
                part[r][j] = __fmaf_rn(x[r], c[j], part[r][j]);
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r)
#pragma unroll
        for (int j = 0; j < Cols; ++j)
            product[r][j] += part[r][j];
}

// Filtered labels of the tile's rows; what is left open goes to the queue.
template <typename T, int Rows, int Cols>
__device__ void filter_tile(const Arguments<T> &a, const Tile<T> &tile, Shared &shared)
{
    constexpr int columns = Cols == 4 ? 64 : 16, across = columns / Cols;
    const int tx = static_cast<int>(threadIdx.x) % across, ty = static_cast<int>(threadIdx.x) / across;
    float least[Rows], second[Rows];
    int index[Rows];
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        least[r] = second[r] = INFINITY;
        index[r] = 0;
    }
    Staged<Cols> staged;
    for (int column = 0; column < tile.listed; column += columns) {
        float product[Rows][Cols] = {};
        fetch<T, Cols>(a, tile, shared, 0, column, staged);
        for (int first = 0; first < a.view.d; first += depth) {
            __syncthreads();
            stage<Cols>(shared, staged);
            __syncthreads();
            if (first + depth < a.view.d)
                fetch<T, Cols>(a, tile, shared, first + depth, column, staged);
            multiply<Rows, Cols>(shared, product);
        }
#pragma unroll
        for (int j = 0; j < Cols; ++j) {
            const int c = column + tx * Cols + j;
            const float half = tile.half[c];
#pragma unroll
            for (int r = 0; r < Rows; ++r) {
                const float score = half - product[r][j];
                second[r] = fminf(second[r], fmaxf(least[r], score));
                index[r] = score < least[r] ? c : index[r];
                least[r] = fminf(least[r], score);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < Rows; ++r) {
        for (int offset = across / 2; offset > 0; offset >>= 1) {
            const float other = __shfl_xor_sync(~0u, least[r], offset);
            const float other_second = __shfl_xor_sync(~0u, second[r], offset);
            const int other_index = __shfl_xor_sync(~0u, index[r], offset);
            second[r] = fminf(fminf(second[r], other_second), fmaxf(least[r], other));
            index[r] = other < least[r] ? other_index : index[r];
            least[r] = fminf(least[r], other);
        }
        // A margin of NaN or infinity, or no finite score, leaves the row open.
        const bool open = !(second[r] > least[r] + tile.margin) || !(least[r] < INFINITY);
        const int row = ty * Rows + r;
        if (tx == 0) {
            shared.label[row] = index[r];
            if (open && shared.row[row] >= 0)
                shared.queue[atomicAdd(&shared.queued, 1)] = row;
        }
    }
}

// Exact places for the open rows, one warp each. A first look, float64 in an order of its own
// (lanes share out the features, so that reads are coalesced), leaves the candidates within
// twice its error of the best; those few are then compared by the contract's distance.
template <typename T>
__device__ double rough_distance(const T *x, const T *c, int d)
{
    double sum = 0.0;
    for (int f = static_cast<int>(threadIdx.x & 31); f < d; f += 32) {
        const double difference = static_cast<double>(x[f]) - static_cast<double>(c[f]);
        sum = ::fma(difference, difference, sum);
    }
    for (int offset = 16; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(~0u, sum, offset);
    return sum;
}

// The contract's distance by a whole warp: coalesced reads, the chain over exchanged values.
template <typename T>
__device__ double warp_exact_distance(const T *x, const T *c, int d)
{
    double sum = 0.0;
    for (int first = 0; first < d; first += 32) {
        const int f = first + static_cast<int>(threadIdx.x & 31);
        const double difference = f < d ? static_cast<double>(x[f]) - static_cast<double>(c[f]) : 0.0;
        sum = chain_squares(difference, min(32, d - first), sum);
    }
    return sum;
}

template <typename T>
__device__ void settle(const Arguments<T> &a, const Tile<T> &tile, Shared &shared)
{
    const int d = a.view.d;
    // Both sums are of the same rounded differences, in at most d + 5 roundings of 2^-53.
    const double slack = 1.0 + 4.0 * static_cast<double>(d + 8) * 0x1p-53;
    for (int q = static_cast<int>(threadIdx.x / 32); q < shared.queued; q += threads / 32) {
        const T *row = a.view.values + std::int64_t{shared.row[shared.queue[q]]} * d;
        double rough = INFINITY;
        Nearest best = {INFINITY, 0x7fffffff};
        for (int c = 0; c < tile.listed; ++c) { // the list ascends: its places order like labels
            const T *centroid = a.view.centroids + std::int64_t{tile.list[c]} * d;
            const double distance = rough_distance(row, centroid, d);
            if (distance > rough * slack + 0x1p-1000) // below that, underflow counts
                continue;
            rough = fmin(rough, distance);
            const Nearest candidate = {warp_exact_distance(row, centroid, d), c};
            if (before(candidate, best))
                best = candidate;
        }
        if ((threadIdx.x & 31) == 0)
            shared.label[shared.queue[q]] = best.label;
    }
}

// The block's own sums of the first `held` clusters of the group's list: per cluster d hi limbs,
// d lo limbs, the mass's two, and the number of rows added since the last flush.
__device__ inline int cell_stride(int d) { return 2 * d + 3; }

template <typename T>
__device__ void add_tile(const Arguments<T> &a, const Tile<T> &tile, const Shared &shared, std::int32_t *cells)
{
    const int d = a.view.d, lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    for (int first = 0; first < d; first += 32) {
        const int f = first + lane;
        if (f >= d)
            break;
        const int exponent = a.view.feature_exponent[f];
        const bool fast = sizeof(T) == 4 && a.view.weights == nullptr && has_float_scale(exponent);
        const FloatScale scale = float_scale(fast ? exponent : 0);
#pragma unroll 4
        for (int i = warp; i < tile_rows; i += threads / 32) {
            const std::int32_t row = shared.row[i];
            if (row < 0)
                continue;
            Split limbs;
            if (fast) {
                limbs = biased_limbs(static_cast<float>(a.view.values[std::int64_t{row} * d + f]), scale);
                limbs.hi -= rounding_bits;
                limbs.lo -= rounding_bits;
            } else {
                limbs = feature_limbs(a.view, row, f);
            }
            const int place = shared.label[i];
            if (place < a.held) {
                std::int32_t *cell = cells + place * cell_stride(d) + f;
                atomicAdd(cell, limbs.hi);
                atomicAdd(cell + d, limbs.lo);
            } else {
                std::int64_t *total = a.sums.totals + (std::int64_t{tile.list[place]} * d + f) * 2;
                add64(total, limbs.hi);
                add64(total + 1, limbs.lo);
            }
        }
    }
    const int i = static_cast<int>(threadIdx.x);
    if (i >= tile_rows || shared.row[i] < 0)
        return;
    const Split mass = mass_limbs(a.view, shared.row[i]);
    const int place = shared.label[i];
    if (place < a.held) {
        std::int32_t *cell = cells + place * cell_stride(d) + 2 * d;
        atomicAdd(cell, mass.hi);
        atomicAdd(cell + 1, mass.lo);
        atomicAdd(cell + 2, 1);
    } else {
        add64(a.sums.masses + 2 * tile.list[place], mass.hi);
        add64(a.sums.masses + 2 * tile.list[place] + 1, mass.lo);
    }
}

template <typename T>
__device__ void flush(const Arguments<T> &a, const Tile<T> &tile, std::int32_t *cells)
{
    const int d = a.view.d, stride = cell_stride(d), count = min(a.held, tile.listed) * stride;
    for (int i = threadIdx.x; i < count; i += threads) {
        const int place = i / stride, component = i - place * stride;
        const std::int32_t sum = cells[i];
        cells[i] = 0;
        if (sum == 0 || component == 2 * d + 2)
            continue;
        const std::int64_t cluster = tile.list[place];
        if (component < d)
            add64(a.sums.totals + (cluster * d + component) * 2, sum);
        else if (component < 2 * d)
            add64(a.sums.totals + (cluster * d + component - d) * 2 + 1, sum);
        else
            add64(a.sums.masses + 2 * cluster + (component - 2 * d), sum);
    }
}

// Could a cell overflow in the next tile?
template <typename T>
__device__ bool nearly_full(const Arguments<T> &a, const Tile<T> &tile, const std::int32_t *cells)
{
    bool full = false;
    for (int c = threadIdx.x; c < min(a.held, tile.listed); c += threads)
        full |= cells[c * cell_stride(a.view.d) + 2 * a.view.d + 2] > limb_additions - tile_rows;
    return __syncthreads_or(full) != 0;
}

template <typename T, bool Sums>
__global__ void __launch_bounds__(threads, 2) tiled_kernel(Arguments<T> a)
{
    if (stopped(a.control))
        return;
    extern __shared__ float4 memory[];
    Shared &shared = *reinterpret_cast<Shared *>(memory);
    std::int32_t *cells = reinterpret_cast<std::int32_t *>(&shared + 1);
    const Groups<T> &groups = a.groups;
    if (Sums)
        for (int i = threadIdx.x; i < a.held * cell_stride(a.view.d); i += threads)
            cells[i] = 0;
    const std::int64_t first = a.first + blockIdx.x * a.share, last = min(first + a.share, a.tiles);
    int group = 0;
    if (groups.first_tile != nullptr)
        while (group + 1 < groups.count && groups.first_tile[group + 1] <= first)
            ++group;
    Tile<T> tile = tile_of(a, group);
    for (std::int64_t t = first; t < last; ++t) {
        if (groups.first_tile != nullptr && t >= groups.first_tile[group + 1]) {
            __syncthreads();
            if (Sums)
                flush(a, tile, cells);
            while (t >= groups.first_tile[group + 1])
                ++group;
            tile = tile_of(a, group);
        }
        if (tile.listed <= a.skip) {
            const std::int64_t end = groups.first_tile == nullptr ? last : groups.first_tile[group + 1];
            t = min(end, last) - 1;
            continue;
        }
        __syncthreads();
        if (threadIdx.x < tile_rows) {
            const bool ordered = groups.first_tile != nullptr;
            const std::int64_t place = (ordered ? groups.first_row[group] + (t - groups.first_tile[group]) * tile_rows : t * tile_rows) + threadIdx.x;
            const std::int64_t end = ordered ? groups.first_row[group + 1] : a.view.n;
            shared.row[threadIdx.x] =
                place >= end ? -1 : groups.order != nullptr ? groups.order[place] : static_cast<std::int32_t>(place);
        }
        if (threadIdx.x == 0)
            shared.queued = 0;
        __syncthreads();
        if (tile.listed <= 16)
            filter_tile<T, 4, 2>(a, tile, shared);
        else
            filter_tile<T, 8, 4>(a, tile, shared);
        __syncthreads();
        settle(a, tile, shared);
        __syncthreads();
        if (!Sums) {
            if (threadIdx.x < tile_rows && shared.row[threadIdx.x] >= 0)
                a.labels[shared.row[threadIdx.x]] = tile.list[shared.label[threadIdx.x]];
            continue;
        }
        add_tile(a, tile, shared, cells);
        __syncthreads();
        if (nearly_full(a, tile, cells))
            flush(a, tile, cells);
    }
    __syncthreads();
    if (Sums)
        flush(a, tile, cells);
}

template <typename T, bool Sums>
void launch(const Stage<T> &stage, const View<T> &view, const Accumulators &sums, std::int32_t *labels, int skip)
{
    Arguments<T> a = {view, stage.groups, stage.control, sums, labels, skip, 0, 0, 0, 0};
    const DeviceFacts &facts = stage.context.facts;
    // A grouping made for more rows than these cannot order them: they are taken as they come.
    const std::int64_t cell_bytes = std::int64_t{2 * view.d + 3} * 4;
    const std::int64_t room = facts.shared_bytes_per_block / 2 - static_cast<std::int64_t>(sizeof(Shared)) - 2048;
    a.held = Sums ? static_cast<int>(std::clamp<std::int64_t>(room / cell_bytes, 0, view.k)) : 0;
    const std::size_t bytes = sizeof(Shared) + static_cast<std::size_t>(a.held * cell_bytes);
    const auto kernel = tiled_kernel<T, Sums>;
    checked("cudaFuncSetAttribute", [&] {
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    });
    a.tiles = a.groups.first_tile == nullptr ? (view.n + tile_rows - 1) / tile_rows : a.groups.tiles;
    const int most = facts.multiprocessors * 2;
    // A cancel is seen between launches: cut the tiles so that none takes longer than 50 ms or so.
    const double terms = static_cast<double>(view.k) * view.d * tile_rows;
    const auto per_launch = std::max<std::int64_t>(static_cast<std::int64_t>(6e11 / terms), most);
    for (std::int64_t done = 0; done < a.tiles; done += per_launch) {
        Arguments<T> part = a;
        const std::int64_t count = std::min(per_launch, a.tiles - done);
        part.share = (count + most - 1) / most;
        part.first = done;
        part.tiles = done + count;
        kernel<<<static_cast<unsigned>((count + part.share - 1) / part.share), threads, bytes, stage.stream>>>(part);
        launched("tiled_kernel");
    }
}

} // namespace

template <typename T>
void assign_tiled(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    launch<T, false>(stage, view, {}, labels, 0);
}

template <typename T>
void fused_tiled(const Stage<T> &stage, const View<T> &view, const Accumulators &sums, int skip)
{
    launch<T, true>(stage, view, sums, nullptr, skip);
}

template void assign_tiled<float>(const Stage<float> &, const View<float> &, std::int32_t *);
template void assign_tiled<double>(const Stage<double> &, const View<double> &, std::int32_t *);
template void fused_tiled<float>(const Stage<float> &, const View<float> &, const Accumulators &, int);
template void fused_tiled<double>(const Stage<double> &, const View<double> &, const Accumulators &, int);

} // namespace pgkm::cuda
