// pivots.cu - orders rows by their nearest pivot.
//
// Pivots are some of a hundred rows, found on the host (farthest first, Gonzalez 1985, and others between). The rows
// are then ordered without another look by the host (nearest_pivot.cuh). Few rows have one pivot: to find more takes
// longer than it saves.
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

std::vector<float> sample_rows(Context &context, const float *values, std::int64_t n, int d)
{
    const std::int64_t count = std::min<std::int64_t>(samples, n);
    const DeviceArray<float> sampled(context.budget, static_cast<std::size_t>(count) * static_cast<std::size_t>(d));
    const cudaStream_t stream = context.compute.get();
    const int blocks = blocks_for(count * d, order_threads, context.facts.multiprocessors * 2);
    sample_kernel<<<blocks, order_threads, 0, stream>>>(values, n / count, d, count, sampled.get());
    launched("sample_kernel");
    return context.fetch(sampled);
}

// The pivots as nearest_pivot_kernel wants them, loads of rows being W values wide: columns, then halves.
template <int W>
std::vector<float> make_table(const std::vector<float> &pivots, int d)
{
    const int chunks = (d + 15) / 16, count = static_cast<int>(pivots.size()) / d;
    std::vector<float> table(static_cast<std::size_t>(chunks * 16 + 1) * most_pivots, 0.0f);
    float *half = table.data() + static_cast<std::size_t>(chunks) * 16 * most_pivots;
    std::fill_n(half, most_pivots, std::numeric_limits<float>::infinity());
    for (int a = 0; a < count; ++a) {
        const float *pivot = &pivots[static_cast<std::size_t>(a) * static_cast<std::size_t>(d)];
        double square = 0.0;
        for (int i = 0; i < chunks * 16; ++i) {
            const int c = i / 16, f = slot_feature<W>(c, i / 4 % 4, i % 4);
            const double value =
                f < d ? static_cast<double>(pivot[f]) - static_cast<double>(pivots[static_cast<std::size_t>(f)]) : 0.0;
            table[static_cast<std::size_t>((c * most_pivots + a) * 16 + i % 16)] = static_cast<float>(value);
            square += value * value;
        }
        half[a] = static_cast<float>(square / 2);
    }
    return table;
}

// Enqueues a look for a near pivot of each row.
void find_nearest(Context &context, const float *values, std::int64_t n, int d, const std::vector<float> &chosen,
                  const RowOrder &order, std::uint8_t *of_row, PivotTally *tally)
{
    with_row_shape(d, [&](auto chunks, auto width) {
        constexpr int C = decltype(chunks)::value, W = decltype(width)::value;
        const cudaStream_t stream = context.compute.get();
        const std::vector<float> made = make_table<W>(chosen, d);
        DeviceArray<float> table(context.budget, made.size());
        table.upload(made.data(), made.size(), stream);
        const PivotTable columns = {reinterpret_cast<const float4 *>(table.get()),
                                    table.get() + made.size() - most_pivots, (order.rows.count + 7) / 8};
        const auto kernel = nearest_pivot_kernel<W, C>;
        const int most = resident_blocks(context, kernel, order_threads, 0);
        kernel<<<blocks_for(n, order_threads / 32 * strip_of_rows, most), order_threads, 0, stream>>>(
            values, n, d, order.pivots.get(), columns, of_row, tally);
        launched("nearest_pivot_kernel");
    });
}

std::vector<float> middle_of(const Box &box)
{
    std::vector<float> middle(box.min.size());
    for (std::size_t f = 0; f < middle.size(); ++f)
        middle[f] = static_cast<float>(box.min[f] + (box.max[f] - box.min[f]) / 2);
    return middle;
}

std::shared_ptr<RowOrder> make_order(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    auto order = std::make_shared<RowOrder>();
    const cudaStream_t stream = context.compute.get();
    const std::vector<float> pivots = n * d < few_values ? middle_of(box)
                                                         : choose_pivots(sample_rows(context, values, n, d),
                                                                         static_cast<std::size_t>(d), most_pivots);
    const auto count = pivots.size() / static_cast<std::size_t>(d);
    PivotedRows &rows = order->rows;
    rows.count = static_cast<int>(count);
    order->pivots = DeviceArray<float>(context.budget, pivots.size());
    order->pivots.upload(pivots.data(), pivots.size(), stream);
    order->radius = DeviceArray<float>(context.budget, count);
    order->first_row = DeviceArray<std::int64_t>(context.budget, count + 1);
    DeviceArray<PivotTally> tally(context.budget, 1);
    tally.fill_zero(stream);
    DeviceArray<std::uint8_t> of_row;
    if (count > 1) {
        of_row = DeviceArray<std::uint8_t>(context.budget, static_cast<std::size_t>(n));
        order->order = DeviceArray<std::int32_t>(context.budget, static_cast<std::size_t>(n));
    }
    find_nearest(context, values, n, d, pivots, *order, of_row.get(), tally.get());
    lay_out_kernel<<<1, 1, 0, stream>>>(tally.get(), rows.count, d, order->first_row.get(), order->radius.get());
    launched("lay_out_kernel");
    if (count > 1) {
        scatter_kernel<<<blocks_for(n, order_threads * 8, context.facts.multiprocessors * 8), order_threads, 0,
                         stream>>>(of_row.get(), n, tally.get(), order->order.get());
        launched("scatter_kernel");
    }
    rows.pivots = order->pivots.get();
    rows.radius = order->radius.get();
    rows.first_row = order->first_row.get();
    rows.order = order->order.get();
    return order;
}

} // namespace

bool has_heavy_tails(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    const std::vector<float> rows = sample_rows(context, values, n, d);
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

std::shared_ptr<RowOrder> order_rows(Context &context, const float *values, std::int64_t n, int d, const Box &box)
{
    auto order = std::static_pointer_cast<RowOrder>(context.budget.take_aside({values, n}));
    if (order == nullptr)
        order = make_order(context, values, n, d, box);
    const std::uint64_t bytes = order->bytes();
    return context.budget.lasting({values, n}, std::move(order), bytes);
}

} // namespace pgkm::cuda
