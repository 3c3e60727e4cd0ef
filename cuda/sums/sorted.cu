// sorted.cu - rows are sorted by cluster (entries.cu), and a run of them with one cluster is one addition to its sums.
// Serves a sum over all rows, and sums that follow the rows, of which a few leave a cluster and enter another one.
//
// To use: more sums than a block's shared memory has room for; from one iteration to the next always.
// Layout: the sorted entries are cut into segments, a row into pieces of 16 bytes, or of as many as divide it. A
// thread has one piece of all entries of a segment and its neighbours have the next pieces, so that a row is read at
// once. The values of several rows are on their way before the first is added. Threads share nothing.
// Sums: a float64 value is scaled and, by one fma with 1.5 x 2^52, stands rounded in the low bits, which are summed as
// integers; that constant's bits are taken off once a run.
// Bound: reading the rows.
#include "sums/entries.hpp"
#include "sums/sorted.hpp"
#include "sums/sums.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
// Entries of a segment: their sum stays below 2^53, or in 64 bits where each stands for most_copies.
template <bool Counted>
constexpr int longest = Counted ? 128 : 256;
static_assert(longest<true> * most_copies <= partial_sum_length);

// Values that are loaded at once.
template <typename T, int Values>
struct alignas(sizeof(T) * Values) Piece {
    T values[Values];
};

constexpr double magic = 0x1.8p52;
constexpr std::uint64_t magic_bits = 0x4338000000000000u;

// quantise() or quantise_part() of a value, with magic_bits added.
template <bool Weighted>
__device__ inline std::uint64_t integer_bits(double value, double scale, double weight, int part)
{
    if constexpr (!Weighted)
        return static_cast<std::uint64_t>(__double_as_longlong(::fma(value, scale, magic)));
    const double scaled = weight * value * scale, upper = scaled + magic;
    const double bits = part == 0 ? upper : ::fma(scaled - (upper - magic), power_of_two(lower_limb_bits), magic);
    return static_cast<std::uint64_t>(__double_as_longlong(bits));
}

constexpr int ahead = 8; // entries that a thread reads at a time

// Blocks that a multiprocessor holds at a time; threads with wider pieces have more bytes on their way.
template <typename T, int Values, bool Weighted>
constexpr int blocks_per_unit = Weighted || sizeof(T) == 8 || Values == 4 ? 2 : 5 - Values;

template <typename T, int Values, bool Weighted, bool Counted>
__global__ void __launch_bounds__(threads, blocks_per_unit<T, Values, Weighted || Counted>)
    runs_kernel(View<T> view, const Control *control, Entries entries, Accumulators sums)
{
    const int count = entry_count(entries, view.n), pieces = view.d / Values;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    // As long as all threads have some.
    const std::int64_t length =
        min(max(std::int64_t{count} * pieces / (stride * 4), std::int64_t{ahead}), std::int64_t{longest<Counted>});
    const std::int64_t work = (count + length - 1) / length * pieces;
    for (std::int64_t t = std::int64_t{blockIdx.x} * threads + threadIdx.x; t < work; t += stride) {
        if (stopped(control))
            return;
        const int first = static_cast<int>(t / pieces * length), piece = static_cast<int>(t % pieces);
        const int last = static_cast<int>(min(first + length, std::int64_t{count}));
        Scaling<T> scaling[Values];
#pragma unroll
        for (int v = 0; v < Values; ++v)
            scaling[v] = scaling_of(view, piece * Values + v);
        const double mass_scale = Weighted ? power_of_two(view.weight_exponent) : 1.0;
        std::uint64_t sum[Values] = {}, mass = 0;
        std::uint32_t added = 0;
        std::int32_t cluster = entries.list[first].cluster;
        const auto leave = [&](std::int32_t next) {
#pragma unroll
            for (int v = 0; v < Values; ++v) {
                const std::int64_t at = std::int64_t{cluster} * view.d + piece * Values + v;
                add_integer(sums.totals + at * 2, static_cast<std::int64_t>(sum[v] - added * magic_bits));
                sum[v] = 0;
            }
            if (piece == 0 && sums.masses != nullptr)
                add_integer(sums.masses + 2 * std::int64_t{cluster},
                            static_cast<std::int64_t>(Weighted ? mass - added * magic_bits : mass));
            mass = 0;
            added = 0;
            cluster = next;
        };
        for (int i = first; i < last; i += ahead) {
            Piece<T, Values> x[ahead];
            double weight[ahead];
            std::uint16_t copies[ahead];
            unsigned leaves = 0, begins = 0; // bits of entries: the row leaves; the cluster is another one
            std::int32_t before = cluster;
#pragma unroll
            for (int u = 0; u < ahead; ++u) {
                const Entry entry = entries.list[min(i + u, last - 1)];
                const std::int64_t row = entry.row ^ (entry.row >> 31);
                x[u] = reinterpret_cast<const Piece<T, Values> *>(view.values + row * view.d)[piece];
                weight[u] = Weighted ? view.weights[row] : 1.0;
                copies[u] = Counted ? view.counts[row] : 1;
                leaves |= static_cast<unsigned>(entry.row < 0) << u;
                begins |= static_cast<unsigned>(entry.cluster != before) << u;
                before = entry.cluster;
            }
#pragma unroll
            for (int u = 0; u < ahead; ++u) {
                if (i + u >= last)
                    break;
                if ((begins >> u & 1) != 0)
                    leave(entries.list[i + u].cluster);
                const bool negative = (leaves >> u & 1) != 0;
                const std::uint32_t times = Counted ? copies[u] : 1;
                added += times;
#pragma unroll
                for (int v = 0; v < Values; ++v) {
                    const T centred = x[u].values[v] - scaling[v].origin, value = negative ? -centred : centred;
                    sum[v] += times * integer_bits<Weighted>(static_cast<double>(value), scaling[v].scale, weight[u],
                                                             view.part);
                }
                if constexpr (Weighted)
                    mass += times * integer_bits<true>(negative ? -1.0 : 1.0, mass_scale, weight[u], view.part);
                else
                    mass += negative ? ~std::uint64_t{0} * times : times;
            }
        }
        leave(cluster);
    }
}

template <typename T, int Values, bool Weighted, bool Counted>
void launch_runs(const Stage<T> &stage, const View<T> &view, const Entries &entries, const Accumulators &sums)
{
    const auto kernel = runs_kernel<T, Values, Weighted, Counted>;
    const int most = resident_blocks(stage.context, kernel, threads, 0);
    const int blocks = blocks_for(view.n * (view.d / Values), threads * ahead, most);
    enqueue(kernel, blocks, threads, 0, stage.stream, view, stage.control, entries, sums);
}

// Adds the entries to the sums of the view's part, by the widest pieces that all rows can be cut into.
template <typename T>
void add_runs(const Stage<T> &stage, const View<T> &view, const Entries &entries, const Accumulators &sums)
{
    const auto cut = [&](auto values) {
        constexpr int Values = decltype(values)::value;
        if (view.d % Values != 0 || reinterpret_cast<std::uintptr_t>(view.values) % (Values * sizeof(T)) != 0)
            return false;
        const auto launch = [&](auto weighted) {
            constexpr bool Weighted = decltype(weighted)::value;
            if (view.counts == nullptr)
                launch_runs<T, Values, Weighted, false>(stage, view, entries, sums);
            else
                launch_runs<T, Values, Weighted, true>(stage, view, entries, sums);
        };
        if (view.weights == nullptr)
            launch(std::false_type());
        else
            launch(std::true_type());
        return true;
    };
    if constexpr (sizeof(T) == 4)
        if (cut(std::integral_constant<int, 4>()))
            return;
    if (!cut(std::integral_constant<int, 2>()))
        cut(std::integral_constant<int, 1>());
}

// Rows at a time for which there is memory within the device's limit; 0 where few would fit.
std::int64_t rows_per_sort(const Context &context, std::int64_t n, std::int32_t k)
{
    for (std::int64_t rows = std::min(n, most_entries);; rows = (rows + 1) / 2) {
        if (context.scratch_holds(entry_bytes(rows, k, false)))
            return rows;
        if (rows <= 1024)
            return 0;
    }
}

template <typename T>
void sum(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int64_t *totals)
{
    const std::int64_t most = rows_per_sort(stage.context, view.n, view.k);
    if (most == 0)
        return sum_features_atomic(stage, view, labels, totals);
    const Accumulators sums = {totals, nullptr, view.weights != nullptr};
    for (std::int64_t skip = 0; skip < view.n; skip += most) {
        const View<T> rows = slice(view, skip, std::min(most, view.n - skip));
        Carver carver(stage.context.scratch(entry_bytes(rows.n, rows.k, false)));
        const Entries entries = carve_entries(carver, rows.n, rows.k, false);
        sort_entries(stage, rows, labels + skip, entries, sums);
        add_runs(stage, rows, entries, sums);
    }
}

} // namespace

template <typename T>
void follow_rows(const Stage<T> &stage, View<T> view, const std::int32_t *labels, const Entries &entries,
                 const Accumulators &sums)
{
    sort_entries(stage, view, labels, entries, sums);
    const std::int64_t masses = 2 * std::int64_t{view.k}, totals = masses * view.d;
    for (view.part = 0; view.part < parts_of(sums.weighted); ++view.part)
        add_runs(stage, view, entries, {sums.totals + view.part * totals, sums.masses + view.part * masses});
}

template void follow_rows<float>(const Stage<float> &, View<float>, const std::int32_t *, const Entries &,
                                 const Accumulators &);
template void follow_rows<double>(const Stage<double> &, View<double>, const std::int32_t *, const Entries &,
                                  const Accumulators &);

const Both<Sum> sum_features_sorted = {sum<float>, sum<double>};

} // namespace pgkm::cuda
