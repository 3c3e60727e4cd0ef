// ordered_rows.cu - makes the order of rows and their fp16 form, and keeps both beside loaded rows.
#include "order/ordered_rows.hpp"

#include <algorithm>
#include <climits>

#include "order/choose_pivots.cuh"
#include "order/halves.cuh"
#include "order/nearest_pivot.cuh"
#include "plan/stages.hpp"

namespace pgkm::cuda {
namespace {

constexpr int halves_rows = 4; // of a lane

// Lanes of a warp share a row, and take four rows whose loads overlap.
template <typename T, int Lanes>
__global__ void __launch_bounds__(256, sizeof(T) == 4 ? 4 : 2) halves_kernel(OrderedRows<T> rows)
{
    constexpr int abreast = 32 / Lanes; // rows
    const int lane = static_cast<int>(threadIdx.x & 31), d = rows.d;
    const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32 * (halves_rows * abreast);
    if (first >= rows.n)
        return;
    const bool aligned = loads_aligned(rows.values, d);
    const T scale = static_cast<T>(rows.facts->scale);
    const std::int32_t end = lane + 1 < most_pivots ? rows.facts->offset[lane + 1] : INT_MAX; // of pivot `lane`
    std::int64_t place[halves_rows];
    const T *row[halves_rows], *pivot[halves_rows];
#pragma unroll
    for (int r = 0; r < halves_rows; ++r) {
        int of_row = 0;
#pragma unroll
        for (int i = 0; i < abreast; ++i) {
            const std::int64_t at = min(first + r * abreast + i, rows.n - 1);
            const int its = __popc(__ballot_sync(~0u, at >= end));
            place[r] = i == lane / Lanes ? at : place[r];
            of_row = i == lane / Lanes ? its : of_row;
        }
        row[r] = rows.values + std::int64_t{rows.order[place[r]]} * d;
        pivot[r] = rows.pivots + of_row * d;
    }
    float square[halves_rows] = {}, lost[halves_rows] = {};
#pragma unroll 1
    for (int f = 0; f < rows.d8; f += 4 * Lanes) {
        T v[halves_rows][4];
#pragma unroll
        for (int r = 0; r < halves_rows; ++r)
            load_values<Lanes>(row[r], f, d, aligned, v[r]);
#pragma unroll
        for (int r = 0; r < halves_rows; ++r) {
            T p[4];
            load_values<Lanes>(pivot[r], f, d, aligned, p);
            __half *to = rows.halves + place[r] * rows.d8, four[4];
            int slot = 0;
            round_values<Lanes>(v[r], p, scale, f, aligned, square[r], lost[r], [&](int feature, __half half) {
                four[slot++] = half;
                if (!aligned && feature < rows.d8)
                    to[feature] = half;
            });
            const int feature = feature_of<Lanes>(f, 0, true);
            if (aligned && feature < rows.d8)
                *reinterpret_cast<uint2 *>(to + feature) =
                    make_uint2(__half_as_ushort(four[0]) | static_cast<unsigned>(__half_as_ushort(four[1])) << 16,
                               __half_as_ushort(four[2]) | static_cast<unsigned>(__half_as_ushort(four[3])) << 16);
        }
    }
#pragma unroll
    for (int r = 0; r < halves_rows; ++r) {
        square[r] = sum_lanes<Lanes>(square[r]);
        lost[r] = sum_lanes<Lanes>(lost[r]);
        if (lane % Lanes == 0)
            rows.measures[place[r]] = {square[r], lost[r]};
    }
}

template <typename T>
std::shared_ptr<RowOrder<T>> make_order(Context &context, const T *values, std::int64_t n, std::int32_t d, int most)
{
    auto order = std::make_shared<RowOrder<T>>();
    order->memory = DeviceArray<char>(context.budget, order_bytes<T>(n, d, false));
    Carver carver(order->memory.get());
    order->rows = carve_order<T>(carver, n, d);
    order->rows.values = values;
    order->most = most;
    return order;
}

} // namespace

template <typename T>
OrderedRows<T> carve_order(Carver &carver, std::int64_t n, std::int32_t d)
{
    OrderedRows<T> rows = {};
    const auto count = static_cast<std::size_t>(n), width = static_cast<std::size_t>(d);
    rows.n = n;
    rows.d = d;
    rows.d8 = (d + 7) / 8 * 8;
    rows.facts = carver.take<OrderFacts>(1); // sums are behind them: one memset clears both
    rows.sums = carver.take<T>(most_pivots * width);
    rows.pivots = carver.take<T>(most_pivots * width);
    rows.order = carver.take<std::int32_t>(count);
    rows.mean = carver.take<T>(width);
    rows.pairs = carver.take<float>(pivot_samples * (pivot_samples + 1));
    rows.tile = carver.take<__nv_bfloat16>(most_pivots * (width + 15));
    rows.of_row = carver.take<std::uint8_t>(count);
    return rows;
}

template <typename T>
void carve_halves(Carver &carver, OrderedRows<T> &rows)
{
    const auto count = static_cast<std::size_t>(rows.n);
    rows.halves = carver.take<__half>(count * static_cast<std::size_t>(rows.d8));
    rows.measures = carver.take<float2>(count);
}

int pivots_for(std::int64_t n, std::int32_t d, std::int32_t k)
{
    const double table = static_cast<double>((k + 127LL) / 128 * 128) * ((d + 31) / 32 * 32) * 2.0;
    return static_cast<int>(std::clamp(std::min(134217728.0 / table, static_cast<double>(n) / 512.0), 1.0,
                                       static_cast<double>(most_pivots)));
}

template <typename T>
void order_rows(const Context &context, const OrderedRows<T> &rows, int most)
{
    const cudaStream_t stream = context.compute.get();
    const auto cleared =
        static_cast<std::size_t>(reinterpret_cast<char *>(rows.pivots) - reinterpret_cast<char *>(rows.facts));
    enqueue_fill(rows.facts, 0, cleared, stream);
    const auto samples = static_cast<unsigned>(samples_of(rows));
    enqueue(mean_kernel<T>, (rows.d + 127) / 128, 128, 0, stream, rows);
    enqueue(pair_kernel<T>, samples, 256, 0, stream, rows);
    enqueue(seed_kernel<T>, 1, pivot_samples, 0, stream, rows, most, rows.d <= radius_d);
    enqueue(join_kernel<T>, samples, 128, 0, stream, rows);
    enqueue(pivot_kernel<T>, most_pivots, 256, 0, stream, rows);
    enqueue(nearest_kernel<T>, blocks_for(rows.n, 128, context.facts.multiprocessors * 8), nearest_threads, 0, stream,
            rows);
    enqueue(lay_out_kernel<T>, 1, 1, 0, stream, rows);
    enqueue(scatter_kernel<T>, blocks_for(rows.n, 4096, INT_MAX), 1024, 0, stream, rows);
}

template <typename T>
void make_halves(const Context &context, const OrderedRows<T> &rows)
{
    const auto launch = [&](auto kernel, int lanes) {
        const int each = 256 / lanes * halves_rows; // rows of a block
        enqueue(kernel, blocks_for(rows.n, each, INT_MAX), 256, 0, context.compute.get(), rows);
    };
    if (rows.d8 <= 32)
        launch(halves_kernel<T, 8>, 8);
    else
        launch(halves_kernel<T, 32>, 32);
}

template <typename T>
void RowOrder<T>::add_halves(Context &context)
{
    if (rows.halves != nullptr)
        return;
    drop_halves();                     // memory of a try that failed
    OrderedRows<T> with_halves = rows; // what fails on the way leaves the rows without
    Carver measured(nullptr);
    carve_halves(measured, with_halves);
    halves = DeviceArray<char>(context.budget, measured.used());
    Carver carver(halves.get());
    carve_halves(carver, with_halves);
    make_halves(context, with_halves);
    rows = with_halves;
}

template <typename T>
void RowOrder<T>::drop_halves()
{
    halves = {};
    rows.halves = nullptr;
    rows.measures = nullptr;
}

template <typename T>
std::size_t order_bytes(std::int64_t n, std::int32_t d, bool halves)
{
    Carver carver(nullptr);
    OrderedRows<T> rows = carve_order<T>(carver, n, d);
    if (halves)
        carve_halves(carver, rows);
    return carver.used();
}

template <typename T>
std::shared_ptr<RowOrder<T>> find_order(Context &context, const T *values, std::int64_t n, int most)
{
    auto order = context.budget.template find_kept<RowOrder<T>>({values, n});
    return order != nullptr && order->most <= most ? order : nullptr;
}

template <typename T>
std::shared_ptr<RowOrder<T>> order_of_rows(Context &context, const T *values, std::int64_t n, std::int32_t d, int most,
                                           bool halves)
{
    auto order = make_order(context, values, n, d, most);
    order_rows(context, order->rows, most);
    if (halves)
        order->add_halves(context);
    return order;
}

template <typename T>
std::shared_ptr<RowOrder<T>> order_of_loaded(Context &context, const T *values, std::int64_t n, std::int32_t d,
                                             int most, bool halves)
{
    auto order = find_order(context, values, n, most);
    if (order == nullptr)
        order = context.budget.keep({values, n}, order_of_rows(context, values, n, d, most, false));
    if (halves)
        order->add_halves(context);
    else if (context.budget.limit != 0 && order.use_count() == 1)
        order->drop_halves(); // what is to come may need the memory
    return order;
}

#define PGKM_ORDER(T)                                                                                               \
    template OrderedRows<T> carve_order<T>(Carver &, std::int64_t, std::int32_t);                                   \
    template void carve_halves<T>(Carver &, OrderedRows<T> &);                                                      \
    template void order_rows<T>(const Context &, const OrderedRows<T> &, int);                                      \
    template void make_halves<T>(const Context &, const OrderedRows<T> &);                                          \
    template struct RowOrder<T>;                                                                                    \
    template std::size_t order_bytes<T>(std::int64_t, std::int32_t, bool);                                          \
    template std::shared_ptr<RowOrder<T>> order_of_loaded<T>(Context &, const T *, std::int64_t, std::int32_t, int, \
                                                             bool);                                                 \
    template std::shared_ptr<RowOrder<T>> find_order<T>(Context &, const T *, std::int64_t, int);                   \
    template std::shared_ptr<RowOrder<T>> order_of_rows<T>(Context &, const T *, std::int64_t, std::int32_t, int, bool);
PGKM_ORDER(float)
PGKM_ORDER(double)

} // namespace pgkm::cuda
