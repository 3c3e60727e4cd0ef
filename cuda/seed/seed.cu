// seed.cu (seed) - initial centroids: test/reference/seed.cpp's definition, run on the device.
//
// k-means++ enqueues all its steps without waiting for any (streamed rows excepted, whose picks are fetched from the
// caller's memory). k-means|| comes back to the host once a round. random and first draw on the host.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fit/device_problem.hpp"
#include "backend/update.hpp"
#include "numeric/row_key.hpp"
#include "seed/canonical.hpp"
#include "seed/seeder.hpp"

namespace pgkm::cuda {
namespace {

// On the host's limit, for rows that are drawn: their numbers and values.
Claim claim_rows(const Data &data, std::int64_t count)
{
    return Claim(data.context.host_budget, static_cast<std::uint64_t>(count) * (data.row_bytes() + 24));
}

template <typename T>
const T *row_of(const Data &data, const PgkmProblem &problem, std::int64_t row)
{
    return static_cast<const T *>(data.host.values) + (problem.first_row + row) * data.host.d;
}

// The rows' values, with +0 for -0.
template <typename T>
std::vector<T> rows_of(const Data &data, const PgkmProblem &problem, const std::vector<std::int64_t> &rows)
{
    const auto d = static_cast<std::size_t>(data.host.d);
    std::vector<T> values(rows.size() * d);
    auto out = values.begin();
    for (const std::int64_t row : rows) {
        const T *from = row_of<T>(data, problem, row);
        out = std::transform(from, from + d, out, without_minus_zero<T>);
    }
    return values;
}

// Those of `rows` whose content none before them has.
template <typename T>
std::vector<std::int64_t> without_repeats(const Data &data, const PgkmProblem &problem,
                                          const std::vector<std::int64_t> &rows)
{
    constexpr std::size_t rows_per_poll = 1024;
    std::vector<std::int64_t> kept;
    std::unordered_multimap<std::uint64_t, const T *> seen; // by key
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (i % rows_per_poll == 0)
            data.context.poll();
        const T *row = row_of<T>(data, problem, rows[i]);
        const std::uint64_t key = row_key(row, data.host.d);
        const auto [first, last] = seen.equal_range(key);
        if (std::any_of(first, last,
                        [&](const auto &other) { return compare_content(other.second, row, data.host.d) == 0; }))
            continue;
        seen.emplace(key, row);
        kept.push_back(rows[i]);
    }
    return kept;
}

std::vector<Int128> join_masses(const std::vector<std::int64_t> &sums, std::int32_t count, bool weighted)
{
    std::vector<Int128> masses;
    for (std::int32_t c = 0; c < count; ++c)
        masses.push_back(sum_of(sums.data(), count, c, weighted));
    return masses;
}

// Masses of the rows nearest to each candidate, by the stages of a pass.
template <typename T>
std::vector<Int128> candidate_masses(Data &data, const PgkmProblem &problem, std::vector<T> &values, std::int32_t count)
{
    PgkmProblem around = problem;
    around.k = count;
    around.centroids = values.data();
    DeviceProblem<T> device(data, around);
    device.iterates = false;
    device.upload_centroids(values.data());
    device.each_slice(0, [&](const View<T> &rows, std::int64_t) {
        data.context.poll();
        device.assign_rows(rows, device.control.get(), device.labels.get());
        device.sum_masses(rows, device.control.get(), device.labels.get());
        device.wait();
    });
    std::vector<std::int64_t> sums(device.masses.count());
    device.masses.download(sums.data(), sums.size(), device.stream());
    data.context.wait(device.stream());
    return join_masses(sums, count, device.weighted);
}

// The same with little device memory: the candidates stay where they are, and labels are held
// for few rows at a time.
template <typename T>
std::vector<Int128> candidate_masses_within_limit(Data &data, const PgkmProblem &problem, const T *candidates,
                                                  std::int32_t count)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    constexpr std::int64_t some = 4096;
    DeviceArray<std::int32_t> labels(context.budget, some);
    const int parts = parts_of(data.host.weights != nullptr);
    DeviceArray<std::int64_t> masses(context.budget,
                                     2 * static_cast<std::size_t>(parts) * static_cast<std::size_t>(count));
    masses.fill_zero(stream);
    const Stage<T> stage = {context, stream, nullptr, {}, {}};
    data.template each_chunk<T>(
        problem.first_row, problem.n_rows, [&](const T *values, const double *weights, std::int64_t, std::int64_t n) {
            const View<T> all = {values, weights, n, data.host.d, count, candidates, nullptr, problem.weight_exponent};
            for (std::int64_t done = 0; done < n; done += some) {
                context.poll();
                View<T> some_rows = slice(all, done, std::min(some, n - done));
                assign_generic(stage, some_rows, labels.get());
                for (some_rows.part = 0; some_rows.part < parts; ++some_rows.part)
                    sum_masses_global_atomic(stage, some_rows, labels.get(),
                                             masses.get() + 2 * std::int64_t{some_rows.part} * count);
                context.wait(stream);
            }
        });
    std::vector<std::int64_t> sums(masses.count());
    masses.download(sums.data(), sums.size(), stream);
    context.wait(stream);
    return join_masses(sums, count, parts == 2);
}

// Weighted greedy k-means++ among the candidates of k-means||.
template <typename T>
std::vector<std::int64_t> among_candidates(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params,
                                           const std::vector<std::int64_t> &rows)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const Claim claim = claim_rows(data, static_cast<std::int64_t>(rows.size()));
    std::vector<T> values = rows_of<T>(data, problem, rows);
    const auto count = static_cast<std::int32_t>(rows.size());
    // What a DeviceProblem of so many centroids takes; the candidates alone may lie on the host.
    const std::uint64_t n_values = values.size();
    const auto parts = static_cast<std::uint64_t>(parts_of(data.host.weights != nullptr));
    const bool roomy = n_values * (4 * sizeof(T) + 16 + 16 * parts) + (std::uint64_t{1} << 20) <= context.budget.room();
    std::vector<Int128> masses;
    if (roomy)
        masses = candidate_masses(data, problem, values, count);
    NearArray<T> device_values(context.budget, context.host_budget, n_values, context.budget.limit / 4);
    device_values.upload(values.data(), values.size(), stream);
    if (!roomy)
        masses = candidate_masses_within_limit(data, problem, device_values.get(), count);
    Int128 total = 0;
    for (const Int128 mass : masses)
        total += mass;
    const int shift = mass_shift(static_cast<UInt128>(total));
    std::vector<double> weights;
    std::vector<std::int64_t> integers;
    for (const Int128 mass : masses) {
        weights.push_back(candidate_weight(mass));
        integers.push_back(static_cast<std::int64_t>(mass >> shift));
    }
    DeviceArray<double> device_weights(context.budget, weights.size());
    device_weights.upload(weights.data(), weights.size(), stream);
    DeviceArray<std::int64_t> device_masses(context.budget, integers.size());
    device_masses.upload(integers.data(), integers.size(), stream);
    Seeder<T> seeder(context,
                     {device_values.get(), device_weights.get(), device_masses.get(), count, data.host.d, 0, nullptr},
                     params, Stream::candidate_first, Stream::candidate_trial, problem.k);
    seeder.add_first();
    seeder.extend(problem.k, 1);
    std::vector<std::int64_t> result;
    for (const std::int64_t candidate : seeder.chosen())
        result.push_back(rows[static_cast<std::size_t>(candidate)]);
    return result;
}

template <typename T>
std::vector<std::int64_t> draw_rows(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    Context &context = data.context;
    NearArray<std::uint32_t> order = canonical_order<T>(data, problem.first_row, problem.n_rows);
    SeedRows<T> rows = {nullptr, nullptr,    nullptr, problem.n_rows, data.host.d, problem.weight_exponent,
                        nullptr, order.get()};
    if (data.resident) {
        rows.values = reinterpret_cast<const T *>(data.values.get()) + problem.first_row * data.host.d;
        rows.weights = data.host.weights == nullptr ? nullptr : data.weights.get() + problem.first_row;
    }
    std::optional<Seeder<T>> owner(std::in_place, context, rows, params, Stream::first_centroid, Stream::trial,
                                   problem.k);
    Seeder<T> &seeder = *owner;
    if (!data.resident)
        seeder.stream_from(data, problem.first_row);
    seeder.add_first();
    if (params.init != PGKM_INIT_KMEANS_PARALLEL) {
        seeder.extend(problem.k, 1);
        return seeder.chosen();
    }
    std::vector<std::int64_t> chosen = seeder.chosen();
    const std::int64_t draws = std::int64_t{oversampling_factor} * problem.k;
    for (std::uint32_t round = 0; round < oversampling_rounds; ++round) {
        const Claim claim = claim_rows(data, draws);
        const std::vector<std::int64_t> taken =
            without_repeats<T>(data, problem, seeder.draw_round(round, static_cast<std::size_t>(draws)));
        if (taken.empty())
            break;
        seeder.add(rows_of<T>(data, problem, taken), static_cast<std::int32_t>(taken.size()));
        chosen.insert(chosen.end(), taken.begin(), taken.end());
    }
    if (static_cast<std::int64_t>(chosen.size()) > problem.k) {
        owner.reset(); // their memory may be what the candidates' masses need
        order = {};
        return among_candidates<T>(data, problem, params, chosen);
    }
    seeder.set_chosen(chosen);
    seeder.extend(problem.k, static_cast<std::int32_t>(chosen.size()));
    return seeder.chosen();
}

// Floyd's sampling of k positions out of n without replacement, in the order of insertion.
std::vector<std::int64_t> random_positions(std::int64_t n, std::int32_t k, const PgkmSeedParams &params)
{
    std::vector<std::int64_t> chosen;
    std::unordered_set<std::int64_t> taken;
    for (std::int64_t j = n - k; j < n; ++j) {
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto row = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        chosen.push_back(taken.count(row) != 0 ? j : row);
        taken.insert(chosen.back());
    }
    return chosen;
}

} // namespace

template <typename T>
void seed_problem(Data &data, PgkmProblem &problem, const PgkmSeedParams &params)
{
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, problem.n_rows));
    const Claim claim = claim_rows(data, at_most_n);
    std::vector<std::int64_t> rows;
    if (params.init == PGKM_INIT_RANDOM) {
        rows = random_positions(problem.n_rows, at_most_n, params);
        look_up_rows(data.context, canonical_order<T>(data, problem.first_row, problem.n_rows), rows);
    } else if (params.init == PGKM_INIT_FIRST) {
        for (std::int64_t i = 0; i < at_most_n; ++i)
            rows.push_back(i);
    } else if (params.init == PGKM_INIT_KMEANS_PLUS_PLUS || params.init == PGKM_INIT_KMEANS_PARALLEL) {
        rows = draw_rows<T>(data, problem, params);
    } else {
        throw Error(PGKM_INVALID, "seed() does not take given centroids");
    }
    const std::vector<T> values = rows_of<T>(data, problem, rows);
    std::copy(values.begin(), values.end(), static_cast<T *>(problem.centroids));
    problem.k = static_cast<std::int32_t>(rows.size());
}

template void seed_problem<float>(Data &, PgkmProblem &, const PgkmSeedParams &);
template void seed_problem<double>(Data &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm::cuda
