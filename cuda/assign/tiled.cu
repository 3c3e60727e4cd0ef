// tiled.cu - distances as a matrix product tiled through shared memory (Li, Zhao, Chu, Liu
// 2010, Algorithm 4), for any d and k; labels alone or fused with the sums.
//
// A block takes 128 rows of one pivot (pivots.hpp) and the centroids listed for the pivot,
// 64 or 16 at a time; a thread keeps a small tile of products in registers. The scores
// |c'|^2 / 2 - x'.c' are a float32 filter with a margin by the row's own length (row_margin()); rows it leaves
// open are settled by warps over the list. For the sums the block reads its rows again, from
// the second-level cache, into 32-bit limbs in shared memory. To use: d > 16.
#include "assign/tiled.cuh"

namespace pgkm::cuda {
namespace {

using namespace tiled;

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

// The block's own sums of the first `held` clusters of the pivot's list: per cluster d hi limbs,
// d lo limbs, and the number of rows added since the last flush.
__host__ __device__ inline int counter_stride(int d)
{
    return 2 * d + 1;
}

template <typename T>
__device__ void add_tile(const Arguments<T> &a, const Tile<T> &tile, const Shared &shared, std::int32_t *counters)
{
    const int d = a.view.d, lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x / 32);
    for (int first = 0; first < d; first += 32) {
        const int f = first + lane;
        if (f >= d)
            break;
        const FeatureScale<T> feature = a.view.feature_scales[f];
        const bool fast = sizeof(T) == 4 && has_float_scale(feature.exponent);
        const FloatScale scale = float_scale(fast ? feature.exponent : 0);
#pragma unroll 4
        for (int i = warp; i < tile_rows; i += threads / 32) {
            const std::int32_t row = shared.row[i];
            if (row < 0)
                continue;
            Split limbs;
            if (fast) {
                limbs =
                    biased_limbs(static_cast<float>(a.view.values[std::int64_t{row} * d + f] - feature.origin), scale);
                limbs.hi -= rounding_bits;
                limbs.lo -= rounding_bits;
            } else {
                limbs = plain_limbs(a.view, row, f);
            }
            const int place = shared.label[i];
            if (place < a.held) {
                std::int32_t *counter = counters + place * counter_stride(d) + f;
                atomicAdd(counter, limbs.hi);
                atomicAdd(counter + d, limbs.lo);
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
    const int place = shared.label[i];
    if (place < a.held)
        atomicAdd(counters + place * counter_stride(d) + 2 * d, 1);
    else
        add64(a.sums.masses + 2 * tile.list[place] + 1, 1);
}

template <typename T>
__device__ void flush(const Arguments<T> &a, const Tile<T> &tile, std::int32_t *counters)
{
    const int d = a.view.d, stride = counter_stride(d), count = min(a.held, tile.listed) * stride;
    for (int i = threadIdx.x; i < count; i += threads) {
        const int place = i / stride, component = i - place * stride;
        const std::int32_t sum = counters[i];
        counters[i] = 0;
        if (sum == 0)
            continue;
        const std::int64_t cluster = tile.list[place];
        if (component < d)
            add64(a.sums.totals + (cluster * d + component) * 2, sum);
        else if (component < 2 * d)
            add64(a.sums.totals + (cluster * d + component - d) * 2 + 1, sum);
        else
            add64(a.sums.masses + 2 * cluster + 1, sum);
    }
}

// Could a counter overflow in the next tile?
template <typename T>
__device__ bool nearly_full(const Arguments<T> &a, const Tile<T> &tile, const std::int32_t *counters)
{
    bool full = false;
    for (int c = threadIdx.x; c < min(a.held, tile.listed); c += threads)
        full |= counters[c * counter_stride(a.view.d) + 2 * a.view.d] > limb_additions - tile_rows;
    return __syncthreads_or(full) != 0;
}

template <typename T, bool Sums>
__global__ void __launch_bounds__(threads, 2) tiled_kernel(Arguments<T> a)
{
    if (block_stopped(a.control))
        return;
    extern __shared__ float4 memory[];
    Shared &shared = *reinterpret_cast<Shared *>(memory);
    std::int32_t *counters = reinterpret_cast<std::int32_t *>(&shared + 1);
    const PivotedRows<T> &pivots = a.pivots;
    if (Sums)
        for (int i = threadIdx.x; i < a.held * counter_stride(a.view.d); i += threads)
            counters[i] = 0;
    const std::int64_t tiles = pivots.first_tile != nullptr ? min(a.tiles, pivots.first_tile[pivots.count]) : a.tiles;
    const std::int64_t first = a.first + blockIdx.x * a.share, last = min(first + a.share, tiles);
    int pivot = 0;
    if (pivots.first_tile != nullptr)
        while (pivot + 1 < pivots.count && pivots.first_tile[pivot + 1] <= first)
            ++pivot;
    Tile<T> tile = tile_of(a, pivot);
    for (std::int64_t t = first; t < last; ++t) {
        if (pivots.first_tile != nullptr && t >= pivots.first_tile[pivot + 1]) {
            __syncthreads();
            if (Sums)
                flush(a, tile, counters);
            while (t >= pivots.first_tile[pivot + 1])
                ++pivot;
            tile = tile_of(a, pivot);
        }
        __syncthreads();
        if (threadIdx.x < tile_rows) {
            const bool ordered = pivots.first_tile != nullptr;
            const std::int64_t place =
                (ordered ? pivots.first_row[pivot] + (t - pivots.first_tile[pivot]) * tile_rows : t * tile_rows) +
                threadIdx.x;
            const std::int64_t end = ordered ? pivots.first_row[pivot + 1] : a.view.n;
            shared.row[threadIdx.x] = place >= end              ? -1
                                      : pivots.order != nullptr ? pivots.order[place]
                                                                : static_cast<std::int32_t>(place);
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
        add_tile(a, tile, shared, counters);
        __syncthreads();
        if (nearly_full(a, tile, counters))
            flush(a, tile, counters);
    }
    __syncthreads();
    if (Sums)
        flush(a, tile, counters);
}

template <typename T, bool Sums>
void launch(const Stage<T> &stage, const View<T> &view, const Accumulators &sums, std::int32_t *labels)
{
    Arguments<T> a = {view, stage.pivots, stage.control, sums, labels, 0, 0, 0, 0};
    const DeviceFacts &facts = stage.context.facts;
    const std::int64_t counter_bytes = std::int64_t{counter_stride(view.d)} * 4;
    const std::int64_t room = facts.shared_bytes_per_block / 2 - static_cast<std::int64_t>(sizeof(Shared)) - 2048;
    a.held = Sums ? static_cast<int>(std::clamp<std::int64_t>(room / counter_bytes, 0, view.k)) : 0;
    const std::size_t bytes = sizeof(Shared) + static_cast<std::size_t>(a.held * counter_bytes);
    const auto kernel = tiled_kernel<T, Sums>;
    allow_memory(kernel, bytes);
    a.tiles = a.pivots.first_tile == nullptr ? (view.n + tile_rows - 1) / tile_rows : a.pivots.tiles;
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

template <typename T>
void assign(const Stage<T> &stage, const View<T> &view, std::int32_t *labels)
{
    launch<T, false>(stage, view, {}, labels);
}

template <typename T>
void fuse(const Stage<T> &stage, const View<T> &view, const Accumulators &sums)
{
    launch<T, true>(stage, view, sums, nullptr);
}

} // namespace

const Both<Assign> assign_tiled = {assign<float>, assign<double>};
const Both<Fuse> fused_tiled = {fuse<float>, fuse<double>};

} // namespace pgkm::cuda
