// canonical.cu (seed) - the canonical order of rows: a key for each row, then a radix sort of keys and row numbers.
//
// Equal keys most often belong to equal rows, whose order does not matter. Where neighbours in the order of the keys
// have equal keys and different contents, stable sorts by each feature follow, the last one first, and one by key.
// Where rows are streamed and cannot be read here, or are few beside their features, the host goes over the runs of
// equal keys. It sorts all rows where the device has no room, 24 bytes a row: six digits of 11 bits, the lowest first.
// All its loops poll for a cancel.
//
// Data: rows as they lie, resident, in chunks, or on the devices of several peers, each of which makes the keys of its
// own and sorts those of all; 64-bit keys and 32-bit row numbers, each twice for the sort.
// Threads: 1 to 32 lanes share a row and add its terms by shuffles; of a column, a row a thread. No barrier.
#include "seed/canonical.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <cub/device/device_radix_sort.cuh>

#include "numeric/row_key.hpp"
#include "plan/stages.hpp"
#include "plugin/upload.hpp"
#include "seed/gather.cuh"
#include "seed/kernels.hpp"
#include "seed/shared_rows.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

// The lanes of a warp that share a row: the least power of 2 that leaves each one feature, at most 32.
int lanes_for(std::int32_t d)
{
    int lanes = 1;
    while (lanes < 32 && lanes < d)
        lanes *= 2;
    return lanes;
}

// Keys of n rows: the first ones, or those of these numbers.
template <typename T>
__global__ void __launch_bounds__(threads) key_kernel(const T *values, const std::uint32_t *numbers, std::int64_t n,
                                                      std::int32_t d, int lanes, std::uint64_t *keys)
{
    const int lane = static_cast<int>(threadIdx.x & 31), part = lane & (lanes - 1);
    const std::int64_t rows_each = 32 / lanes, warps = std::int64_t{gridDim.x} * (threads / 32);
    const std::int64_t warp = std::int64_t{blockIdx.x} * (threads / 32) + threadIdx.x / 32;
    for (std::int64_t base = warp * rows_each; base < n; base += warps * rows_each) {
        const std::int64_t i = base + lane / lanes;
        unsigned long long sum = 0;
        if (i < n) {
            const std::int64_t row = numbers == nullptr ? i : numbers[i];
            for (std::int32_t f = part; f < d; f += lanes)
                sum += feature_term(values[row * d + f], f);
        }
        for (int offset = lanes / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(~0u, sum, offset);
        if (i < n && part == 0)
            keys[i] = finish_key(sum);
    }
}

__global__ void __launch_bounds__(threads) number_kernel(std::int64_t n, std::uint32_t *rows)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride)
        rows[row] = static_cast<std::uint32_t>(row);
}

// *open becomes 1 where neighbours at positions [first, end) and before them share a key, but not their content.
// Where rows are streamed equal keys will do.
template <typename T>
__global__ void __launch_bounds__(threads)
    compare_kernel(RowTable<T> table, int lanes, const std::uint64_t *keys, const std::uint32_t *rows,
                   std::int64_t first, std::int64_t end, std::int32_t *open)
{
    const int part = static_cast<int>(threadIdx.x) & (lanes - 1);
    const std::int64_t pairs = std::int64_t{gridDim.x} * (threads / lanes);
    const std::int64_t pair = std::int64_t{blockIdx.x} * (threads / lanes) + threadIdx.x / lanes;
    for (std::int64_t place = first + pair; place < end; place += pairs) {
        if (keys[place] != keys[place - 1])
            continue;
        bool differ = table.of[0] == nullptr;
        if (!differ) {
            const T *x = table.row(rows[place]), *y = table.row(rows[place - 1]);
            for (std::int32_t f = part; f < table.d && !differ; f += lanes)
                differ = x[f] != y[f];
        }
        if (differ) {
            *static_cast<volatile std::int32_t *>(open) = 1;
            return;
        }
    }
}

// column[i] = feature f of the row at the place that stands at i.
template <typename T>
__global__ void __launch_bounds__(threads)
    column_kernel(RowTable<T> table, const std::uint32_t *rows, const std::uint32_t *places, std::int64_t n,
                  std::int32_t f, T *column)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n; i += stride)
        column[i] = without_minus_zero(table.row(rows[places[i]])[f]);
}

// So many rows a feature at least are sorted by content here: each sort is a few launches.
constexpr std::int64_t rows_per_column = 256;

// What the host has of an order.
struct HostOrder {
    std::vector<std::uint64_t> keys;
    std::vector<std::uint32_t> rows;

    static constexpr std::uint64_t row_bytes = sizeof(std::uint64_t) + sizeof(std::uint32_t);
};

// Counts work and looks for a cancel now and then.
class Steps {
  public:
    explicit Steps(const Context &context) : context_(context) {}
    void take(std::int64_t count)
    {
        done_ += count;
        if (done_ < steps_per_poll)
            return;
        done_ = 0;
        context_.poll();
    }

  private:
    static constexpr std::int64_t steps_per_poll = 1 << 22;
    const Context &context_;
    std::int64_t done_ = 0;
};

constexpr std::int64_t steps_per_row = 64; // what it takes to come to any row, in steps of one value

void sort_keys(Steps &steps, HostOrder &order)
{
    constexpr int digit_bits = 11;
    constexpr std::size_t digits = std::size_t{1} << digit_bits;
    const std::size_t n = order.keys.size();
    HostOrder sorted = {std::vector<std::uint64_t>(n), std::vector<std::uint32_t>(n)};
    for (int shift = 0; shift < 64; shift += digit_bits) {
        const auto digit = [&](std::size_t i) { return order.keys[i] >> shift & (digits - 1); };
        std::vector<std::size_t> places(digits + 1, 0);
        for (std::size_t i = 0; i < n; ++i) {
            ++places[digit(i) + 1];
            steps.take(1);
        }
        std::partial_sum(places.begin(), places.end(), places.begin());
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t to = places[digit(i)]++;
            sorted.keys[to] = order.keys[i];
            sorted.rows[to] = order.rows[i];
            steps.take(4);
        }
        std::swap(order, sorted);
    }
}

// Puts rows of equal keys, which follow each other, in the order of their contents.
template <typename T>
void order_equal_keys(const Context &context, const T *values, std::int32_t d, HostOrder &order)
{
    Steps steps(context);
    const auto compare = [&](std::uint32_t a, std::uint32_t b) {
        steps.take(steps_per_row + d);
        return compare_content(values + std::int64_t{a} * d, values + std::int64_t{b} * d, d);
    };
    const auto begin = order.rows.begin();
    for (std::size_t first = 0, end = 0; first < order.rows.size(); first = end) {
        bool same = true;
        for (end = first + 1; end < order.rows.size() && order.keys[end] == order.keys[first]; ++end)
            same = same && compare(order.rows[first], order.rows[end]) == 0;
        steps.take(static_cast<std::int64_t>(end - first));
        if (!same)
            std::sort(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end),
                      [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) < 0; });
    }
}

// n rows by key, then by content; while it works it holds twice its memory.
template <typename T>
HostOrder order_on_host(const Context &context, const T *values, std::int64_t n, std::int32_t d)
{
    Steps steps(context);
    HostOrder order = {std::vector<std::uint64_t>(static_cast<std::size_t>(n)),
                       std::vector<std::uint32_t>(static_cast<std::size_t>(n))};
    for (std::int64_t row = 0; row < n; ++row) {
        order.keys[static_cast<std::size_t>(row)] = row_key(values + row * d, d);
        order.rows[static_cast<std::size_t>(row)] = static_cast<std::uint32_t>(row);
        steps.take(d);
    }
    sort_keys(steps, order);
    order_equal_keys(context, values, d, order);
    return order;
}

constexpr double terms_of_feature = 28.0; // a term of a key takes as long as so many of a distance

template <typename Key>
cudaError_t sort_pairs(void *storage, std::size_t &bytes, cub::DoubleBuffer<Key> &keys,
                       cub::DoubleBuffer<std::uint32_t> &rows, std::int64_t n, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, rows, static_cast<std::uint32_t>(n), 0,
                                           static_cast<int>(8 * sizeof(Key)), stream);
}

// Keys of n rows on their way into order: 24 bytes a row, and what the sort takes.
class KeySort {
  public:
    // Nothing where the device has no room.
    static std::optional<KeySort> make(Context &context, std::int64_t n)
    {
        std::optional<KeySort> made;
        cub::DoubleBuffer<std::uint64_t> no_keys;
        cub::DoubleBuffer<std::uint32_t> no_rows;
        std::size_t bytes = 0;
        checked("cub::DeviceRadixSort",
                [&] { return sort_pairs(nullptr, bytes, no_keys, no_rows, n, context.compute.get()); });
        const std::uint64_t pairs = 2 * HostOrder::row_bytes * static_cast<std::uint64_t>(n);
        if (context.make_room(pairs + bytes + sizeof(std::int32_t)))
            within_limit([&] { made.emplace(KeySort(context, n, bytes)); });
        return made;
    }

    std::uint64_t *keys() const { return keys_[0].get(); } // by row, before order()

    // Makes the keys of rows first .. first + n - 1, which lie at `values`.
    template <typename T>
    void add(const T *values, std::int64_t first, std::int64_t n, std::int32_t d)
    {
        const int lanes = lanes_for(d);
        in_parts(context_, n, terms_of_feature * d, [&](std::int64_t from, std::int64_t some) {
            enqueue(key_kernel<T>, blocks_for(some, threads / lanes, most_blocks()), threads, 0, stream(),
                    values + from * d, nullptr, some, d, lanes, keys() + first + from);
        });
    }

    template <typename T>
    KeyedRows order(const RowTable<T> &table)
    {
        number_rows(context_, n_, rows_[0].get());
        const auto [keys_at, rows_at] = sort<std::uint64_t>(keys_, rows_);
        auto device_open = zeros<std::int32_t>(context_.budget, 1, stream());
        const int lanes = lanes_for(table.d);
        in_parts(context_, n_ - 1, terms_of_feature * table.d, [&](std::int64_t first, std::int64_t some) {
            enqueue(compare_kernel<T>, blocks_for(some, threads / lanes, most_blocks()), threads, 0, stream(), table,
                    lanes, keys_[keys_at].get(), rows_[rows_at].get(), first + 1, first + some + 1, device_open.get());
        });
        const bool collide = context_.fetch(device_open)[0] != 0;
        KeyedRows keyed = {std::move(keys_[keys_at]), std::move(rows_[rows_at]), collide, false};
        keyed.open =
            collide && !order_by_content(table, keyed, std::move(keys_[1 - keys_at]), std::move(rows_[1 - rows_at]));
        return keyed;
    }

  private:
    // Sorts pairs, whose keys fill the memory of `keys` or a part of it. Which of both arrays have them then.
    template <typename Key>
    std::pair<int, int> sort(const DeviceArray<std::uint64_t> *keys, const DeviceArray<std::uint32_t> *rows)
    {
        cub::DoubleBuffer<Key> key_buffer(reinterpret_cast<Key *>(keys[0].get()),
                                          reinterpret_cast<Key *>(keys[1].get()));
        cub::DoubleBuffer<std::uint32_t> row_buffer(rows[0].get(), rows[1].get());
        std::size_t bytes = 0;
        checked("cub::DeviceRadixSort",
                [&] { return sort_pairs(nullptr, bytes, key_buffer, row_buffer, n_, stream()); });
        if (bytes > storage_.bytes())
            storage_ = DeviceArray<char>(context_.budget, bytes);
        bytes = storage_.bytes();
        checked("cub::DeviceRadixSort",
                [&] { return sort_pairs(storage_.get(), bytes, key_buffer, row_buffer, n_, stream()); });
        return {key_buffer.selector, row_buffer.selector};
    }

    // Puts rows of equal keys in the order of their contents, in this memory and 12 bytes more a row. False where there
    // is no room, or the host is quicker.
    template <typename T>
    bool order_by_content(const RowTable<T> &table, KeyedRows &keyed, DeviceArray<std::uint64_t> &&words,
                          DeviceArray<std::uint32_t> &&spare)
    {
        if (table.of[0] == nullptr || n_ < rows_per_column * table.d)
            return false;
        return within_limit([&] {
            DeviceArray<std::uint64_t> keys[2] = {std::move(words), {context_.budget, static_cast<std::size_t>(n_)}};
            DeviceArray<std::uint32_t> places[2] = {std::move(spare), {context_.budget, static_cast<std::size_t>(n_)}};
            const int blocks = blocks_for(n_, threads, most_blocks());
            const auto sort_places = [&]<typename Key>(Key) {
                if (sort<Key>(keys, places).second != 0)
                    std::swap(places[0], places[1]);
                context_.wait(stream()); // a look at the cancel flag
            };
            number_rows(context_, n_, places[0].get());
            for (std::int32_t f = table.d - 1; f >= 0; --f) {
                enqueue(column_kernel<T>, blocks, threads, 0, stream(), table, keyed.rows.get(), places[0].get(), n_, f,
                        reinterpret_cast<T *>(keys[0].get()));
                sort_places(T());
            }
            gather(context_, keyed.keys.get(), places[0].get(), n_, keys[0].get());
            sort_places(std::uint64_t());
            gather(context_, keyed.rows.get(), places[0].get(), n_, places[0].get());
            keyed.rows = std::move(places[0]);
        });
    }

    KeySort(Context &context, std::int64_t n, std::size_t storage_bytes)
        : context_(context), n_(n), storage_(context.budget, storage_bytes)
    {
        for (int i = 0; i < 2; ++i) {
            keys_[i] = DeviceArray<std::uint64_t>(context.budget, static_cast<std::size_t>(n));
            rows_[i] = DeviceArray<std::uint32_t>(context.budget, static_cast<std::size_t>(n));
        }
    }
    cudaStream_t stream() const { return context_.compute.get(); }
    int most_blocks() const { return context_.facts.multiprocessors * 16; }

    Context &context_;
    std::int64_t n_;
    DeviceArray<char> storage_;
    DeviceArray<std::uint64_t> keys_[2];
    DeviceArray<std::uint32_t> rows_[2];
};

} // namespace

void number_rows(const Context &context, std::int64_t n, std::uint32_t *rows)
{
    enqueue(number_kernel, blocks_for(n, threads, context.facts.multiprocessors * 16), threads, 0,
            context.compute.get(), n, rows);
}

template <typename T>
std::vector<std::uint64_t> keys_of(Data &data, std::int64_t first_row, const std::vector<std::uint32_t> &rows)
{
    Context &context = data.context;
    const auto count = static_cast<std::int64_t>(rows.size());
    const int lanes = lanes_for(data.host.d);
    DeviceArray<std::uint32_t> numbers(context.budget, rows.size());
    const DeviceArray<std::uint64_t> keys(context.budget, rows.size());
    numbers.upload(rows.data(), rows.size(), context.compute.get());
    enqueue(key_kernel<T>, blocks_for(count, threads / lanes, context.facts.multiprocessors * 16), threads, 0,
            context.compute.get(), reinterpret_cast<const T *>(data.values.get()) + first_row * data.host.d,
            numbers.get(), count, data.host.d, lanes, keys.get());
    return context.fetch(keys);
}

template <typename T>
std::optional<KeyedRows> sort_by_key(Data &data, std::int64_t first_row, std::int64_t n)
{
    std::optional<KeySort> sort = KeySort::make(data.context, n);
    if (!sort)
        return {};
    RowTable<T> table = {{}, {0, n}, 1, data.host.d};
    data.template each_chunk<T>(first_row, n,
                                [&](const T *values, const double *, std::int64_t first, std::int64_t some) {
                                    table.of[0] = data.resident ? values : nullptr;
                                    sort->add(values, first, some, data.host.d);
                                });
    return sort->order(table);
}

template <typename T>
DeviceArray<std::uint32_t> canonical_order(SharedRows<T> &rows)
{
    std::optional<KeySort> sort = KeySort::make(rows.context(), rows.n());
    if (!sort)
        throw Error(PGKM_LIMIT, "a device has no room for the keys of all rows");
    sort->add(rows.own_values(), rows.first(), rows.own(), rows.table().d);
    rows.complete(reinterpret_cast<std::int64_t *>(sort->keys()));
    KeyedRows keyed = sort->order(rows.table());
    rows.link().meet(); // from here on nobody reads others' rows for this
    if (keyed.open)
        throw Error(PGKM_UNSUPPORTED, "the order of rows with equal keys is left to one host");
    return std::move(keyed.rows);
}

template <typename T>
NearArray<std::uint32_t> canonical_order(Data &data, std::int64_t first_row, std::int64_t n)
{
    if (n > most_seed_rows)
        throw Error(PGKM_LIMIT, "a GPU seeds at most " + std::to_string(most_seed_rows) + " rows");
    if (n == 0 || data.copies.rows != 0)
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

void look_up_rows(Context &context, const std::uint32_t *order, std::vector<std::int64_t> &positions)
{
    if (positions.empty() || order == nullptr)
        return;
    DeviceArray<std::int64_t> rows(context.budget, positions.size());
    rows.upload(positions.data(), positions.size(), context.compute.get());
    gather(context, order, rows.get(), static_cast<std::int64_t>(positions.size()), rows.get());
    positions = context.fetch(rows);
}

template std::vector<std::uint64_t> keys_of<float>(Data &, std::int64_t, const std::vector<std::uint32_t> &);
template std::vector<std::uint64_t> keys_of<double>(Data &, std::int64_t, const std::vector<std::uint32_t> &);
template std::optional<KeyedRows> sort_by_key<float>(Data &, std::int64_t, std::int64_t);
template std::optional<KeyedRows> sort_by_key<double>(Data &, std::int64_t, std::int64_t);
template DeviceArray<std::uint32_t> canonical_order<float>(SharedRows<float> &);
template DeviceArray<std::uint32_t> canonical_order<double>(SharedRows<double> &);
template NearArray<std::uint32_t> canonical_order<float>(Data &, std::int64_t, std::int64_t);
template NearArray<std::uint32_t> canonical_order<double>(Data &, std::int64_t, std::int64_t);

} // namespace pgkm::cuda
