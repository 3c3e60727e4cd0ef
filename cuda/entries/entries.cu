// entries.cu - makes entries of rows that repeat, and brings labels of entries back to the rows.
//
// Rows are sorted by key, as for a seeding. An entry begins where the row differs from the one before it, or its weight
// does, and at every most_copies-th place, which bounds the counts. A sum up to each place numbers the entries. Equal
// rows whose weights alternate stay apart.
// A sample tells first whether that pays. It is of places that are drawn each on its own, since rows may have come in
// order.
// Peers bring their entries together by way of the host. They lie there one peer's behind the other's, and on each
// device in canonical order. Equal entries of two peers stay two. Data: keys and row numbers by place, the entry's
// number by place and by row; values of entries one after the other. Threads: a place, a row or a value a thread; they
// share nothing. Paper: Chao 1984 (how many rows differ, from a sample).
#include "entries/entries.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <cub/device/device_scan.cuh>

#include "backend/calls.hpp"
#include "numeric/philox.hpp"
#include "numeric/row_key.hpp"
#include "plan/stages.hpp"
#include "plugin/upload.hpp"
#include "seed/canonical.hpp"
#include "seed/gather.cuh"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

// Of fewer rows nothing is long.
constexpr std::int64_t least_rows = 1 << 14;

constexpr std::int64_t rows_at_once = 1 << 22; // whose labels are brought to the host

constexpr std::size_t piece_bytes = std::size_t{4} << 20; // that a peer gives to the others at a time

// How often each key has come.
class Tally {
  public:
    explicit Tally(std::size_t most)
    {
        std::size_t size = 2;
        while (size < 2 * most)
            size *= 2;
        slots_.resize(size);
    }
    // As often before.
    std::uint32_t add(std::uint64_t key)
    {
        std::size_t at = key & (slots_.size() - 1);
        while (slots_[at].count != 0 && slots_[at].key != key)
            at = (at + 1) & (slots_.size() - 1);
        slots_[at].key = key;
        return slots_[at].count++;
    }

  private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t count = 0;
    };
    std::vector<Slot> slots_;
};

// How many of a problem's rows differ, in values or weight; infinity where too few of the sample repeat to tell.
template <typename T>
double guess_distinct(Data &rows, const PgkmProblem &problem)
{
    const std::int64_t n = problem.n_rows;
    const double *const weights = part_of(rows.host, problem.first_row, n).weights;
    const auto wanted = static_cast<std::size_t>(DistinctGuess::sample_of(n));
    std::vector<std::uint32_t> sample;
    Tally places(wanted), keys(wanted);
    for (std::uint64_t i = 0; i < wanted; ++i) {
        const auto place = static_cast<std::uint64_t>(scale_draw(finish_key(i), static_cast<UInt128>(n)));
        if (places.add(place) == 0)
            sample.push_back(static_cast<std::uint32_t>(place));
    }
    const std::vector<std::uint64_t> found = keys_of<T>(rows, problem.first_row, sample);
    DistinctGuess guess;
    for (std::size_t i = 0; i < found.size(); ++i) {
        std::uint64_t key = found[i];
        if (weights != nullptr)
            key = finish_key(key + key_bits(weights[sample[i]]));
        guess.add(keys.add(key));
    }
    return guess.distinct();
}

// begins[p] = 1 where an entry begins, else 0. values: nullptr where rows of equal keys are equal.
template <typename T>
__global__ void __launch_bounds__(threads)
    begin_kernel(const std::uint64_t *keys, const std::uint32_t *rows, const T *values, std::int32_t d,
                 const double *weights, std::int64_t n, std::uint32_t *begins)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t p = std::int64_t{blockIdx.x} * threads + threadIdx.x; p < n; p += stride) {
        bool begin = p % most_copies == 0 || keys[p] != keys[p - 1];
        if (!begin && weights != nullptr)
            begin = weights[rows[p]] != weights[rows[p - 1]];
        if (!begin && values != nullptr)
            begin = compare_content(values + std::int64_t{rows[p]} * d, values + std::int64_t{rows[p - 1]} * d, d) != 0;
        begins[p] = begin ? 1 : 0;
    }
}

// From the number of entries up to each place: the entry of each row, the place at which each entry begins, with n
// behind the last one, and the row there.
__global__ void __launch_bounds__(threads)
    number_kernel(const std::uint32_t *up_to, const std::uint32_t *rows, std::int64_t n, std::uint32_t *entry_of,
                  std::uint32_t *starts, std::uint32_t *first)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t p = std::int64_t{blockIdx.x} * threads + threadIdx.x; p < n; p += stride) {
        const std::uint32_t entry = up_to[p] - 1, row = rows[p];
        entry_of[row] = entry;
        if (p == 0 || up_to[p - 1] != up_to[p]) {
            starts[entry] = static_cast<std::uint32_t>(p);
            first[entry] = row;
        }
        if (p + 1 == n)
            starts[entry + 1] = static_cast<std::uint32_t>(n);
    }
}

// starts: nullptr where the rows are entries already, which stand for so many (of_each).
template <typename T>
__global__ void __launch_bounds__(threads)
    fill_kernel(const T *values, const double *weights, const std::uint16_t *of_each, std::int32_t d,
                const std::uint32_t *starts, const std::uint32_t *first, std::int64_t n, T *to, double *to_weights,
                std::uint16_t *counts)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n * d; i += stride) {
        const std::int64_t entry = i / d, f = i - entry * d, row = first[entry];
        to[i] = values[row * d + f];
        if (f != 0)
            continue;
        counts[entry] =
            starts == nullptr ? of_each[row] : static_cast<std::uint16_t>(starts[entry + 1] - starts[entry]);
        if (weights != nullptr)
            to_weights[entry] = weights[row];
    }
}

// up_to[p] becomes the sum of up_to[0] to up_to[p].
void sum_up_to(Context &context, const DeviceArray<std::uint32_t> &up_to)
{
    std::size_t bytes = 0;
    const auto scan = [&](void *storage) {
        checked("cub::DeviceScan", [&] {
            return cub::DeviceScan::InclusiveSum(storage, bytes, up_to.get(), up_to.get(),
                                                 static_cast<std::int64_t>(up_to.count()), context.compute.get());
        });
    };
    scan(nullptr);
    const DeviceArray<char> storage(context.budget, bytes);
    scan(storage.get());
}

// Entries of the rows `first`, counted from first_row; starts: as above.
template <typename T>
std::unique_ptr<Data> fill(const Data &rows, std::int64_t first_row, const DeviceArray<std::uint32_t> &first,
                           const std::uint32_t *starts, Data::Copies copies)
{
    Context &context = rows.context;
    const auto size = static_cast<std::int64_t>(first.count()), d = std::int64_t{rows.host.d};
    const PgkmPoints host = part_of(rows.host, first_row, size);
    copies.counts = DeviceArray<std::uint16_t>(context.budget, first.count());
    DeviceArray<char> values(context.budget, first.count() * rows.row_bytes());
    DeviceArray<double> weights(context.budget, host.weights == nullptr ? 0 : first.count());
    enqueue(fill_kernel<T>, blocks_for(size * d, threads, context.facts.multiprocessors * 16), threads, 0,
            context.compute.get(), reinterpret_cast<const T *>(rows.values.get()) + first_row * d,
            host.weights == nullptr ? nullptr : rows.weights.get() + first_row, rows.copies.counts.get(), rows.host.d,
            starts, first.get(), size, reinterpret_cast<T *>(values.get()), weights.get(), copies.counts.get());
    copies.host_row = context.fetch(first);
    return std::make_unique<Data>(context, host, std::move(values), std::move(weights), std::move(copies));
}

// The entries of a problem's rows; nullptr where they are more than these, equal keys leave the order open, or there is
// no room.
template <typename T>
std::unique_ptr<Data> make_entries(Data &rows, const PgkmProblem &problem, std::int64_t most)
{
    Context &context = rows.context;
    const cudaStream_t stream = context.compute.get();
    const std::int64_t n = problem.n_rows, first_row = problem.first_row;
    const auto count = static_cast<std::size_t>(n);
    const int blocks = blocks_for(n, threads, context.facts.multiprocessors * 16);
    std::optional<KeyedRows> keyed = sort_by_key<T>(rows, first_row, n);
    if (!keyed || keyed->open)
        return nullptr;
    DeviceArray<std::uint32_t> up_to(context.budget, count);
    const T *const values_of_rows = reinterpret_cast<const T *>(rows.values.get()) + first_row * rows.host.d;
    const double *const weights_of_rows = rows.host.weights == nullptr ? nullptr : rows.weights.get() + first_row;
    enqueue(begin_kernel<T>, blocks, threads, 0, stream, keyed->keys.get(), keyed->rows.get(),
            keyed->collide ? values_of_rows : nullptr, rows.host.d, weights_of_rows, n, up_to.get());
    keyed->keys = {};
    sum_up_to(context, up_to);
    const std::int64_t size = context.fetch(up_to.get() + (n - 1), 1)[0];
    const auto entries = static_cast<std::size_t>(size);
    const std::uint64_t bytes = sizeof(std::uint32_t) * count + (rows.row_bytes() + 18) * entries;
    if (size > most || !context.make_room(2 * bytes))
        return nullptr;
    Data::Copies copies;
    copies.rows = n;
    copies.claim = Claim(context.host_budget, sizeof(std::uint32_t) * entries);
    copies.entry_of = DeviceArray<std::uint32_t>(context.budget, count);
    const DeviceArray<std::uint32_t> starts(context.budget, entries + 1), first(context.budget, entries);
    enqueue(number_kernel, blocks, threads, 0, stream, up_to.get(), keyed->rows.get(), n, copies.entry_of.get(),
            starts.get(), first.get());
    return fill<T>(rows, first_row, first, starts.get(), std::move(copies));
}

// Brings what all peers have of their entries, `width` bytes each, to `to`, in the order of the shares. sizes: how many
// each has; from: own ones, on the device; piece: room for piece_bytes, or for one.
void bring(Context &context, const PgkmPeers &peers, const std::vector<std::int64_t> &sizes, std::size_t width,
           const void *from, void *to, std::vector<char> &piece)
{
    const std::int64_t at_once = std::max<std::int64_t>(static_cast<std::int64_t>(piece_bytes / width), 1),
                       own = sizes[static_cast<std::size_t>(peers.share)],
                       most = *std::max_element(sizes.begin(), sizes.end());
    for (std::int64_t first = 0; first < most; first += at_once) {
        const std::size_t before = static_cast<std::size_t>(first) * width,
                          bytes = static_cast<std::size_t>(std::clamp<std::int64_t>(own - first, 0, at_once)) * width;
        download(context, piece.data(), static_cast<const char *>(from) + before, bytes);
        const PgkmPiece *const pieces = exchange(peers, piece.data(), bytes);
        char *place = static_cast<char *>(to) + before;
        for (std::size_t share = 0; share < sizes.size(); place += static_cast<std::size_t>(sizes[share++]) * width)
            std::copy_n(static_cast<const char *>(pieces[share].data), pieces[share].bytes, place);
    }
}

// The entries of all peers, of which these are `own`; nullptr for each of them where they are more than `most`, or one
// has no room or none of its own.
template <typename T>
std::unique_ptr<Data> join_entries(const Data &rows, const PgkmPeers &peers, const Data *own, std::int64_t most)
{
    Context &context = rows.context;
    const std::vector<std::int64_t> sizes = tell(peers, own == nullptr ? std::int64_t{0} : own->host.n);
    std::int64_t size = 0;
    for (const std::int64_t one : sizes)
        size = one == 0 || size > most ? most + 1 : size + one;
    if (size > most)
        return nullptr;
    const auto entries = static_cast<std::size_t>(size);
    const bool weighted = rows.host.weights != nullptr;
    const std::size_t width = rows.row_bytes(), room = std::max(piece_bytes, width);
    Data::Copies copies;
    std::vector<std::uint16_t> counts;
    std::vector<char> piece;
    Claim claim;
    const bool has_room = within_limit([&] {
        copies.claim = Claim(context.host_budget, (width + (weighted ? 12 : 4)) * entries);
        claim = Claim(context.host_budget, sizeof counts[0] * entries + 3 * room); // the exchange keeps two pieces
        copies.values.resize(entries * width);
        copies.weights.resize(weighted ? entries : 0);
        counts.resize(entries);
        piece.resize(room);
    });
    if (any_of_peers(&peers, !has_room))
        return nullptr;
    bring(context, peers, sizes, width, own->values.get(), copies.values.data(), piece);
    if (weighted)
        bring(context, peers, sizes, sizeof(double), own->weights.get(), copies.weights.data(), piece);
    bring(context, peers, sizes, sizeof counts[0], own->copies.counts.get(), counts.data(), piece);
    std::unique_ptr<Data> joined;
    within_limit([&] {
        PgkmPoints host = own->host;
        host.values = copies.values.data();
        host.weights = weighted ? copies.weights.data() : nullptr;
        host.n = size;
        Data::Copies as_came;
        copies.rows = as_came.rows = peers.n_rows;
        as_came.counts = DeviceArray<std::uint16_t>(context.budget, entries);
        Data all(context, host, {context.budget, copies.values.size()}, {context.budget, copies.weights.size()},
                 std::move(as_came));
        upload(context, all.values.get(), host.values, all.values.bytes());
        upload(context, all.weights.get(), host.weights, all.weights.bytes());
        upload(context, all.copies.counts.get(), counts.data(), all.copies.counts.bytes());
        std::optional<KeyedRows> keyed = sort_by_key<T>(all, 0, size);
        if (!keyed || keyed->open || !context.make_room(2 * (width + 18) * entries))
            return;
        keyed->keys = {};
        joined = fill<T>(all, 0, keyed->rows, nullptr, std::move(copies));
    });
    return any_of_peers(&peers, joined == nullptr) ? nullptr : std::move(joined);
}

// to[row] = from[entry of the row], on the host.
template <typename V>
void spread(Data &entries, const DeviceArray<V> &from, V *to)
{
    Context &context = entries.context;
    const std::int64_t n = entries.copies.rows;
    const DeviceArray<V> some(context.budget, static_cast<std::size_t>(std::min(n, rows_at_once)));
    for (std::int64_t row = 0; row < n; row += rows_at_once) {
        const std::int64_t count = std::min(rows_at_once, n - row);
        gather(context, from.get(), entries.copies.entry_of.get() + row, count, some.get());
        context.wait(context.compute.get()); // a copy would wait without a look at the cancel flag
        download(context, to + row, some.get(), static_cast<std::size_t>(count) * sizeof(V));
    }
}

// How many copies a row has, by a sample.
template <typename T>
double guess_copies(Data &rows, const PgkmProblem &problem, Data::Range &range)
{
    if (range.guessed_copies == 0.0)
        range.guessed_copies = std::max(static_cast<double>(problem.n_rows) / guess_distinct<T>(rows, problem), 1.0);
    return range.guessed_copies;
}

// The entries of a problem's rows, where there are some, or making them is worth it, and so many copies of each repay
// them; else nullptr.
template <typename T>
Data *entries_of(Data &rows, const PgkmProblem &problem, bool worth, std::int64_t repaying)
{
    const std::int64_t n = problem.n_rows;
    const std::pair key(problem.first_row, n);
    if (!worth && !rows.ranges.contains(key))
        return nullptr;
    Data::Range &range = rows.ranges[key];
    const auto make = [&] {
        if (guess_copies<T>(rows, problem, range) < std::max(expected_copies, static_cast<double>(repaying)))
            return;
        range.entries = make_entries<T>(rows, problem, n / least_copies);
        if (range.entries == nullptr)
            range.guessed_copies = 1.0;
    };
    if (range.entries == nullptr && worth && !within_limit(make))
        rows.may_repeat = false;
    return range.entries != nullptr && range.entries->host.n <= n / repaying ? range.entries.get() : nullptr;
}

std::atomic<std::uint64_t> last_number{0}; // of entries of all peers

// The same of the entries of all peers. Each has all of them to do, in place of its own rows.
template <typename T>
Data *entries_of_peers(Data &rows, const PgkmProblem &problem, bool worth, std::int64_t repaying)
{
    struct Told {
        double distinct; // rows that differ, as it guesses; infinity: it makes no entries
        std::int64_t rows, repaying;
        std::uint64_t held, next; // the numbers of what it has, and of what it may make
    };
    Data::Range &range = rows.ranges[{problem.first_row, problem.n_rows}];
    Told own = {std::numeric_limits<double>::infinity(), problem.n_rows, repaying,
                range.of_all != nullptr && range.of_all->copies.rows == problem.peers->n_rows ? range.number : 0,
                ++last_number};
    if (worth && !within_limit([&] {
            own.distinct = static_cast<double>(problem.n_rows) / guess_copies<T>(rows, problem, range);
        }))
        rows.may_repeat = false;
    const std::vector<Told> all = tell(*problem.peers, own);
    double distinct = 0.0;
    std::int64_t most_rows = 0; // of a peer
    bool held = all[0].held != 0;
    for (const Told &one : all) {
        distinct += one.distinct;
        most_rows = std::max(most_rows, one.rows);
        repaying = std::max(repaying, one.repaying);
        held = held && one.held == all[0].held;
    }
    if (!held) {
        range.of_all.reset();
        if (distinct * std::max(expected_copies, static_cast<double>(repaying)) > static_cast<double>(most_rows))
            return nullptr;
        const std::int64_t most = std::min(most_rows / least_copies, most_seed_rows);
        if (range.entries == nullptr)
            within_limit([&] { range.entries = make_entries<T>(rows, problem, most); });
        range.of_all = join_entries<T>(rows, *problem.peers, range.entries.get(), most);
        range.number = all[0].next;
    }
    if (range.of_all != nullptr && range.of_all->host.n <= most_rows / repaying)
        return range.of_all.get();
    range.guessed_copies = 1.0; // now they go: the next restart would only make them again
    return nullptr;
}

} // namespace

Data *rows_for(Data &rows, const PgkmProblem &problem, double passes, bool fits)
{
    const Context &context = rows.context;
    const std::int64_t first = problem.first_row, n = problem.n_rows;
    std::erase_if(rows.ranges, [&](const auto &range) {
        const auto [other, size] = range.first;
        return other < first + n && first < other + size && (other != first || size != n);
    });
    Data *entries = nullptr;
    if (all_rows(problem) >= least_rows && problem.k >= 1 && context.forced.nothing() &&
        context.facts.takes(Mechanism::entries)) {
        const Shape shape = {n, rows.host.d, problem.k, rows.element_bytes() == 8, rows.host.weights != nullptr};
        const std::int64_t repaying = fits ? repaying_copies(shape, context.facts) : least_copies;
        const bool worth = passes * problem.k >= worth_entries && rows.may_repeat && rows.resident &&
                           n <= most_seed_rows && first >= 0 && first + n <= rows.host.n;
        with_element(rows, [&](auto element) {
            using T = decltype(element);
            entries = problem.peers == nullptr ? entries_of<T>(rows, problem, worth, repaying)
                                               : entries_of_peers<T>(rows, problem, worth, repaying);
        });
    }
    return entries != nullptr ? entries : problem.peers == nullptr && may_stay(rows, n) ? &rows : nullptr;
}

bool may_stay(const Data &rows, std::int64_t n)
{
    return rows.has_entries() && rows.context.budget.has(2 * static_cast<std::uint64_t>(n) * rows.row_bytes());
}

void forget_entries(Data &rows)
{
    for (auto &[of, range] : rows.ranges) {
        range.entries.reset();
        range.of_all.reset();
    }
}

template <typename T>
void assign_entries(Data &entries, const PgkmProblem &problem, const PgkmAssignment &wanted)
{
    DeviceMemory &memory = entries.context.budget;
    const auto count = static_cast<std::size_t>(entries.host.n);
    const DeviceArray<std::int32_t> labels(memory, wanted.labels == nullptr ? 0 : count);
    const DeviceArray<double> distances(memory, wanted.distances == nullptr ? 0 : count);
    PgkmAssignment found = wanted;
    found.labels = labels.get();
    found.distances = distances.get();
    assign_problem<T>(entries, problem, found);
    if (wanted.labels != nullptr)
        spread(entries, labels, wanted.labels);
    if (wanted.distances != nullptr)
        spread(entries, distances, wanted.distances);
}

template void assign_entries<float>(Data &, const PgkmProblem &, const PgkmAssignment &);
template void assign_entries<double>(Data &, const PgkmProblem &, const PgkmAssignment &);

} // namespace pgkm::cuda
