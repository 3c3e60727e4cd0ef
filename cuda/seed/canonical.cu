// canonical.cu (seed) - the canonical order of rows: a key for each row, then a radix sort of keys and row numbers.
//
// Equal keys most often belong to equal rows, whose order does not matter. Where neighbours in the order of the keys
// have equal keys and different contents, or rows are streamed and cannot be compared here, the host goes over the
// runs of equal keys (host_order.cu). It sorts all rows where the device has no room: 24 bytes a row.
// Data: rows as they lie, resident or in chunks; 64-bit keys and 32-bit row numbers, each twice for the sort.
// Threads: 1 to 32 lanes share a row and add its terms by shuffles. No barrier.
#include "seed/canonical.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <cub/device/device_radix_sort.cuh>

#include "numeric/row_key.hpp"
#include "plan/stages.hpp"
#include "plugin/upload.hpp"
#include "seed/host_order.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int key_bits = 64;

// The lanes of a warp that share a row: the least power of 2 that leaves each one feature, at most 32.
int lanes_for(std::int32_t d)
{
    int lanes = 1;
    while (lanes < 32 && lanes < d)
        lanes *= 2;
    return lanes;
}

// Row i of the chunk is row first + i of the problem.
template <typename T>
__global__ void __launch_bounds__(threads) key_kernel(const T *values, std::int64_t n, std::int32_t d, int lanes,
                                                      std::int64_t first, std::uint64_t *keys, std::uint32_t *rows)
{
    const int lane = static_cast<int>(threadIdx.x & 31), part = lane & (lanes - 1);
    const std::int64_t rows_each = 32 / lanes, warps = std::int64_t{gridDim.x} * (threads / 32);
    const std::int64_t warp = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
    for (std::int64_t base = warp * rows_each; base < n; base += warps * rows_each) {
        const std::int64_t row = base + lane / lanes;
        unsigned long long sum = 0;
        if (row < n)
            for (std::int32_t f = part; f < d; f += lanes)
                sum += feature_term(values[row * d + f], f);
        for (int offset = lanes / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(~0u, sum, offset);
        if (row < n && part == 0) {
            keys[first + row] = finish_key(sum);
            rows[first + row] = static_cast<std::uint32_t>(first + row);
        }
    }
}

// *open becomes 1 where neighbours at positions [first, end) and before them share a key, but not their content.
// values is nullptr where rows are not on the device: then equal keys will do.
template <typename T>
__global__ void __launch_bounds__(threads)
    compare_kernel(const T *values, std::int32_t d, int lanes, const std::uint64_t *keys, const std::uint32_t *rows,
                   std::int64_t first, std::int64_t end, std::int32_t *open)
{
    const int part = static_cast<int>(threadIdx.x) & (lanes - 1);
    const std::int64_t pairs = std::int64_t{gridDim.x} * (threads / lanes);
    const std::int64_t pair = std::int64_t{blockIdx.x} * (threads / lanes) + threadIdx.x / lanes;
    for (std::int64_t place = first + pair; place < end; place += pairs) {
        if (keys[place] != keys[place - 1])
            continue;
        bool differ = values == nullptr;
        if (values != nullptr) {
            const T *x = values + std::int64_t{rows[place]} * d, *y = values + std::int64_t{rows[place - 1]} * d;
            for (std::int32_t f = part; f < d && !differ; f += lanes)
                differ = x[f] != y[f];
        }
        if (differ) {
            *static_cast<volatile std::int32_t *>(open) = 1;
            return;
        }
    }
}

__global__ void __launch_bounds__(threads)
    look_up_kernel(const std::uint32_t *order, std::int64_t *positions, std::int64_t count)
{
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < count)
        positions[i] = order[positions[i]];
}

// Calls body(first, count) for parts of n rows that take a launch some 10 ms, and waits after each: a cancel is seen
// there.
template <typename Body>
void in_parts(Context &context, std::int64_t n, std::int32_t d, Body &&body)
{
    const std::int64_t most = std::max<std::int64_t>((std::int64_t{1} << 30) / d, 1);
    for (std::int64_t first = 0; first < n; first += most) {
        body(first, std::min(most, n - first));
        context.wait(context.compute.get());
    }
}

cudaError_t sort_pairs(void *storage, std::size_t &bytes, cub::DoubleBuffer<std::uint64_t> &keys,
                       cub::DoubleBuffer<std::uint32_t> &rows, std::int64_t n, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, rows, static_cast<std::uint32_t>(n), 0, key_bits,
                                           stream);
}

bool device_has(std::uint64_t bytes)
{
    std::size_t free_bytes = 0, total_bytes = 0;
    checked("cudaMemGetInfo", [&] { return cudaMemGetInfo(&free_bytes, &total_bytes); });
    return bytes + bytes / 16 <= free_bytes;
}

} // namespace

bool has_room(Context &context, std::uint64_t bytes)
{
    context.make_room(bytes);
    if (!context.budget.fits(bytes))
        return false;
    if (device_has(bytes))
        return true;
    context.budget.drop_aside();
    context.budget.drop_spare(0);
    return device_has(bytes);
}

template <typename T>
std::optional<KeyedRows> sort_by_key(Data &data, std::int64_t first_row, std::int64_t n)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const auto count = static_cast<std::size_t>(n);
    cub::DoubleBuffer<std::uint64_t> key_buffers;
    cub::DoubleBuffer<std::uint32_t> row_buffers;
    std::size_t bytes = 0;
    checked("cub::DeviceRadixSort", [&] { return sort_pairs(nullptr, bytes, key_buffers, row_buffers, n, stream); });
    if (!has_room(context, 2 * HostOrder::row_bytes * count + bytes + sizeof(std::int32_t)))
        return {};
    DeviceArray<std::uint64_t> keys[2];
    DeviceArray<std::uint32_t> rows[2];
    for (int i = 0; i < 2; ++i) {
        keys[i] = DeviceArray<std::uint64_t>(context.budget, count);
        rows[i] = DeviceArray<std::uint32_t>(context.budget, count);
    }
    const DeviceArray<char> storage(context.budget, bytes);
    const int lanes = lanes_for(data.host.d), most_blocks = context.facts.multiprocessors * 16;
    const T *resident = nullptr;
    data.template each_chunk<T>(
        first_row, n, [&](const T *values, const double *, std::int64_t chunk, std::int64_t chunk_rows) {
            resident = data.resident ? values : nullptr;
            in_parts(context, chunk_rows, data.host.d, [&](std::int64_t first, std::int64_t some) {
                key_kernel<<<blocks_for(some, threads / lanes, most_blocks), threads, 0, stream>>>(
                    values + first * data.host.d, some, data.host.d, lanes, chunk + first, keys[0].get(),
                    rows[0].get());
                launched("key_kernel");
            });
        });
    key_buffers = {keys[0].get(), keys[1].get()};
    row_buffers = {rows[0].get(), rows[1].get()};
    checked("cub::DeviceRadixSort",
            [&] { return sort_pairs(storage.get(), bytes, key_buffers, row_buffers, n, stream); });
    DeviceArray<std::int32_t> device_open(context.budget, 1);
    device_open.fill_zero(stream);
    in_parts(context, n - 1, data.host.d, [&](std::int64_t first, std::int64_t some) {
        compare_kernel<<<blocks_for(some, threads / lanes, most_blocks), threads, 0, stream>>>(
            resident, data.host.d, lanes, key_buffers.Current(), row_buffers.Current(), first + 1, first + some + 1,
            device_open.get());
        launched("compare_kernel");
    });
    std::int32_t open = 0;
    device_open.download(&open, 1, stream);
    context.wait(stream);
    return KeyedRows{std::move(keys[key_buffers.selector]), std::move(rows[row_buffers.selector]), open != 0};
}

template <typename T>
NearArray<std::uint32_t> canonical_order(Data &data, std::int64_t first_row, std::int64_t n)
{
    if (n > most_seed_rows)
        throw Error(PGKM_LIMIT, "a GPU seeds at most " + std::to_string(most_seed_rows) + " rows");
    if (n == 0)
        return {};
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const auto count = static_cast<std::size_t>(n);
    const auto make_order = [&] {
        return NearArray<std::uint32_t>(context.budget, context.host_budget, count, context.budget.limit / 8);
    };
    std::optional<KeyedRows> keyed = sort_by_key<T>(data, first_row, n);
    if (keyed && !keyed->open) {
        keyed->keys = {};
        NearArray<std::uint32_t> order = make_order();
        order.upload(keyed->rows.get(), count, stream);
        context.wait(stream);
        return order;
    }
    const T *values = static_cast<const T *>(data.host.values) + first_row * data.host.d;
    const Claim claim(context.host_budget, (keyed ? 1 : 2) * HostOrder::row_bytes * count);
    HostOrder on_host;
    if (keyed) {
        on_host = {std::vector<std::uint64_t>(count), std::vector<std::uint32_t>(count)};
        download(context, on_host.keys.data(), keyed->keys.get(), count * sizeof(std::uint64_t));
        download(context, on_host.rows.data(), keyed->rows.get(), count * sizeof(std::uint32_t));
        keyed.reset();
        order_equal_keys(context, values, data.host.d, on_host);
    } else {
        on_host = order_on_host(context, values, n, data.host.d);
    }
    NearArray<std::uint32_t> order = make_order();
    order.upload(on_host.rows.data(), count, stream);
    context.wait(stream);
    return order;
}

void look_up_rows(Context &context, const NearArray<std::uint32_t> &order, std::vector<std::int64_t> &positions)
{
    if (positions.empty())
        return;
    const cudaStream_t stream = context.compute.get();
    const auto count = static_cast<std::int64_t>(positions.size());
    DeviceArray<std::int64_t> rows(context.budget, positions.size());
    rows.upload(positions.data(), positions.size(), stream);
    look_up_kernel<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(order.get(),
                                                                                                   rows.get(), count);
    launched("look_up_kernel");
    context.wait(stream);
    rows.download(positions.data(), positions.size(), stream);
    context.wait(stream);
}

template std::optional<KeyedRows> sort_by_key<float>(Data &, std::int64_t, std::int64_t);
template std::optional<KeyedRows> sort_by_key<double>(Data &, std::int64_t, std::int64_t);
template NearArray<std::uint32_t> canonical_order<float>(Data &, std::int64_t, std::int64_t);
template NearArray<std::uint32_t> canonical_order<double>(Data &, std::int64_t, std::int64_t);

} // namespace pgkm::cuda
