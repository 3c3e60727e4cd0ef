// pivots.cu - orders rows by their nearest pivot, and makes for each pivot what filters need of the centroids.
//
// Pivots are some of a few hundred rows, found on the host (farthest first, Gonzalez 1985, and others between).
// Kernels: a warp finds the nearest pivot of a row; a block writes its rows' numbers to places that it reserves for
// each pivot; a block makes the list and panel of a pivot for each set of centroids.
#include "assign/pivots.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "assign/choose_pivots.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int samples = 512;

// The nearest pivot of each row, one warp per row; counts and radii of the pivots.
template <typename T>
__global__ void __launch_bounds__(threads)
    nearest_pivot_kernel(const T *values, std::int64_t n, int d, const T *pivots, int count, std::uint8_t *of_row,
                         unsigned long long *counts, std::uint32_t *radius)
{
    __shared__ unsigned own_count[most_pivots];
    __shared__ std::uint32_t own_radius[most_pivots];
    if (threadIdx.x < most_pivots) {
        own_count[threadIdx.x] = 0;
        own_radius[threadIdx.x] = 0;
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x & 31);
    const std::int64_t warps = std::int64_t{gridDim.x} * (threads / 32);
    for (std::int64_t row = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32; row < n; row += warps) {
        float least = INFINITY;
        int nearest = 0;
        for (int a = 0; a < count; ++a) {
            float sum = 0.0f;
            for (int f = lane; f < d; f += 32) {
                const float difference = static_cast<float>(values[row * d + f] - pivots[a * d + f]);
                sum = __fmaf_rn(difference, difference, sum);
            }
            for (int offset = 16; offset > 0; offset >>= 1)
                sum += __shfl_xor_sync(~0u, sum, offset);
            if (sum < least) {
                least = sum;
                nearest = a;
            }
        }
        if (lane == 0) {
            of_row[row] = static_cast<std::uint8_t>(nearest);
            atomicAdd(own_count + nearest, 1u);
            atomicMax(own_radius + nearest, __float_as_uint(least));
        }
    }
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(count) && own_count[threadIdx.x] != 0) {
        atomicAdd(counts + threadIdx.x, static_cast<unsigned long long>(own_count[threadIdx.x]));
        atomicMax(radius + threadIdx.x, own_radius[threadIdx.x]);
    }
}

// Writes row numbers pivot by pivot; a block reserves its places for each pivot at once.
__global__ void __launch_bounds__(threads)
    scatter_kernel(const std::uint8_t *of_row, std::int64_t n, unsigned long long *cursor, std::int32_t *order)
{
    constexpr int per_block = threads * 16;
    __shared__ unsigned counts[most_pivots];
    __shared__ unsigned long long base[most_pivots];
    for (std::int64_t start = std::int64_t{blockIdx.x} * per_block; start < n;
         start += std::int64_t{gridDim.x} * per_block) {
        if (threadIdx.x < most_pivots)
            counts[threadIdx.x] = 0;
        __syncthreads();
        const std::int64_t last = min(start + per_block, n);
        for (std::int64_t row = start + threadIdx.x; row < last; row += threads)
            atomicAdd(counts + of_row[row], 1u);
        __syncthreads();
        if (threadIdx.x < most_pivots) {
            base[threadIdx.x] = atomicAdd(cursor + threadIdx.x, static_cast<unsigned long long>(counts[threadIdx.x]));
            counts[threadIdx.x] = 0;
        }
        __syncthreads();
        for (std::int64_t row = start + threadIdx.x; row < last; row += threads)
            order[base[of_row[row]] + atomicAdd(counts + of_row[row], 1u)] = static_cast<std::int32_t>(row);
        __syncthreads();
    }
}

// Whether a centroid of lower index, which wins every tie, has the same values. Those have the same distance.
template <typename T>
__device__ bool is_repeated(const T *centroids, const float *distance, int j, int d)
{
    for (int i = 0; i < j; ++i) {
        if (distance[i] != distance[j])
            continue;
        int f = 0;
        while (f < d && centroids[std::int64_t{i} * d + f] == centroids[std::int64_t{j} * d + f])
            ++f;
        if (f == d)
            return true;
    }
    return false;
}

// List and panel of one pivot per block.
template <typename T>
__global__ void __launch_bounds__(1024)
    prepare_kernel(PivotedRows<T> rows, const T *centroids, int k, int d, const Control *control)
{
    if (block_stopped(control))
        return;
    __shared__ float warp_value[32];
    __shared__ int warp_count[32];
    __shared__ float shared_limit, shared_least;
    __shared__ int listed;
    const int a = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x & 31),
              warp = static_cast<int>(threadIdx.x / 32);
    const T *pivot = rows.pivots + std::int64_t{a} * d;
    float *distance = rows.scratch + std::int64_t{a} * k;
    float least = INFINITY;
    for (int j = warp; j < k; j += 32) {
        float sum = 0.0f;
        for (int f = lane; f < d; f += 32) {
            const float difference = static_cast<float>(centroids[std::int64_t{j} * d + f] - pivot[f]);
            sum = __fmaf_rn(difference, difference, sum);
        }
        for (int offset = 16; offset > 0; offset >>= 1)
            sum += __shfl_xor_sync(~0u, sum, offset);
        if (lane == 0)
            distance[j] = sqrtf(sum);
        least = fminf(least, sqrtf(sum));
    }
    if (lane == 0)
        warp_value[warp] = least;
    if (threadIdx.x == 0)
        listed = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 32; ++w)
            least = fminf(least, warp_value[w]);
        const float slack = distance_slack(d);
        shared_least = least * (1.0f + slack);
        shared_limit = (shared_least + 2.0f * rows.radius[a]) * (1.0f + 2.0f * slack);
    }
    __syncthreads();
    const float limit = shared_limit;
    float largest = 0.0f;
    for (int first = 0; first < k; first += 1024) { // ordered compaction
        const int j = first + static_cast<int>(threadIdx.x);
        // NaN is taken. Among many centroids the search for repeated ones would not pay.
        const bool taken = j < k && !(distance[j] > limit) && (k > 256 || !is_repeated(centroids, distance, j, d));
        const unsigned ballot = __ballot_sync(~0u, taken);
        if (lane == 0)
            warp_count[warp] = __popc(ballot);
        __syncthreads();
        int place = listed + __popc(ballot & ((1u << lane) - 1));
        for (int w = 0; w < warp; ++w)
            place += warp_count[w];
        if (taken) {
            rows.list[std::int64_t{a} * k + place] = j;
            largest = fmaxf(largest, distance[j]);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 0; w < 32; ++w)
                listed += warp_count[w];
        __syncthreads();
    }
    for (int offset = 16; offset > 0; offset >>= 1)
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
    if (lane == 0)
        warp_value[warp] = largest;
    __syncthreads();
    float *half = rows.half + std::int64_t{a} * rows.stride;
    float *panel = rows.panel + std::int64_t{a} * rows.stride * d;
    for (int c = warp; c < rows.stride && c < (listed + 63) / 64 * 64; c += 32) {
        const int j = c < listed ? rows.list[std::int64_t{a} * k + c] : -1;
        double square = 0.0;
        for (int f = lane; f < d; f += 32) {
            const float centred = j < 0 ? 0.0f : static_cast<float>(centroids[std::int64_t{j} * d + f] - pivot[f]);
            square += static_cast<double>(centred) * static_cast<double>(centred);
            panel[std::int64_t{f} * rows.stride + c] = centred;
        }
        for (int offset = 16; offset > 0; offset >>= 1)
            square += __shfl_xor_sync(~0u, square, offset);
        if (lane == 0)
            half[c] = j < 0 ? INFINITY : static_cast<float>(square / 2);
    }
    if (threadIdx.x != 0)
        return;
    for (int w = 0; w < 32; ++w)
        largest = fmaxf(largest, warp_value[w]);
    rows.listed[a] = listed;
    rows.reach[a] = {shared_least, largest * (1.0f + distance_slack(d))};
}

template <typename T>
void allocate_lists(Context &context, PivotMemory<T> &g, int d, int k)
{
    PivotedRows<T> &rows = g.rows;
    const auto count = static_cast<std::size_t>(rows.count);
    rows.stride = (k + 63) / 64 * 64;
    const auto stride = static_cast<std::size_t>(rows.stride);
    g.list = DeviceArray<std::int32_t>(context.budget, count * static_cast<std::size_t>(k));
    g.panel = DeviceArray<float>(context.budget, count * stride * static_cast<std::size_t>(d));
    g.half = DeviceArray<float>(context.budget, count * stride);
    g.listed = DeviceArray<std::int32_t>(context.budget, count);
    g.reach = DeviceArray<float2>(context.budget, count);
    g.scratch = DeviceArray<float>(context.budget, count * static_cast<std::size_t>(k));
    rows.list = g.list.get();
    rows.panel = g.panel.get();
    rows.half = g.half.get();
    rows.listed = g.listed.get();
    rows.reach = g.reach.get();
    rows.scratch = g.scratch.get();
    rows.pivots = g.pivots.get();
    rows.radius = g.radius.get();
}

template <typename T>
std::vector<T> sample_rows(Context &context, const T *values, std::int64_t n, int d)
{
    const std::int64_t count = std::min<std::int64_t>(samples, n), step = n / count;
    std::vector<T> rows(static_cast<std::size_t>(count) * static_cast<std::size_t>(d));
    const std::size_t row = static_cast<std::size_t>(d) * sizeof(T);
    checked("cudaMemcpy2DAsync", [&] {
        return cudaMemcpy2DAsync(rows.data(), row, values, row * static_cast<std::size_t>(step), row,
                                 static_cast<std::size_t>(count), cudaMemcpyDeviceToHost, context.compute.get());
    });
    context.wait(context.compute.get());
    return rows;
}

} // namespace

template <typename T>
PivotMemory<T> one_pivot(Context &context, const Box &box, int d, int k)
{
    PivotMemory<T> g;
    std::vector<T> middle(static_cast<std::size_t>(d));
    double square = 0.0;
    for (std::size_t f = 0; f < middle.size(); ++f) {
        middle[f] = static_cast<T>(box.min[f] + (box.max[f] - box.min[f]) / 2);
        const double reach =
            std::max(box.max[f] - static_cast<double>(middle[f]), static_cast<double>(middle[f]) - box.min[f]);
        square += reach * reach;
    }
    // 2^-60 as in order_rows(): squares of distances below it are lost in float32.
    const float radius = static_cast<float>(std::sqrt(square) * (1.0 + 0x1p-20)) + 0x1p-60f;
    const cudaStream_t stream = context.compute.get();
    g.rows.count = 1;
    g.pivots = DeviceArray<T>(context.budget, middle.size());
    g.pivots.upload(middle.data(), middle.size(), stream);
    g.radius = DeviceArray<float>(context.budget, 1);
    g.radius.upload(&radius, 1, stream);
    context.wait(stream);
    allocate_lists(context, g, d, k);
    return g;
}

template <typename T>
PivotMemory<T> order_rows(Context &context, const T *values, std::int64_t n, int d, int k)
{
    PivotMemory<T> g;
    const cudaStream_t stream = context.compute.get();
    // The lists of all pivots take at most 256 MB, and a quarter of what the limit leaves.
    const std::int64_t panel = std::int64_t{(k + 63) / 64 * 64} * (d * 4 + 16);
    const auto room =
        static_cast<std::int64_t>(std::min<std::uint64_t>(context.budget.room() / 4, std::uint64_t{256} << 20));
    const int most = static_cast<int>(std::clamp<std::int64_t>(room / panel, 1, most_pivots));
    const std::vector<T> pivots = choose_pivots(sample_rows(context, values, n, d), static_cast<std::size_t>(d), most);
    const auto count = pivots.size() / static_cast<std::size_t>(d);
    g.rows.count = static_cast<int>(count);
    g.pivots = DeviceArray<T>(context.budget, pivots.size());
    g.pivots.upload(pivots.data(), pivots.size(), stream);
    DeviceArray<std::uint8_t> of_row(context.budget, static_cast<std::size_t>(n));
    DeviceArray<unsigned long long> counts(context.budget, most_pivots);
    DeviceArray<std::uint32_t> squares(context.budget, most_pivots);
    counts.fill_zero(stream);
    squares.fill_zero(stream);
    nearest_pivot_kernel<<<blocks_for(n, 64, context.facts.multiprocessors * 8), threads, 0, stream>>>(
        values, n, d, g.pivots.get(), g.rows.count, of_row.get(), counts.get(), squares.get());
    launched("nearest_pivot_kernel");
    std::vector<unsigned long long> sizes(most_pivots), cursor(most_pivots, 0);
    std::vector<std::uint32_t> bits(most_pivots);
    counts.download(sizes.data(), most_pivots, stream);
    squares.download(bits.data(), most_pivots, stream);
    context.wait(stream);
    std::vector<std::int64_t> first_row(count + 1, 0), first_tile(count + 1, 0);
    std::vector<float> radius(count);
    for (std::size_t a = 0; a < count; ++a) {
        cursor[a] = static_cast<unsigned long long>(first_row[a]);
        first_row[a + 1] = first_row[a] + static_cast<std::int64_t>(sizes[a]);
        first_tile[a + 1] = first_tile[a] + (static_cast<std::int64_t>(sizes[a]) + tile_rows - 1) / tile_rows;
        float square;
        static_assert(sizeof square == sizeof bits[a]);
        __builtin_memcpy(&square, &bits[a], sizeof square);
        radius[a] = std::sqrt(square) * (1.0f + 2.0f * distance_slack(d)) + 0x1p-60f;
    }
    g.radius = DeviceArray<float>(context.budget, count);
    g.radius.upload(radius.data(), count, stream);
    g.first_row = DeviceArray<std::int64_t>(context.budget, count + 1);
    g.first_row.upload(first_row.data(), count + 1, stream);
    g.first_tile = DeviceArray<std::int64_t>(context.budget, count + 1);
    g.first_tile.upload(first_tile.data(), count + 1, stream);
    g.rows.first_row = g.first_row.get();
    g.rows.first_tile = g.first_tile.get();
    g.rows.tiles = first_tile[count];
    if (count > 1) {
        counts.upload(cursor.data(), most_pivots, stream);
        g.order = DeviceArray<std::int32_t>(context.budget, static_cast<std::size_t>(n));
        scatter_kernel<<<blocks_for(n, threads * 16, context.facts.multiprocessors * 4), threads, 0, stream>>>(
            of_row.get(), n, counts.get(), g.order.get());
        launched("scatter_kernel");
        g.rows.order = g.order.get();
    }
    context.wait(stream);
    allocate_lists(context, g, d, k);
    return g;
}

template <typename T>
void prepare_pivots(const PivotedRows<T> &rows, const T *centroids, int k, int d, const Control *control,
                    cudaStream_t stream)
{
    if (rows.count == 0)
        return;
    prepare_kernel<<<static_cast<unsigned>(rows.count), 1024, 0, stream>>>(rows, centroids, k, d, control);
    launched("prepare_kernel");
}

template PivotMemory<float> order_rows<float>(Context &, const float *, std::int64_t, int, int);
template PivotMemory<double> order_rows<double>(Context &, const double *, std::int64_t, int, int);
template PivotMemory<float> one_pivot<float>(Context &, const Box &, int, int);
template PivotMemory<double> one_pivot<double>(Context &, const Box &, int, int);
template void prepare_pivots<float>(const PivotedRows<float> &, const float *, int, int, const Control *, cudaStream_t);
template void prepare_pivots<double>(const PivotedRows<double> &, const double *, int, int, const Control *,
                                     cudaStream_t);

} // namespace pgkm::cuda
