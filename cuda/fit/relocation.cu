// relocation.cu (fit) - what a fit leaves to the host: rows for clusters that have none, and whether two iterations'
// labels are the same. Both go over the rows on the device, slice by slice.
//
// The rows farthest from their centroids are the first in FarOrder (src/backend/update.hpp): the least squared distance
// that is taken is found by a radix select, digit by digit, by counting; the order of rows at that distance, and the
// choice among the rows, are made on the host, as by every backend.
// A squared distance is not negative, so that its bits are in its order. Where more rows lie at the bound than the host
// takes at a time, they come in parts, and of each part only rows that go before the last of those which the host
// keeps: of equal rows none after the first part. Data: a slice's rows, squared distances and labels; 2,048 counts in
// each block's shared memory. Threads: a row a thread; atomics count, in integers. The host reads the counts after each
// of the six digits.
#include "fit/relocation.hpp"

#include <algorithm>
#include <optional>

#include "assign/measure.hpp"
#include "backend/peers.hpp"
#include "device/exact.cuh"
#include "fused/moves.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;
constexpr int digit_bits = 11, digits = 1 << digit_bits;
constexpr int top_shift = 55; // of the first digit: 9 bits and five times 11

// Rows that come to the host at a time.
std::size_t rows_at_once(std::size_t most, std::size_t most_rows)
{
    return std::min(std::max(most, std::size_t{1} << 16), most_rows);
}

// A row that was found, as the device writes it.
struct FoundRow {
    double square;
    std::int32_t row; // of its slice
    std::int32_t label;
};

// Keys of rows: the larger is taken first. 0 stands for a row at no distance, which is never taken.
__device__ inline unsigned long long key_of(double square)
{
    return square > 0.0 ? static_cast<unsigned long long>(__double_as_longlong(square)) : 0;
}

// Adds, per digit at `shift`, how many keys have it whose digits before are `prefix`.
__global__ void __launch_bounds__(threads)
    count_kernel(const double *squares, std::int64_t n, unsigned long long prefix, int shift, std::uint32_t *counts)
{
    __shared__ std::uint32_t own[digits];
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        own[i] = 0;
    __syncthreads();
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x; row < n; row += stride) {
        const unsigned long long key = key_of(squares[row]);
        if (key != 0 && key >> shift >> digit_bits == prefix)
            atomicAdd(own + (key >> shift & (digits - 1)), 1u);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < digits; i += threads)
        if (own[i] != 0)
            atomicAdd(counts + i, own[i]);
}

// The row that the others have to go before, in FarOrder; values: nullptr where any will do.
template <typename T>
struct Last {
    double square;
    const T *values;
    double weight;
};

template <typename T>
__device__ bool goes_before(const View<T> &rows, std::int64_t row, double square, const Last<T> &last)
{
    if (last.values == nullptr || square != last.square)
        return last.values == nullptr || square > last.square;
    const int order = compare_content(rows.values + row * rows.d, last.values, rows.d);
    return order < 0 || (order == 0 && rows.weights != nullptr && rows.weights[row] < last.weight);
}

// Of rows [first, first + n) those with at least this key that go before the last one, in no order, and how many they
// are. copies: of entries, for how many rows each stands.
template <typename T>
__global__ void __launch_bounds__(threads)
    take_kernel(View<T> rows, const double *squares, const std::int32_t *labels, std::int64_t first, std::int64_t n,
                unsigned long long least, Last<T> last, FoundRow *found, std::uint16_t *copies, std::uint32_t *count)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t row = first + std::int64_t{blockIdx.x} * threads + threadIdx.x; row < first + n; row += stride)
        if (key_of(squares[row]) >= least && goes_before(rows, row, squares[row], last)) {
            const std::uint32_t at = atomicAdd(count, 1u);
            found[at] = {squares[row], static_cast<std::int32_t>(row), labels[row]};
            if (rows.counts != nullptr)
                copies[at] = rows.counts[row];
        }
}

int far_blocks(const Context &context, std::int64_t n)
{
    return blocks_for(n, threads, context.facts.multiprocessors * 4);
}

// The least key that is taken, and how many rows have that or more.
struct FarBound {
    unsigned long long key;
    std::int64_t rows;
};

// Of the `most` largest keys that are not 0, or of all of those.
FarBound find_bound(Context &context, DeviceArray<std::uint32_t> &device_counts, const double *squares, std::int64_t n,
                    std::int64_t most)
{
    const cudaStream_t stream = context.compute.get();
    unsigned long long prefix = 0;
    std::int64_t wanted = most; // of the keys whose digits before are the prefix
    for (int shift = top_shift;; shift -= digit_bits) {
        device_counts.fill_zero(stream);
        enqueue(count_kernel, far_blocks(context, n), threads, 0, stream, squares, n, prefix, shift,
                device_counts.get());
        const std::vector<std::uint32_t> counts = context.fetch(device_counts);
        int digit = digits - 1;
        for (; digit >= 0 && counts[static_cast<std::size_t>(digit)] < wanted; --digit)
            wanted -= counts[static_cast<std::size_t>(digit)];
        if (digit < 0)
            return {1, most - wanted};
        prefix = prefix << digit_bits | static_cast<unsigned long long>(digit);
        const std::int64_t at_bound = counts[static_cast<std::size_t>(digit)];
        if (at_bound == wanted || shift == 0)
            return {std::max(prefix << shift, 1ULL), most - wanted + at_bound};
    }
}

// Labels of rows first .. first + rows - 1 of n, from where iterations keep them, one or two bytes each: by row, or
// where there is an order, by place in it. A label a thread.
__global__ void __launch_bounds__(threads) spread_kernel(KeptLabels kept, const std::int32_t *order, std::int64_t n,
                                                         std::int64_t first, std::int64_t rows, std::int32_t *labels)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t place = std::int64_t{blockIdx.x} * threads + threadIdx.x; place < n; place += stride) {
        const std::int64_t row = (order != nullptr ? order[place] : place) - first;
        if (row >= 0 && row < rows)
            labels[row] = kept.get(place);
    }
}

constexpr int differ_threads = 128;

// Whether any row would get another label under other centroids: a row a thread, by the contract's distance. Threads
// share one answer in global memory. A label that would change is most often among the first rows: all threads look at
// the answer before each row, and the first wave of them finds it.
template <typename T>
__global__ void __launch_bounds__(differ_threads)
    differ_kernel(View<T> view, const Control *control, const std::int32_t *labels, std::int32_t *differ)
{
    if (stopped(control))
        return;
    const std::int64_t stride = std::int64_t{gridDim.x} * differ_threads;
    for (std::int64_t row = std::int64_t{blockIdx.x} * differ_threads + threadIdx.x; row < view.n; row += stride) {
        if (*static_cast<volatile std::int32_t *>(differ) != 0)
            return;
        if (nearest_by_thread(view.values + row * view.d, view.centroids, view.k, view.d).label != labels[row])
            *static_cast<volatile std::int32_t *>(differ) = 1;
    }
}

// Brings the labels of the last iteration, which changed no centroid, into problem.labels: they were kept by row or in
// the pivots' order, or stand there, or are made once more.
template <typename T>
void last_labels(DeviceProblem<T> &problem, const View<T> &rows, std::int64_t first)
{
    const std::int64_t n = problem.problem.n_rows;
    const Moves moves = problem.plan.moves;
    const std::int32_t *order = moves == Moves::strips ? problem.order->rows.order : nullptr;
    if (problem.kept.get() != nullptr && moves != Moves::leaves && moves != Moves::sorted)
        enqueue(spread_kernel, blocks_for(n, threads, problem.context.facts.multiprocessors * 8), threads, 0,
                problem.stream(), KeptLabels{problem.kept.get(), problem.k > 255}, order, n, first, rows.n,
                problem.labels.get());
    else if (moves == Moves::leaves || problem.plan.execution != Execution::multi_pass || rows.n != n)
        problem.assign_rows(rows, problem.control.get(), problem.labels.get());
}

// The `most` first rows in FarOrder, by their numbers on the host; a slice has less than 2^31 rows.
template <typename T>
std::vector<FarRow> farthest_rows(DeviceProblem<T> &problem, std::size_t most)
{
    Context &context = problem.context;
    const cudaStream_t stream = problem.stream();
    const PgkmPoints &points = problem.data.host;
    const std::size_t slice_rows = problem.labels.count(), room = rows_at_once(most, slice_rows);
    const auto d = static_cast<std::size_t>(problem.d);
    const std::size_t counted = problem.data.copies.rows != 0 ? room : 0;
    context.make_room(slice_rows * sizeof(double) + digits * sizeof(std::uint32_t) + room * sizeof(FoundRow) +
                      counted * sizeof(std::uint16_t) + d * sizeof(T));
    DeviceArray<double> squares(context.budget, slice_rows);
    DeviceArray<std::uint32_t> counts(context.budget, digits);
    DeviceArray<FoundRow> taken(context.budget, room);
    const DeviceArray<std::uint16_t> copies(context.budget, counted);
    DeviceArray<T> last_values(context.budget, d);
    FirstFarRows<T> found({points, problem.problem.first_row}, most);
    const Control *control = problem.control.get();
    problem.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
        last_labels(problem, rows, first);
        measure<T>({rows, problem.labels.get(), squares.get(), nullptr, 0, control}, context.facts.multiprocessors, 0,
                   stream);
        problem.wait();
        const FarBound bound = find_bound(context, counts, squares.get(), rows.n, static_cast<std::int64_t>(most));
        const std::int64_t at_once =
            bound.rows <= static_cast<std::int64_t>(room) ? rows.n : static_cast<std::int64_t>(room);
        for (std::int64_t done = 0; done < rows.n; done += at_once) {
            const std::int64_t some = std::min(at_once, rows.n - done);
            Last<T> last = {};
            if (const FarRow *row = found.last(); row != nullptr) {
                const std::int64_t at = problem.problem.first_row + row->row;
                last_values.upload(static_cast<const T *>(points.values) + at * points.d, d, stream);
                last = {row->square, last_values.get(), points.weights == nullptr ? 0.0 : points.weights[at]};
            }
            counts.fill_zero(stream);
            enqueue(take_kernel<T>, far_blocks(context, some), threads, 0, stream, rows, squares.get(),
                    problem.labels.get(), done, some, bound.key, last, taken.get(), copies.get(), counts.get());
            const std::uint32_t count = context.fetch(counts.get(), 1)[0];
            const std::vector<FoundRow> come = context.fetch(taken.get(), count);
            std::vector<std::uint16_t> of_each;
            if (counted != 0)
                of_each = context.fetch(copies.get(), count);
            for (std::size_t i = 0; i < come.size(); ++i)
                found.add({come[i].square, problem.data.host_row(first + come[i].row), come[i].label,
                           of_each.empty() ? 1 : of_each[i]});
        }
    });
    return found.rows();
}

// Values of some clusters' totals change places with those in `others`; the first `added` values there are added to
// them. A value a thread.
__global__ void __launch_bounds__(threads)
    swap_kernel(Accumulators sums, std::int64_t n_totals, const std::int32_t *clusters, std::int64_t values, int d,
                std::int64_t added, const Control *control, std::int64_t *others)
{
    if (stopped(control))
        return;
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t at = i; at < values; at += stride) {
        const std::int64_t cluster = clusters[at / d], place = cluster * d + at % d;
        for (int part = 0; part < parts_of(sums.weighted); ++part) {
            longlong2 &total = reinterpret_cast<longlong2 *>(sums.totals)[part * n_totals + place];
            longlong2 &other = reinterpret_cast<longlong2 *>(others)[part * values + at];
            const longlong2 before = total;
            total = at < added ? make_longlong2(before.x + other.x, before.y + other.y) : other;
            other = before;
        }
    }
}

} // namespace

template <typename T>
void relocate(DeviceProblem<T> &problem, std::vector<Int128> &masses, const MoveRows &move)
{
    std::optional<Claim> claim;
    const auto farthest = [&](std::size_t most) {
        claim.reset();
        const std::size_t counts = problem.data.copies.rows != 0 ? sizeof(std::uint16_t) : 0;
        claim.emplace(problem.context.host_budget,
                      2 * most * sizeof(FarRow) +
                          rows_at_once(most, problem.labels.count()) * (sizeof(FoundRow) + counts));
        return farthest_rows(problem, most);
    };
    relocate_by_farthest_of_peers<T>(problem.data.host, problem.problem, masses, farthest, move);
}

template <typename T>
MovedSums::MovedSums(DeviceProblem<T> &problem, const Accumulators &sums, const PgkmPoints &points,
                     const PgkmProblem &of, const std::vector<MovedRow> &moved, const std::vector<Int128> &masses)
    : context_(problem.context), control_(problem.control.get()), sums_(sums), k_(problem.k), d_(problem.d)
{
    for (const MovedRow &row : moved)
        clusters_.push_back(row.from);
    std::sort(clusters_.begin(), clusters_.end());
    clusters_.erase(std::unique(clusters_.begin(), clusters_.end()), clusters_.end());
    const auto donors = static_cast<std::int32_t>(clusters_.size());
    for (const MovedRow &row : moved)
        clusters_.push_back(row.to);
    const auto d = static_cast<std::size_t>(d_);
    const std::size_t count = clusters_.size() * d * 2 * static_cast<std::size_t>(parts_of(sums.weighted));
    const Claim claim(context_.host_budget, 2 * count * sizeof(std::int64_t));
    std::vector<Int128> totals(clusters_.size() * d);
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const auto donor = std::lower_bound(clusters_.begin(), clusters_.begin() + donors, moved[i].from);
        Int128 *const from = totals.data() + static_cast<std::size_t>(donor - clusters_.begin()) * d;
        Int128 *const to = totals.data() + (static_cast<std::size_t>(donors) + i) * d;
        for (std::int32_t f = 0; f < d_; ++f) {
            to[f] = row_feature<T>(points, of, moved[i].row, f);
            from[f] -= to[f];
        }
    }
    which_ = NearArray<std::int32_t>(context_.budget, context_.host_budget, clusters_.size());
    which_.upload(clusters_.data(), clusters_.size(), context_.compute.get());
    limbs_ = limbs_of(totals, sums.weighted);
    totals_ = NearArray<std::int64_t>(context_.budget, context_.host_budget, limbs_.size());
    totals_.upload(limbs_.data(), limbs_.size(), context_.compute.get());
    set_masses(masses);
    swap(donors);
}

void MovedSums::put_back(const std::vector<Int128> &masses)
{
    set_masses(masses);
    swap(0);
}

void MovedSums::set_masses(const std::vector<Int128> &masses)
{
    const std::vector<std::int64_t> limbs = limbs_of(masses, sums_.weighted);
    enqueue_copy(sums_.masses, limbs.data(), limbs.size(), context_.compute.get(), cudaMemcpyHostToDevice);
}

void MovedSums::swap(std::int32_t added)
{
    const auto values = static_cast<std::int64_t>(clusters_.size()) * d_;
    if (values == 0)
        return;
    enqueue(swap_kernel, blocks_for(values, threads, context_.facts.multiprocessors * 4), threads, 0,
            context_.compute.get(), sums_, std::int64_t{k_} * d_, which_.get(), values, d_, std::int64_t{added} * d_,
            control_, totals_.get());
}

template <typename T>
bool same_labels(DeviceProblem<T> &problem, int set, int other)
{
    Context &context = problem.context;
    context.make_room(sizeof(std::int32_t));
    auto differ = zeros<std::int32_t>(context.budget, 1, problem.stream());
    const Control *control = problem.control.get();
    std::int32_t different = 0;
    problem.each_slice(set, [&](const View<T> &rows, std::int64_t) {
        if (different != 0)
            return;
        // The operands belong to the current centroids: other sets are assigned without a filter.
        if (set == 0)
            problem.assign_rows(rows, control, problem.labels.get());
        else
            assign_generic(problem.stage(control), rows, problem.labels.get());
        const View<T> under = problem.under(other, rows);
        in_exact_launches(problem.stage(control), under, 1e12, [&](std::int64_t done, std::int64_t some) {
            enqueue(differ_kernel<T>, blocks_for(some, differ_threads, context.facts.multiprocessors * 16),
                    differ_threads, 0, problem.stream(), slice(under, done, some), control, problem.labels.get() + done,
                    differ.get());
        });
        problem.wait();
        different = context.fetch(differ)[0];
    });
    return different == 0;
}

template void relocate<float>(DeviceProblem<float> &, std::vector<Int128> &, const MoveRows &);
template void relocate<double>(DeviceProblem<double> &, std::vector<Int128> &, const MoveRows &);
template MovedSums::MovedSums(DeviceProblem<float> &, const Accumulators &, const PgkmPoints &, const PgkmProblem &,
                              const std::vector<MovedRow> &, const std::vector<Int128> &);
template MovedSums::MovedSums(DeviceProblem<double> &, const Accumulators &, const PgkmPoints &, const PgkmProblem &,
                              const std::vector<MovedRow> &, const std::vector<Int128> &);
template bool same_labels<float>(DeviceProblem<float> &, int, int);
template bool same_labels<double>(DeviceProblem<double> &, int, int);

} // namespace pgkm::cuda
