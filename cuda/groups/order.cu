// order.cu (groups) - the canonical order of many problems' rows by two sorts: of all loaded rows by key, then, stably,
// by the first row of their problem.
//
// Problems do not overlap, so that a row of no problem may count as one of its own: then the rows of a problem end up
// at the positions from its first row on. Where keys leave the order open, the caller seeds each problem by itself.
// Data: 32-bit row numbers and starts, each twice for the sort.
// Threads: a row a thread; a block a problem.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <cub/device/device_radix_sort.cuh>

#include "groups/groups.hpp"
#include "plan/stages.hpp"
#include "seed/canonical.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

struct Span {
    std::uint32_t first_row, n_rows;
};

__global__ void __launch_bounds__(threads) own_starts_kernel(std::uint32_t n, std::uint32_t *starts)
{
    const std::uint64_t stride = std::uint64_t{gridDim.x} * threads;
    for (std::uint64_t row = std::uint64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride)
        starts[row] = static_cast<std::uint32_t>(row);
}

__global__ void __launch_bounds__(threads) starts_kernel(const Span *spans, std::uint32_t *starts)
{
    const Span span = spans[blockIdx.x];
    for (std::uint32_t i = threadIdx.x; i < span.n_rows; i += threads)
        starts[span.first_row + i] = span.first_row;
}

// The start of each row's problem, rows in the order of their keys.
__global__ void __launch_bounds__(threads)
    gather_kernel(const std::uint32_t *starts, const std::uint32_t *rows, std::uint32_t n, std::uint32_t *sorted)
{
    const std::uint64_t stride = std::uint64_t{gridDim.x} * threads;
    for (std::uint64_t p = std::uint64_t{blockIdx.x} * threads + threadIdx.x; p < n; p += stride)
        sorted[p] = starts[rows[p]];
}

__global__ void __launch_bounds__(threads)
    count_from_starts_kernel(const std::uint32_t *starts, std::uint32_t n, std::uint32_t *rows)
{
    const std::uint64_t stride = std::uint64_t{gridDim.x} * threads;
    for (std::uint64_t p = std::uint64_t{blockIdx.x} * threads + threadIdx.x; p < n; p += stride)
        rows[p] -= starts[p];
}

// The rows, which come in the order of their keys, by problem and then by key.
DeviceArray<std::uint32_t> by_problem(Context &context, DeviceArray<std::uint32_t> rows, const std::vector<Span> &spans)
{
    const cudaStream_t stream = context.compute.get();
    const auto n = static_cast<std::uint32_t>(rows.count());
    DeviceArray<std::uint32_t> other_rows(context.budget, n), starts(context.budget, n),
        other_starts(context.budget, n);
    DeviceArray<Span> device_spans(context.budget, spans.size());
    device_spans.upload(spans.data(), spans.size(), stream);
    const int blocks = blocks_for(n, threads, context.facts.multiprocessors * 16);
    own_starts_kernel<<<blocks, threads, 0, stream>>>(n, other_starts.get());
    launched("own_starts_kernel");
    starts_kernel<<<static_cast<unsigned>(spans.size()), threads, 0, stream>>>(device_spans.get(), other_starts.get());
    launched("starts_kernel");
    gather_kernel<<<blocks, threads, 0, stream>>>(other_starts.get(), rows.get(), n, starts.get());
    launched("gather_kernel");
    cub::DoubleBuffer<std::uint32_t> keys(starts.get(), other_starts.get()), values(rows.get(), other_rows.get());
    const auto sort = [&](void *storage, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, values, n, 0, static_cast<int>(std::bit_width(n)),
                                               stream);
    };
    std::size_t bytes = 0;
    checked("cub::DeviceRadixSort", [&] { return sort(nullptr, bytes); });
    const DeviceArray<char> storage(context.budget, bytes);
    checked("cub::DeviceRadixSort", [&] { return sort(storage.get(), bytes); });
    count_from_starts_kernel<<<blocks, threads, 0, stream>>>(keys.Current(), n, values.Current());
    launched("count_from_starts_kernel");
    context.wait(stream);
    return values.selector == 0 ? std::move(rows) : std::move(other_rows);
}

} // namespace

template <typename T>
DeviceArray<std::uint32_t> order_groups(Data &data, const PgkmProblem *problems, const std::vector<std::int64_t> &which)
{
    DeviceArray<std::uint32_t> order;
    if (data.host.n > most_seed_rows)
        return order;
    std::vector<Span> spans;
    for (const std::int64_t p : which)
        spans.push_back(
            {static_cast<std::uint32_t>(problems[p].first_row), static_cast<std::uint32_t>(problems[p].n_rows)});
    std::optional<KeyedRows> keyed = sort_by_key<T>(data, 0, data.host.n);
    if (!keyed || keyed->open)
        return order;
    keyed->keys = {};
    const bool fits = within_limit([&] { order = by_problem(data.context, std::move(keyed->rows), spans); });
    return fits ? std::move(order) : DeviceArray<std::uint32_t>();
}

template DeviceArray<std::uint32_t> order_groups<float>(Data &, const PgkmProblem *, const std::vector<std::int64_t> &);
template DeviceArray<std::uint32_t> order_groups<double>(Data &, const PgkmProblem *,
                                                         const std::vector<std::int64_t> &);

} // namespace pgkm::cuda
