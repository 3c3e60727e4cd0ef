// pivots.cu - orders rows by their nearest pivot, and makes for each pivot what filters need of the centroids.
//
// Pivots are some of a hundred rows, found on the host (farthest first, Gonzalez 1985, and others between). The rows
// are then ordered without another look by the host (nearest_pivot.cuh). Few rows have one pivot: to find more takes
// longer than it saves. A block makes the list and panel of a
// pivot for each set of centroids.
#include "assign/pivots.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "assign/choose_pivots.hpp"
#include "assign/nearest_pivot.cuh"

namespace pgkm::cuda {
namespace {

constexpr int samples = 128;
constexpr std::int64_t few_values = 1 << 22; // of rows that have one pivot

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

// Memory for the lists of an order's pivots, and what kernels are given of both.
template <typename T>
PivotMemory<T> with_lists(Context &context, std::shared_ptr<RowOrder<T>> order, int d, int k)
{
    PivotMemory<T> g;
    g.order = std::move(order);
    PivotedRows<T> &rows = g.rows;
    rows = g.order->rows;
    rows.stride = padded_clusters(k);
    const auto count = static_cast<std::size_t>(rows.count), stride = static_cast<std::size_t>(rows.stride);
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
    return g;
}

template <typename T>
std::vector<T> sample_rows(Context &context, const T *values, std::int64_t n, int d)
{
    const std::int64_t count = std::min<std::int64_t>(samples, n);
    std::vector<T> rows(static_cast<std::size_t>(count) * static_cast<std::size_t>(d));
    const DeviceArray<T> sampled(context.budget, rows.size());
    const cudaStream_t stream = context.compute.get();
    const int blocks = blocks_for(count * d, order_threads, context.facts.multiprocessors * 2);
    sample_kernel<<<blocks, order_threads, 0, stream>>>(values, n / count, d, count, sampled.get());
    launched("sample_kernel");
    sampled.download(rows.data(), rows.size(), stream);
    context.wait(stream);
    return rows;
}

// The pivots as nearest_pivot_kernel wants them, loads of rows being W values wide: columns, then halves.
template <int W>
std::vector<float> make_table(const std::vector<double> &pivots, int d)
{
    const int chunks = (d + 15) / 16, count = static_cast<int>(pivots.size()) / d;
    std::vector<float> table(static_cast<std::size_t>(chunks * 16 + 1) * most_pivots, 0.0f);
    float *half = table.data() + static_cast<std::size_t>(chunks) * 16 * most_pivots;
    std::fill_n(half, most_pivots, std::numeric_limits<float>::infinity());
    for (int a = 0; a < count; ++a) {
        const double *pivot = &pivots[static_cast<std::size_t>(a) * static_cast<std::size_t>(d)];
        double square = 0.0;
        for (int i = 0; i < chunks * 16; ++i) {
            const int c = i / 16, f = slot_feature<W>(c, i / 4 % 4, i % 4);
            const double value = f < d ? pivot[f] - pivots[static_cast<std::size_t>(f)] : 0.0;
            table[static_cast<std::size_t>((c * most_pivots + a) * 16 + i % 16)] = static_cast<float>(value);
            square += value * value;
        }
        half[a] = static_cast<float>(square / 2);
    }
    return table;
}

// Enqueues a look for a near pivot of each row.
template <typename T, int W>
void find_nearest(Context &context, const T *values, std::int64_t n, int d, const std::vector<double> &chosen,
                  const RowOrder<T> &order, std::uint8_t *of_row, PivotTally *tally)
{
    const cudaStream_t stream = context.compute.get();
    const std::vector<float> made = make_table<W>(chosen, d);
    DeviceArray<float> table(context.budget, made.size());
    table.upload(made.data(), made.size(), stream);
    const PivotTable columns = {reinterpret_cast<const float4 *>(table.get()), table.get() + made.size() - most_pivots,
                                (order.rows.count + 7) / 8};
    const auto launch = [&](auto chunks) {
        const auto kernel = nearest_pivot_kernel<T, W, decltype(chunks)::value>;
        const int most = resident_blocks(context, kernel, order_threads, 0);
        kernel<<<blocks_for(n, order_threads / 32 * strip_of_rows, most), order_threads, 0, stream>>>(
            values, n, d, order.pivots.get(), columns, of_row, tally);
        launched("nearest_pivot_kernel");
    };
    if (sizeof(T) == 4 && d > 16 && d <= 32)
        launch(std::integral_constant<int, 2>());
    else if (sizeof(T) == 4 && d > 32 && d <= 48)
        launch(std::integral_constant<int, 3>());
    else if (sizeof(T) == 4 && d > 48 && d <= 64)
        launch(std::integral_constant<int, 4>());
    else
        launch(std::integral_constant<int, 0>());
}

template <typename T>
std::vector<T> middle_of(const Box &box)
{
    std::vector<T> middle(box.min.size());
    for (std::size_t f = 0; f < middle.size(); ++f)
        middle[f] = static_cast<T>(box.min[f] + (box.max[f] - box.min[f]) / 2);
    return middle;
}

template <typename T>
std::shared_ptr<RowOrder<T>> make_order(Context &context, const T *values, std::int64_t n, int d, const Box &box,
                                        int most)
{
    auto order = std::make_shared<RowOrder<T>>();
    const cudaStream_t stream = context.compute.get();
    const std::vector<T> pivots =
        n * d < few_values ? middle_of<T>(box)
                           : choose_pivots(sample_rows(context, values, n, d), static_cast<std::size_t>(d), most);
    const std::vector<double> chosen(pivots.begin(), pivots.end());
    const auto count = pivots.size() / static_cast<std::size_t>(d);
    PivotedRows<T> &rows = order->rows;
    rows.count = static_cast<int>(count);
    rows.tiles = n / tile_rows + rows.count;
    order->most = most;
    order->pivots = DeviceArray<T>(context.budget, pivots.size());
    order->pivots.upload(pivots.data(), pivots.size(), stream);
    order->radius = DeviceArray<float>(context.budget, count);
    order->first_row = DeviceArray<std::int64_t>(context.budget, count + 1);
    order->first_tile = DeviceArray<std::int64_t>(context.budget, count + 1);
    DeviceArray<PivotTally> tally(context.budget, 1);
    tally.fill_zero(stream);
    DeviceArray<std::uint8_t> of_row;
    if (count > 1) {
        of_row = DeviceArray<std::uint8_t>(context.budget, static_cast<std::size_t>(n));
        order->order = DeviceArray<std::int32_t>(context.budget, static_cast<std::size_t>(n));
    }
    const auto find = [&](auto width) {
        find_nearest<T, decltype(width)::value>(context, values, n, d, chosen, *order, of_row.get(), tally.get());
    };
    if constexpr (sizeof(T) == 4) {
        if (d % 4 == 0)
            find(std::integral_constant<int, 4>());
        else if (d % 2 == 0)
            find(std::integral_constant<int, 2>());
        else
            find(std::integral_constant<int, 1>());
    } else {
        find(std::integral_constant<int, 1>());
    }
    lay_out_kernel<<<1, 1, 0, stream>>>(tally.get(), rows.count, d, order->first_row.get(), order->first_tile.get(),
                                        order->radius.get());
    launched("lay_out_kernel");
    if (count > 1) {
        scatter_kernel<<<blocks_for(n, order_threads * 8, context.facts.multiprocessors * 8), order_threads, 0,
                         stream>>>(of_row.get(), n, tally.get(), order->order.get());
        launched("scatter_kernel");
    }
    rows.pivots = order->pivots.get();
    rows.radius = order->radius.get();
    rows.first_row = order->first_row.get();
    rows.first_tile = order->first_tile.get();
    rows.order = order->order.get();
    return order;
}

} // namespace

template <typename T>
bool has_heavy_tails(Context &context, const T *values, std::int64_t n, int d, const Box &box)
{
    const std::vector<T> rows = sample_rows(context, values, n, d);
    const std::size_t width = box.min.size();
    const double count = static_cast<double>(rows.size() / width);
    double range = 0.0, spread = 0.0;
    for (std::size_t f = 0; f < width; ++f) {
        double mean = 0.0, deviation = 0.0;
        for (std::size_t i = f; i < rows.size(); i += width)
            mean += static_cast<double>(rows[i]) / count;
        for (std::size_t i = f; i < rows.size(); i += width)
            deviation += std::abs(static_cast<double>(rows[i]) - mean) / count;
        range = std::hypot(range, box.max[f] - box.min[f]);
        spread = std::hypot(spread, deviation);
    }
    return !(range <= 64.0 * spread); // uniform rows: 4, normal ones: 13
}

template <typename T>
PivotMemory<T> one_pivot(Context &context, const Box &box, int d, int k)
{
    auto order = std::make_shared<RowOrder<T>>();
    const std::vector<T> middle = middle_of<T>(box);
    double square = 0.0;
    for (std::size_t f = 0; f < middle.size(); ++f) {
        const double reach =
            std::max(box.max[f] - static_cast<double>(middle[f]), static_cast<double>(middle[f]) - box.min[f]);
        square += reach * reach;
    }
    // 2^-60 as in lay_out_kernel().
    const float radius = static_cast<float>(std::sqrt(square) * (1.0 + 0x1p-20)) + 0x1p-60f;
    const cudaStream_t stream = context.compute.get();
    order->rows.count = 1;
    order->pivots = DeviceArray<T>(context.budget, middle.size());
    order->pivots.upload(middle.data(), middle.size(), stream);
    order->radius = DeviceArray<float>(context.budget, 1);
    order->radius.upload(&radius, 1, stream);
    order->rows.pivots = order->pivots.get();
    order->rows.radius = order->radius.get();
    return with_lists(context, std::move(order), d, k);
}

template <typename T>
PivotMemory<T> order_rows(Context &context, const T *values, std::int64_t n, int d, const Box &box, int k)
{
    // The lists of all pivots take at most 256 MB, and a quarter of what the limit leaves.
    const std::int64_t panel = std::int64_t{padded_clusters(k)} * (d * 4 + 16);
    const auto room =
        static_cast<std::int64_t>(std::min<std::uint64_t>(context.budget.room() / 4, std::uint64_t{256} << 20));
    const int most = static_cast<int>(std::clamp<std::int64_t>(room / panel, 1, most_pivots));
    auto order = std::static_pointer_cast<RowOrder<T>>(context.budget.take_aside({values, n}));
    // An order for other lists may have too many pivots now, or too few.
    if (order == nullptr || order->rows.count > most || (order->rows.count == order->most && order->most < most)) {
        order.reset();
        order = make_order(context, values, n, d, box, most);
    }
    const std::uint64_t bytes = order->bytes();
    return with_lists(context, context.budget.lasting({values, n}, std::move(order), bytes), d, k);
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

template PivotMemory<float> order_rows<float>(Context &, const float *, std::int64_t, int, const Box &, int);
template PivotMemory<double> order_rows<double>(Context &, const double *, std::int64_t, int, const Box &, int);
template bool has_heavy_tails<float>(Context &, const float *, std::int64_t, int, const Box &);
template bool has_heavy_tails<double>(Context &, const double *, std::int64_t, int, const Box &);
template PivotMemory<float> one_pivot<float>(Context &, const Box &, int, int);
template PivotMemory<double> one_pivot<double>(Context &, const Box &, int, int);
template void prepare_pivots<float>(const PivotedRows<float> &, const float *, int, int, const Control *, cudaStream_t);
template void prepare_pivots<double>(const PivotedRows<double> &, const double *, int, int, const Control *,
                                     cudaStream_t);

} // namespace pgkm::cuda
