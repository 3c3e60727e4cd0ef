// seed.cu (groups) - greedy k-means++ of many problems, each by one block from start to end, in one launch.
//
// The steps and the integers are those of seed/kernels.cu; sums of 46-bit masses over at most group_rows_limit rows
// fit 64 bits, and being integers they do not depend on the threads' order.
// Draws walk the rows of a problem in canonical order. That takes two sorts: of all loaded rows by key, then, stably,
// by the first row of their problem. Problems do not overlap, so that a row of no problem may count as one of its own:
// then the rows of a problem end up at the positions from its first row on. Where keys leave the order open, each
// problem is seeded by itself. Data of the sorts: 32-bit row numbers and starts, each twice; a row a thread, a block a
// problem. Data: rows of at most 16 features lie in registers while up to eight candidates lie in shared memory; wider
// ones are read as they are needed. Threads: barriers of the block between a step's draws, potentials and distances.
// Reference: test/reference/seed.cpp, the same rows.
// Paper: Arthur, Vassilvitskii 2007, k-means++.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include <cub/device/device_radix_sort.cuh>

#include "seed/canonical.hpp"
#include "seed/draws.cuh"
#include "seed/gather.cuh"
#include "numeric/row_key.hpp"
#include "plan/stages.hpp"
#include "groups/groups.hpp"

namespace pgkm::cuda {
namespace {

constexpr int warps = group_threads / 32;
constexpr int together = 8; // trials whose potentials are summed in one walk over the rows

constexpr int staged_d = 16; // candidates of at most so many features are staged

struct Shared {
    double candidate[together][staged_d];
    std::int64_t picks[most_trials];
    unsigned long long potential[most_trials];
    double largest[warps];
    int best;
};

// One row and its exact distances to rows that were picked. With D > 0 the row lies in registers
// and the picked rows in shared memory, both padded with zeros: fma(0, 0, sum) changes nothing.
template <typename T, int D>
struct Row {
    double x[D];

    __device__ Row(const SeedRows<T> &rows, std::int64_t i)
    {
#pragma unroll
        for (int f = 0; f < D; ++f)
            x[f] = f < rows.d ? static_cast<double>(rows.values[i * rows.d + f]) : 0.0;
    }
    // Copies `count` picked rows, from place 0 on.
    __device__ static void stage(const SeedRows<T> &rows, Shared &s, const std::int64_t *picks, int count)
    {
        __syncthreads();
        for (int i = threadIdx.x; i < count * D; i += group_threads)
            s.candidate[i / D][i % D] =
                i % D < rows.d ? static_cast<double>(rows.values[picks[i / D] * rows.d + i % D]) : 0.0;
        __syncthreads();
    }
    __device__ double distance(const SeedRows<T> &, const Shared &s, const std::int64_t *, int place) const
    {
        double sum = 0.0;
#pragma unroll
        for (int f = 0; f < D; ++f)
            add_term(sum, x[f], s.candidate[place][f]);
        return sum;
    }
};

template <typename T>
struct Row<T, 0> {
    std::int64_t number;

    __device__ Row(const SeedRows<T> &, std::int64_t i) : number(i) {}
    __device__ static void stage(const SeedRows<T> &, Shared &, const std::int64_t *, int) {}
    __device__ double distance(const SeedRows<T> &rows, const Shared &, const std::int64_t *picks, int place) const
    {
        return exact_distance(rows.values + number * rows.d, rows.values + picks[place] * rows.d, rows.d);
    }
};

template <typename T, int D>
__device__ void sum_potentials(const SeedRows<T> &rows, Shared &s, int trials, double scale)
{
    for (int first = 0; first < trials; first += together) {
        const int some = min(together, trials - first);
        const std::int64_t *picks = s.picks + first;
        Row<T, D>::stage(rows, s, picks, some);
        unsigned long long mine[together] = {};
        for (std::int64_t i = threadIdx.x; i < rows.n; i += group_threads) {
            const Row<T, D> row(rows, i);
            const double nearest = rows.nearest[i];
            asm volatile("" ::: "memory"); // candidates stay in shared memory: together they fill the registers
#pragma unroll
            for (int t = 0; t < together; ++t)
                if (t < some) {
                    const double least = fmin(nearest, weigh_distance(rows, i, row.distance(rows, s, picks, t)));
                    mine[t] += static_cast<unsigned long long>(quantise_mass(least, scale));
                }
        }
#pragma unroll
        for (int t = 0; t < together; ++t)
            if (t < some) {
                const unsigned long long sum = sum_in_block<group_threads>(mine[t]);
                if (threadIdx.x == 0)
                    s.potential[first + t] = sum;
            }
    }
}

// v_i = min(v_i, w_i D to row `pick`); returns the largest v_i to every thread.
template <typename T, int D>
__device__ double update_nearest(const SeedRows<T> &rows, Shared &s, const std::int64_t *pick, bool fresh)
{
    Row<T, D>::stage(rows, s, pick, 1);
    double largest = 0.0;
    for (std::int64_t i = threadIdx.x; i < rows.n; i += group_threads) {
        const double distance = weigh_distance(rows, i, Row<T, D>(rows, i).distance(rows, s, pick, 0));
        rows.nearest[i] = fresh ? distance : fmin(rows.nearest[i], distance);
        largest = fmax(largest, rows.nearest[i]);
    }
    largest = max_lanes(largest);
    __syncthreads();
    if ((threadIdx.x & 31) == 0)
        s.largest[threadIdx.x / 32] = largest;
    __syncthreads();
    for (const double other : s.largest)
        largest = fmax(largest, other);
    return largest;
}

// problem.n_iter brings the number of trials and takes the number of rows chosen.
template <typename T, int D>
__global__ void __launch_bounds__(group_threads, 3)
    seed_kernel(const T *values, const double *weights, int d, GroupProblem *problems, double *nearest,
                const std::uint32_t *order, std::int64_t *chosen, SeedKey key, const volatile std::int32_t *cancel)
{
    __shared__ Shared s;
    GroupProblem &problem = problems[blockIdx.x];
    const int trials = problem.n_iter, k = problem.k;
    const SeedRows<T> rows = {values + problem.first_row * d,
                              weights == nullptr ? nullptr : weights + problem.first_row,
                              nullptr,
                              problem.n_rows,
                              d,
                              problem.weight_exponent,
                              nearest + problem.first_row,
                              order + problem.first_row};
    double largest = 1.0;
    int count = 0;
    __syncthreads(); // problem.n_iter has been read by all
    for (; count < k && largest > 0.0; ++count) {
        const bool first = count == 0;
        const double scale = first ? 0.0 : power_of_two(square_exponent(largest));
        unsigned long long mine = 0;
        for (std::int64_t i = threadIdx.x; i < rows.n; i += group_threads)
            mine += seed_mass(rows, i, first, scale);
        const unsigned long long total = sum_in_block<group_threads>(mine);
        const int draws = first ? 1 : trials;
        for (int t = static_cast<int>(threadIdx.x / 32); t < draws; t += warps) {
            const std::uint64_t index =
                first ? 0 : static_cast<std::uint64_t>(count) * 64 + static_cast<std::uint64_t>(t);
            const std::uint64_t bits = draw(key.seed, key.restart, first ? key.first : key.trial, 0, index);
            const Found place = find_in_warp(rows.n, scale_draw(bits, total), [&](std::int64_t i) {
                return seed_mass(rows, row_at(rows, i), first, scale);
            });
            if ((threadIdx.x & 31) == 0)
                s.picks[t] = row_at(rows, place.index);
        }
        __syncthreads();
        if (!first)
            sum_potentials<T, D>(rows, s, draws, scale);
        if (threadIdx.x == 0) {
            s.best = first ? 0 : best_trial(draws, [&](int t) { return ~s.potential[t]; });
            chosen[problem.cluster + count] = s.picks[s.best];
        }
        __syncthreads();
        largest = update_nearest<T, D>(rows, s, s.picks + s.best, first);
        if (__syncthreads_or(*cancel != 0))
            return;
    }
    if (threadIdx.x == 0)
        problem.n_iter = count;
}

template <typename T>
auto kernel_for(int d)
{
    return d <= 4          ? seed_kernel<T, 4>
           : d <= 8        ? seed_kernel<T, 8>
           : d <= staged_d ? seed_kernel<T, staged_d>
                           : seed_kernel<T, 0>;
}

constexpr int order_threads = 256;

struct Span {
    std::uint32_t first_row, n_rows;
};

__global__ void __launch_bounds__(order_threads) starts_kernel(const Span *spans, std::uint32_t *starts)
{
    const Span span = spans[blockIdx.x];
    for (std::uint32_t i = threadIdx.x; i < span.n_rows; i += order_threads)
        starts[span.first_row + i] = span.first_row;
}

__global__ void __launch_bounds__(order_threads)
    count_from_starts_kernel(const std::uint32_t *starts, std::uint32_t n, std::uint32_t *rows)
{
    const std::uint64_t stride = std::uint64_t{gridDim.x} * order_threads;
    for (std::uint64_t p = std::uint64_t{blockIdx.x} * order_threads + threadIdx.x; p < n; p += stride)
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
    const int blocks = blocks_for(n, order_threads, context.facts.multiprocessors * 16);
    number_rows(context, n, other_starts.get()); // a row of no problem is a problem of its own
    enqueue(starts_kernel, spans.size(), order_threads, 0, stream, device_spans.get(), other_starts.get());
    gather(context, other_starts.get(), rows.get(), n, starts.get()); // rows in the order of their keys
    cub::DoubleBuffer<std::uint32_t> keys(starts.get(), other_starts.get()), values(rows.get(), other_rows.get());
    const auto sort = [&](void *storage, std::size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, values, n, 0, static_cast<int>(std::bit_width(n)),
                                               stream);
    };
    std::size_t bytes = 0;
    checked("cub::DeviceRadixSort", [&] { return sort(nullptr, bytes); });
    const DeviceArray<char> storage(context.budget, bytes);
    checked("cub::DeviceRadixSort", [&] { return sort(storage.get(), bytes); });
    enqueue(count_from_starts_kernel, blocks, order_threads, 0, stream, keys.Current(), n, values.Current());
    context.wait(stream);
    return values.selector == 0 ? std::move(rows) : std::move(other_rows);
}

// The canonical order of each problem's rows: at first_row + p the row at its position p, counted from first_row. Empty
// where there is no room, or equal keys leave the order open.
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

} // namespace

template <typename T>
std::vector<std::int64_t> seed_groups(Data &data, PgkmProblem *problems, const std::vector<std::int64_t> &which,
                                      const PgkmSeedParams &params)
{
    if (which.empty() || params.init != PGKM_INIT_KMEANS_PLUS_PLUS)
        return which;
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const DeviceArray<std::uint32_t> order = order_groups<T>(data, problems, which);
    if (order.count() == 0)
        return which;
    Packed<T> packed(data, problems, which, false);
    for (GroupProblem &problem : packed.problems)
        problem.n_iter = greedy_trials(problem.k);
    packed.device_problems.upload(packed.problems.data(), packed.problems.size(), stream);
    DeviceArray<double> nearest(context.budget, static_cast<std::size_t>(data.host.n));
    DeviceArray<std::int64_t> chosen(context.budget, static_cast<std::size_t>(packed.clusters));
    auto cancel = zeros<std::int32_t>(context.budget, 1, stream);
    const SeedKey key = {params.seed, params.restart, Stream::first_centroid, Stream::trial};
    const auto kernel = kernel_for<T>(data.host.d);
    enqueue(kernel, which.size(), group_threads, 0, stream, reinterpret_cast<const T *>(data.values.get()),
            data.host.weights == nullptr ? nullptr : data.weights.get(), data.host.d, packed.device_problems.get(),
            nearest.get(), order.get(), chosen.get(), key, cancel.get());
    context.wait(stream, cancel.get());
    const std::vector<std::int64_t> rows = context.fetch(chosen);
    packed.problems = context.fetch(packed.device_problems);
    const T *values = static_cast<const T *>(data.host.values);
    for (std::size_t i = 0; i < which.size(); ++i) {
        const GroupProblem &from = packed.problems[i];
        PgkmProblem &to = problems[which[i]];
        to.k = from.n_iter;
        T *out = static_cast<T *>(to.centroids);
        for (std::int32_t j = 0; j < to.k; ++j) {
            const T *row = values + (from.first_row + rows[static_cast<std::size_t>(from.cluster + j)]) * data.host.d;
            out = std::transform(row, row + data.host.d, out, without_minus_zero<T>);
        }
    }
    return {};
}

template std::vector<std::int64_t> seed_groups<float>(Data &, PgkmProblem *, const std::vector<std::int64_t> &,
                                                      const PgkmSeedParams &);
template std::vector<std::int64_t> seed_groups<double>(Data &, PgkmProblem *, const std::vector<std::int64_t> &,
                                                       const PgkmSeedParams &);

} // namespace pgkm::cuda
