// seed.cu (seed) - initial centroids: test/reference/seed.cpp's definition, run on the device.
//
// k-means++ looks at its state every few steps, some 10 ms of work. k-means|| comes back to the host once a round.
// random and first draw on the host; by weight the CPU draws.
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "backend/random_places.hpp"
#include "backend/update.hpp"
#include "numeric/row_key.hpp"
#include "plan/choose.hpp"
#include "seed/canonical.hpp"
#include "seed/greedy.hpp"
#include "seed/held_rows.hpp"
#include "seed/oversampling.hpp"

namespace pgkm::cuda {
namespace {

// Greedy k-means++ by one of the two ways that keep all they need on the device; nothing where neither has room.
template <typename T>
std::optional<std::vector<std::int64_t>> positions_of(Data &data, const PgkmProblem &problem, const SeedRows<T> &rows,
                                                      const SeedKey &key)
{
    std::optional<std::vector<std::int64_t>> positions;
    if (data.context.forced.execution != Execution::multi_pass)
        positions = held_positions(data.context, rows, key, problem.k);
    if (!positions)
        positions = greedy_positions(data.context, rows, key, problem.k);
    return positions;
}

// Weighted greedy k-means++ among the candidates of k-means||.
template <typename T>
std::vector<std::int64_t> among_candidates(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params,
                                           const Candidates<T> &candidates)
{
    Context &context = data.context;
    const cudaStream_t stream = context.compute.get();
    const std::vector<std::int64_t> &rows = candidates.rows;
    const std::vector<Int128> &masses = candidates.masses;
    const Claim claim = claim_rows(data, static_cast<std::int64_t>(rows.size()));
    const auto count = static_cast<std::int32_t>(rows.size());
    NearArray<T> values(context.budget, context.host_budget, rows.size() * static_cast<std::size_t>(data.host.d),
                        context.budget.limit / 4);
    if (!candidates.values.empty())
        values.upload(candidates.values.data(), candidates.values.size(), stream);
    else if (data.resident)
        gather_rows(data, problem, rows, values.get());
    else
        values.upload(rows_of<T>(data, problem, rows).data(), rows.size() * static_cast<std::size_t>(data.host.d),
                      stream);
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
    const SeedRows<T> among = {values.get(), device_weights.get(), device_masses.get(), count, data.host.d, 0, nullptr};
    const SeedKey key = {params.seed, params.restart, Stream::candidate_first, Stream::candidate_trial};
    std::optional<std::vector<std::int64_t>> chosen = positions_of(data, problem, among, key);
    if (!chosen) {
        Seeder<T> seeder(context, among, key, problem.k);
        seeder.add_first();
        seeder.extend(problem.k, 1);
        chosen = seeder.chosen();
    }
    std::vector<std::int64_t> result;
    for (const std::int64_t candidate : *chosen)
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
        rows.counts = data.copies.counts.get();
    }
    const SeedKey key = {params.seed, params.restart, Stream::first_centroid, Stream::trial};
    const bool on_host = travel_of(context.forced.execution) == Travel::round_trip && data.resident;
    if (params.init != PGKM_INIT_KMEANS_PARALLEL && data.resident && !on_host) {
        std::optional<std::vector<std::int64_t>> chosen = positions_of(data, problem, rows, key);
        if (chosen) {
            look_up_rows(context, order.get(), *chosen);
            return *chosen;
        }
    }
    std::optional<Seeder<T>> owner(std::in_place, context, rows, key, problem.k);
    Seeder<T> &seeder = *owner;
    if (!data.resident)
        seeder.stream_from(data, problem.first_row);
    if (on_host)
        seeder.draw_on_host();
    seeder.add_first();
    if (params.init != PGKM_INIT_KMEANS_PARALLEL) {
        seeder.extend(problem.k, 1);
        return seeder.chosen();
    }
    Candidates<T> candidates = oversample(data, problem, seeder);
    if (static_cast<std::int64_t>(candidates.rows.size()) > problem.k) {
        owner.reset(); // their memory may be what the candidates' masses need
        order = {};
        if (candidates.masses.empty())
            candidates.masses = candidate_masses<T>(data, problem, candidates.rows);
        return among_candidates<T>(data, problem, params, candidates);
    }
    seeder.set_chosen(candidates.rows);
    seeder.extend(problem.k, static_cast<std::int32_t>(candidates.rows.size()));
    return seeder.chosen();
}

// Turns places among all rows, which entries stand for in their order, into the entries there.
void find_entries(Data &data, std::vector<std::int64_t> &places)
{
    constexpr std::size_t steps_per_poll = 1 << 16;
    Context &context = data.context;
    const Claim claim(context.host_budget, (sizeof(std::uint16_t) + sizeof(std::int64_t)) * data.copies.counts.count());
    const std::vector<std::uint16_t> counts = context.fetch(data.copies.counts);
    std::vector<std::int64_t> ends(counts.size());
    std::int64_t end = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (i % steps_per_poll == 0)
            context.poll();
        ends[i] = end += counts[i];
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (i % steps_per_poll == 0)
            context.poll();
        places[i] = std::upper_bound(ends.begin(), ends.end(), places[i]) - ends.begin();
    }
}

// The rows that k-means|| chooses, by number.
template <typename T>
std::vector<std::int64_t> oversampled_rows(SharedRows<T> &shared, const std::uint32_t *order, const double *weights,
                                           const PgkmProblem &problem, const PgkmSeedParams &params, const SeedKey &key)
{
    Candidates<T> candidates;
    {
        const SeedRows<T> rows = {nullptr, weights, nullptr, shared.n(), shared.table().d, problem.weight_exponent,
                                  nullptr, order};
        Seeder<T> seeder(shared.context(), rows, key, problem.k);
        seeder.share(shared);
        seeder.add_first();
        candidates = oversample(shared.data(), problem, seeder, &shared);
    }
    if (static_cast<std::int64_t>(candidates.rows.size()) <= problem.k)
        throw Error(PGKM_UNSUPPORTED, "few rows that lie apart are seeded by one device");
    return among_candidates(shared.data(), problem, params, candidates);
}

// The values of the chosen rows, for each peer.
template <typename T>
std::vector<T> seed_shared(Data &data, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    SharedRows<T> shared(data, problem, greedy_lent_bytes(problem.n_rows));
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, shared.n()));
    std::vector<std::int64_t> rows;
    DeviceArray<std::uint32_t> order;
    if (params.init != PGKM_INIT_FIRST)
        order = canonical_order(shared);
    if (params.init == PGKM_INIT_FIRST) {
        rows.resize(static_cast<std::size_t>(at_most_n));
        std::iota(rows.begin(), rows.end(), 0);
    } else if (params.init == PGKM_INIT_RANDOM) {
        rows = random_places(shared.n(), at_most_n, params, [&] { data.context.poll(); });
        look_up_rows(data.context, order.get(), rows);
    } else {
        const DeviceArray<double> weights = shared.weights();
        const SeedKey key = {params.seed, params.restart, Stream::first_centroid, Stream::trial};
        if (params.init == PGKM_INIT_KMEANS_PARALLEL) {
            rows = oversampled_rows(shared, order.get(), weights.get(), problem, params, key);
        } else {
            rows = greedy_positions(shared, order.get(), weights.get(), problem, key);
            look_up_rows(data.context, order.get(), rows);
        }
    }
    const std::vector<T> values = shared.values_of(rows);
    shared.link().take_back(); // all have ended their work
    return values;
}

} // namespace

template <typename T>
void seed_problem(Data &data, PgkmProblem &problem, const PgkmSeedParams &params)
{
    const std::int64_t n = data.copies.rows != 0 ? data.copies.rows : all_rows(problem);
    const auto at_most_n = static_cast<std::int32_t>(std::min(std::int64_t{problem.k}, n));
    const Claim claim = claim_rows(data, at_most_n);
    if (params.init < PGKM_INIT_KMEANS_PLUS_PLUS || params.init > PGKM_INIT_FIRST)
        throw Error(PGKM_INVALID, "seed() does not take given centroids");
    if (problem.peers != nullptr) {
        const std::vector<T> values = seed_shared<T>(data, problem, params);
        std::copy(values.begin(), values.end(), static_cast<T *>(problem.centroids));
        problem.k = static_cast<std::int32_t>(values.size() / static_cast<std::size_t>(data.host.d));
        return;
    }
    std::vector<std::int64_t> rows;
    if (params.init == PGKM_INIT_RANDOM) {
        rows = random_places(n, at_most_n, params, [&] { data.context.poll(); });
        if (data.copies.rows != 0)
            find_entries(data, rows);
        else
            look_up_rows(data.context, canonical_order<T>(data, problem.first_row, n).get(), rows);
    } else if (params.init == PGKM_INIT_FIRST) {
        for (std::int64_t i = 0; i < at_most_n; ++i)
            rows.push_back(i);
    } else {
        rows = draw_rows<T>(data, problem, params);
    }
    const std::vector<T> values = rows_of<T>(data, problem, rows);
    std::copy(values.begin(), values.end(), static_cast<T *>(problem.centroids));
    problem.k = static_cast<std::int32_t>(rows.size());
}

template void seed_problem<float>(Data &, PgkmProblem &, const PgkmSeedParams &);
template void seed_problem<double>(Data &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm::cuda
