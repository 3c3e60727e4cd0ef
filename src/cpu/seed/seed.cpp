// seed.cpp - seed(): random rows, the first rows, k-means++ and k-means||.
#include "cpu/operations.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <vector>

#include "cpu/seed/sampler.hpp"
#include "numeric/contract.hpp"
#include "backend/update.hpp"

namespace pgkm::cpu {
namespace {

using RowList = std::vector<std::int64_t>;

// Problems of at most this many values are spread over the threads whole.
constexpr std::int64_t small_problem_values = 1 << 19;

// Cheap steps between two looks at the cancel flag.
constexpr std::int64_t steps_per_poll = 1 << 14;
// What one element of an unordered_set costs: a node with its link, a bucket, the allocator.
constexpr std::uint64_t bytes_per_set_element = 64;

RowList first_rows(std::int32_t k)
{
    RowList rows(k);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

// Floyd's sampling of k out of n without replacement, in the order of insertion.
RowList random_rows(const BlockRunner &runner, std::int64_t n, std::int32_t k, const PgkmSeedParams &params)
{
    const Reservation reservation(runner.budget(), static_cast<std::uint64_t>(k) * bytes_per_set_element);
    RowList chosen;
    std::unordered_set<std::int64_t> taken;
    for (std::int64_t j = n - k; j < n; ++j) {
        if (j % steps_per_poll == 0)
            runner.poll();
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto row = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        chosen.push_back(taken.insert(row).second ? row : j);
        taken.insert(chosen.back());
    }
    return chosen;
}

// Weighted k-means++ among the sampled candidates, each weighing what lies nearest to it.
template <typename T>
RowList choose_among(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                     const SeedRows<T> &rows, const SeedSampler<T> &sampled, const PgkmSeedParams &params)
{
    const RowList &chosen = sampled.chosen();
    Buffer<T> values(runner.budget(), chosen.size() * rows.d);
    T *out = values.data();
    for (const std::int64_t row : chosen)
        out = std::copy(rows.row(row), rows.row(row) + rows.d, out);
    std::vector<Int128> totals(chosen.size(), 0);
    Int128 total = 0;
    for (std::int64_t i = 0; i < rows.n; ++i) {
        if (i % steps_per_poll == 0)
            runner.poll();
        const Int128 mass = row_mass(points, problem, problem.first_row + i);
        totals[sampled.labels()[i]] += mass;
        total += mass;
    }
    const int shift = mass_shift(static_cast<UInt128>(total));
    std::vector<double> weights;
    std::vector<std::int64_t> masses;
    for (const Int128 mass : totals) {
        weights.push_back(candidate_weight(mass));
        masses.push_back(static_cast<std::int64_t>(mass >> shift));
    }
    const SeedRows<T> candidates = {values.data(), weights.data(), static_cast<std::int64_t>(chosen.size()), rows.d};
    SeedSampler<T> among(runner, candidates, {masses.data(), 1.0}, params,
                         {Stream::candidate_first, Stream::candidate_trial});
    among.choose_first();
    among.extend(problem.k);
    RowList result;
    for (const std::int64_t candidate : among.chosen())
        result.push_back(chosen[candidate]);
    return result;
}

template <typename T>
RowList sampled_rows(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                     const SeedRows<T> &rows, const PgkmSeedParams &params)
{
    const bool parallel = params.init == PGKM_INIT_KMEANS_PARALLEL;
    const FirstMasses masses = {nullptr, rows.weights == nullptr ? 1.0 : power_of_two(problem.weight_exponent)};
    SeedSampler<T> sampler(runner, rows, masses, params, {Stream::first_centroid, Stream::trial});
    sampler.choose_first();
    if (parallel) {
        for (std::uint32_t round = 0; round < oversampling_rounds; ++round)
            if (!sampler.oversample(round, problem.k))
                break;
        if (static_cast<std::int64_t>(sampler.chosen().size()) > problem.k)
            return choose_among(runner, points, problem, rows, sampler, params);
    }
    sampler.extend(problem.k);
    return sampler.chosen();
}

template <typename T>
void seed_problem(const BlockRunner &runner, const PgkmPoints &points, PgkmProblem &problem,
                  const PgkmSeedParams &params)
{
    const SeedRows<T> rows = {static_cast<const T *>(points.values) + problem.first_row * points.d,
                              points.weights == nullptr ? nullptr : points.weights + problem.first_row, problem.n_rows,
                              points.d};
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, problem.n_rows));
    const RowList chosen = params.init == PGKM_INIT_RANDOM  ? random_rows(runner, problem.n_rows, at_most_n, params)
                           : params.init == PGKM_INIT_FIRST ? first_rows(at_most_n)
                                                            : sampled_rows(runner, points, problem, rows, params);
    T *out = static_cast<T *>(problem.centroids);
    for (const std::int64_t row : chosen) {
        runner.poll();
        out = std::copy(rows.row(row), rows.row(row) + rows.d, out);
    }
    problem.k = static_cast<std::int32_t>(chosen.size());
}

void seed_one(const BlockRunner &runner, const PgkmPoints &points, PgkmProblem &problem, const PgkmSeedParams &params)
{
    if (points.element == PGKM_FLOAT32)
        seed_problem<float>(runner, points, problem, params);
    else
        seed_problem<double>(runner, points, problem, params);
}

} // namespace

void seed(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params)
{
    const PgkmPoints &points = data.points;
    const BlockRunner whole(data.context, false), blocked(data.context, true);
    std::vector<PgkmProblem *> small;
    for (std::int64_t p = 0; p < n_problems; ++p) {
        if (n_problems > 1 && problems[p].n_rows * points.d <= small_problem_values)
            small.push_back(problems + p);
        else
            seed_one(blocked, points, problems[p], *params);
    }
    data.context.pool.run(static_cast<std::int64_t>(small.size()), [&](std::int64_t p, int) {
        data.context.poll();
        seed_one(whole, points, *small[p], *params);
    });
}

} // namespace pgkm::cpu
