// oversampling.cu (seed) - k-means||: five rounds of 2k draws each, and the mass of the rows nearest to each candidate.
//
// The draws of a round are the centroids of an assignment by the plan's strategy: a round costs what an iteration with
// 2k clusters costs, or fewer where draws repeat. A kernel then keeps, for each row, the nearer of its nearest draw and
// its candidate so far, so that the masses need no pass over all candidates.
// Where the device's limit has no room for that, each row is compared with all draws (seeder.hpp), and with all
// candidates again for the masses.
// Data: labels and exact distances of a slice of rows; v_i and the candidate of each row.
// Threads: a row a thread; the largest v_i by an atomic maximum. Each launch reads a row's values in ties alone.
#include "seed/oversampling.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "assign/measure.hpp"
#include "fit/device_problem.hpp"
#include "numeric/row_key.hpp"
#include "plugin/upload.hpp"

namespace pgkm::cuda {
namespace {

constexpr int threads = 256;

template <typename T>
__global__ void __launch_bounds__(threads)
    gather_kernel(const T *values, std::int32_t d, const std::int64_t *rows, std::int64_t n, T *to)
{
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < n * d; i += stride)
        to[i] = values[rows[i / d] * d + i % d];
}

// Those of `rows` whose content none before them has; `values`, which are theirs, become those of the rows that stay.
template <typename T>
std::vector<std::int64_t> without_repeats(const Context &context, std::int32_t d, const std::vector<std::int64_t> &rows,
                                          std::vector<T> &values)
{
    constexpr std::size_t rows_per_poll = 1024;
    const auto row_at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i) * d; };
    std::vector<std::int64_t> kept;
    std::unordered_multimap<std::uint64_t, std::size_t> seen; // by key: places among those that stay
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % rows_per_poll == 0)
            context.poll();
        const T *row = &*row_at(i);
        const std::uint64_t key = row_key(row, d);
        const auto [first, last] = seen.equal_range(key);
        if (std::any_of(first, last,
                        [&](const auto &other) { return compare_content(&*row_at(other.second), row, d) == 0; }))
            continue;
        seen.emplace(key, kept.size());
        std::copy_n(row, d, row_at(kept.size()));
        kept.push_back(rows[i]);
    }
    values.resize(kept.size() * static_cast<std::size_t>(d));
    return kept;
}

std::vector<Int128> join_masses(const std::vector<std::int64_t> &sums, std::int32_t count, bool weighted)
{
    std::vector<Int128> masses;
    for (std::int32_t c = 0; c < count; ++c)
        masses.push_back(sum_of(sums.data(), count, c, weighted));
    return masses;
}

// Sums of the rows' masses by candidate; label(stage, rows, first) gives the labels of a run of at most `most` rows.
template <typename T, typename Label>
std::vector<Int128> sum_by_candidate(Data &data, const PgkmProblem &problem, std::int32_t count, std::int64_t most,
                                     const T *candidates, Label &&label)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const int parts = parts_of(data.host.weights != nullptr);
    auto masses = zeros<std::int64_t>(context.budget,
                                      2 * static_cast<std::size_t>(parts) * static_cast<std::size_t>(count), stream);
    const Stage<T> stage = {context, stream, nullptr, {}, {}};
    data.template each_chunk<T>(
        problem.first_row, problem.n_rows,
        [&](const T *values, const double *weights, std::int64_t chunk, std::int64_t n) {
            const View<T> all = {values,  weights,
                                 n,       data.host.d,
                                 count,   candidates,
                                 nullptr, problem.weight_exponent,
                                 0,       data.copies.counts.get()};
            for (std::int64_t done = 0; done < n; done += most) {
                context.poll();
                View<T> rows = slice(all, done, std::min(most, n - done));
                const std::int32_t *labels = label(stage, rows, chunk + done);
                for (rows.part = 0; rows.part < parts; ++rows.part)
                    sum_masses_global_atomic(stage, rows, labels, masses.get() + 2 * std::int64_t{rows.part} * count);
                context.wait(stream);
            }
        });
    return join_masses(context.fetch(masses), count, parts == 2);
}

template <typename T>
struct NearerArguments {
    View<T> rows;                // under the round's draws
    const std::int32_t *labels;  // the nearest draw of each row
    const double *distances;     // from it
    double *nearest;             // v_i
    std::int32_t *candidate;     // of each row
    const T *candidates;         // those before this round
    std::int32_t first;          // number of the round's first draw among the candidates
    unsigned long long *largest; // bits of the largest v_i
    const Control *control;
};

template <typename T>
__global__ void __launch_bounds__(threads) nearer_kernel(NearerArguments<T> a)
{
    if (stopped(a.control))
        return;
    double largest = 0.0;
    const std::int64_t stride = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < a.rows.n; i += stride) {
        const double distance = a.distances[i], weight = a.rows.weights == nullptr ? 1.0 : a.rows.weights[i];
        const double product = weight * distance, before = a.nearest[i];
        bool nearer = product < before;
        // Equal products may come from different distances; a row without weight has no say.
        if (product == before && weight != 1.0 && weight != 0.0) {
            const T *old = a.candidates + std::int64_t{a.candidate[i]} * a.rows.d;
            nearer = distance < distance_ahead(a.rows.values + i * a.rows.d, old, a.rows.d);
        }
        if (nearer) {
            a.nearest[i] = product;
            a.candidate[i] = a.first + a.labels[i];
        }
        largest = fmax(largest, fmin(product, before));
    }
    raise_largest(a.largest, largest);
}

// The candidates so far, and the rows around them.
template <typename T>
class Assigned {
  public:
    // Device memory that it takes beside a candidate's number for each row.
    static std::uint64_t bytes(const Data &data, std::int64_t draws)
    {
        const auto k = static_cast<std::uint64_t>(draws), d = static_cast<std::uint64_t>(data.host.d);
        const auto parts = static_cast<std::uint64_t>(parts_of(data.host.weights != nullptr));
        return k * d * ((4 + oversampling_rounds) * sizeof(T) + 16 * parts) + k * 256 + (std::uint64_t{1} << 20);
    }

    Assigned(Data &data, const PgkmProblem &problem, const std::vector<T> &first, std::int32_t draws)
        : data_(data), candidate_(data.context.budget, data.context.host_budget,
                                  static_cast<std::size_t>(problem.n_rows), bytes(data, draws)),
          candidates_(data.context.budget, (oversampling_rounds * static_cast<std::size_t>(draws) + 1) * first.size()),
          problem_(data, around(problem, draws), false), // the seeder holds the rows where they lie
          distances_(data.context.budget, problem_.labels.count())
    {
        candidates_.upload(first.data(), first.size(), problem_.stream());
        enqueue_fill(candidate_.get(), 0, static_cast<std::size_t>(problem.n_rows) * sizeof(std::int32_t),
                     problem_.stream());
    }

    // Adds `count` candidates behind the first `known`.
    void add(const std::vector<T> &values, std::int32_t known, std::int32_t count, Seeder<T> &seeder)
    {
        const auto d = static_cast<std::size_t>(problem_.d);
        candidates_.upload(values.data(), values.size(), problem_.stream(), static_cast<std::size_t>(known) * d);
        problem_.k = count;     // at most the draws, for which there is memory
        problem_.prepared = {}; // rows in an order by the last round's labels, which say nothing of these draws
        problem_.upload_centroids(values.data());
        seeder.forget_largest();
        const int multiprocessors = data_.context.facts.multiprocessors;
        problem_.each_slice(0, [&](const View<T> &rows, std::int64_t first) {
            data_.context.poll();
            const Control *control = problem_.control.get();
            problem_.assign_rows(rows, control, problem_.labels.get());
            measure<T>({rows, problem_.labels.get(), distances_.get(), nullptr, 0, control}, multiprocessors,
                       data_.context.facts.shared_bytes_per_block / 2, problem_.stream());
            const NearerArguments<T> arguments = {rows,
                                                  problem_.labels.get(),
                                                  distances_.get(),
                                                  seeder.nearest() + first,
                                                  candidate_.get() + first,
                                                  candidates_.get(),
                                                  known,
                                                  seeder.largest(),
                                                  control};
            enqueue(nearer_kernel<T>, blocks_for(rows.n, threads, multiprocessors * 8), threads, 0, problem_.stream(),
                    arguments);
            problem_.wait();
        });
    }

    std::vector<Int128> masses(const PgkmProblem &problem, std::int32_t count)
    {
        return sum_by_candidate<T>(
            data_, problem, count, problem.n_rows, nullptr,
            [&](const Stage<T> &, const View<T> &, std::int64_t first) { return candidate_.get() + first; });
    }

  private:
    static PgkmProblem around(const PgkmProblem &problem, std::int32_t draws)
    {
        PgkmProblem result = problem;
        result.k = draws;
        result.peers = nullptr; // each assigns its own rows
        return result;
    }

    Data &data_;
    NearArray<std::int32_t> candidate_; // of each row
    DeviceArray<T> candidates_;         // their values
    DeviceProblem<T> problem_;          // a round's draws as centroids
    DeviceArray<double> distances_;     // of one slice of rows
};

} // namespace

Claim claim_rows(const Data &data, std::int64_t count)
{
    return Claim(data.context.host_budget, static_cast<std::uint64_t>(count) * (data.row_bytes() + 24));
}

template <typename T>
void gather_rows(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows, T *to)
{
    const cudaStream_t stream = data.context.compute.get();
    const T *values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * data.host.d;
    DeviceArray<std::int64_t> numbers(data.context.budget, rows.size());
    numbers.upload(rows.data(), rows.size(), stream);
    const auto count = static_cast<std::int64_t>(rows.size());
    enqueue(gather_kernel<T>, blocks_for(count * data.host.d, threads, data.context.facts.multiprocessors * 8), threads,
            0, stream, values, data.host.d, numbers.get(), count, to);
}

template <typename T>
std::vector<T> rows_of(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows)
{
    constexpr std::size_t few = 64; // the host has them sooner
    const auto d = static_cast<std::size_t>(data.host.d);
    std::vector<T> values(rows.size() * d);
    const bool gathered =
        data.resident && rows.size() > few && within_limit([&] {
            const DeviceArray<T> there(data.context.budget, values.size());
            gather_rows(data, problem, rows, there.get());
            data.context.wait(data.context.compute.get()); // a copy would wait without a look at the cancel flag
            download(data.context, values.data(), there.get(), there.bytes());
        });
    for (std::size_t i = 0; !gathered && i < rows.size(); ++i)
        std::copy_n(static_cast<const T *>(data.host.values) +
                        static_cast<std::size_t>(data.host_row(problem.first_row + rows[i])) * d,
                    d, values.data() + i * d);
    std::transform(values.begin(), values.end(), values.begin(), without_minus_zero<T>);
    return values;
}

template <typename T>
Candidates<T> oversample(Data &data, const PgkmProblem &problem, Seeder<T> &seeder, SharedRows<T> *shared)
{
    Context &context = data.context;
    Candidates<T> result = {seeder.chosen(), {}, {}};
    const auto values_of = [&](const std::vector<std::int64_t> &rows) {
        return shared == nullptr ? rows_of<T>(data, problem, rows) : shared->values_of(rows);
    };
    const auto keep = [&](const std::vector<T> &values) {
        if (shared != nullptr)
            result.values.insert(result.values.end(), values.begin(), values.end());
    };
    const std::int64_t draws = std::int64_t{oversampling_factor} * problem.k;
    // The values of all candidates, and those of a round on their way.
    const Claim claim_shared = shared == nullptr ? Claim() : claim_rows(data, (oversampling_rounds + 2) * draws);
    const std::vector<T> first = values_of(result.rows);
    keep(first);
    std::optional<Assigned<T>> assigned;
    if (draws * oversampling_rounds < std::numeric_limits<std::int32_t>::max()) {
        if (context.make_room(Assigned<T>::bytes(data, draws)))
            within_limit([&] { assigned.emplace(data, problem, first, static_cast<std::int32_t>(draws)); });
    }
    if (shared != nullptr && !assigned)
        throw Error(PGKM_LIMIT, "a device has no room for the candidates of its rows");
    for (std::uint32_t round = 0; round < oversampling_rounds; ++round) {
        const Claim claim = claim_rows(data, draws);
        const std::vector<std::int64_t> drawn = seeder.draw_round(round, static_cast<std::size_t>(draws));
        std::vector<T> values = values_of(drawn);
        const std::vector<std::int64_t> taken = without_repeats(context, data.host.d, drawn, values);
        if (taken.empty())
            break;
        const auto known = static_cast<std::int32_t>(result.rows.size()),
                   count = static_cast<std::int32_t>(taken.size());
        if (assigned)
            assigned->add(values, known, count, seeder);
        else
            seeder.add(values, count);
        seeder.meet_peers();
        keep(values);
        result.rows.insert(result.rows.end(), taken.begin(), taken.end());
    }
    if (assigned && static_cast<std::int64_t>(result.rows.size()) > problem.k)
        result.masses = assigned->masses(problem, static_cast<std::int32_t>(result.rows.size()));
    if (shared != nullptr)
        add_over(problem.peers, result.masses.data(), result.masses.size());
    return result;
}

template <typename T>
std::vector<Int128> candidate_masses(Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows)
{
    Context &context = data.context;
    constexpr std::int64_t some = 4096;
    const Claim claim = claim_rows(data, static_cast<std::int64_t>(rows.size()));
    const std::vector<T> values = rows_of<T>(data, problem, rows);
    DeviceArray<std::int32_t> labels(context.budget, some);
    NearArray<T> candidates(context.budget, context.host_budget, values.size(), context.budget.limit / 4);
    candidates.upload(values.data(), values.size(), context.compute.get());
    return sum_by_candidate<T>(data, problem, static_cast<std::int32_t>(rows.size()), some, candidates.get(),
                               [&](const Stage<T> &stage, const View<T> &part, std::int64_t) {
                                   assign_generic(stage, part, labels.get());
                                   return labels.get();
                               });
}

template void gather_rows<float>(const Data &, const PgkmProblem &, const std::vector<std::int64_t> &, float *);
template void gather_rows<double>(const Data &, const PgkmProblem &, const std::vector<std::int64_t> &, double *);
template std::vector<float> rows_of<float>(const Data &, const PgkmProblem &, const std::vector<std::int64_t> &);
template std::vector<double> rows_of<double>(const Data &, const PgkmProblem &, const std::vector<std::int64_t> &);
template Candidates<float> oversample<float>(Data &, const PgkmProblem &, Seeder<float> &, SharedRows<float> *);
template Candidates<double> oversample<double>(Data &, const PgkmProblem &, Seeder<double> &, SharedRows<double> *);
template std::vector<Int128> candidate_masses<float>(Data &, const PgkmProblem &, const std::vector<std::int64_t> &);
template std::vector<Int128> candidate_masses<double>(Data &, const PgkmProblem &, const std::vector<std::int64_t> &);

} // namespace pgkm::cuda
