// seed.cpp - seed(): random rows, the first rows, k-means++ and k-means||; of one feature the optimum. Or k-means++
// goes on from centroids that stay.
#include "cpu/operations.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/seed/row_order.hpp"
#include "cpu/for_problems.hpp"
#include "cpu/seed/optimal.hpp"
#include "cpu/seed/sampler.hpp"
#include "numeric/bit_rows.hpp"
#include "numeric/contract.hpp"
#include "numeric/row_key.hpp"
#include "backend/random_places.hpp"
#include "backend/update.hpp"

namespace pgkm::cpu {
namespace {

using RowList = std::vector<std::int64_t>;

// Problems of at most this many values are spread over the threads whole.
constexpr std::int64_t small_problem_values = 1 << 19;
constexpr std::size_t rows_per_poll = 1 << 14;

RowList first_rows(std::int32_t k)
{
    RowList rows(k);
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
}

template <typename T>
Buffer<T> values_of(Budget &budget, const SeedRows<T> &rows, const RowList &list)
{
    Buffer<T> values(budget, list.size() * rows.d);
    T *out = values.data();
    for (const std::int64_t row : list)
        out = std::copy(rows.row(row), rows.row(row) + rows.d, out);
    return values;
}

// Brings nearest() and labels() of the sampler to `count` centroids that are about to be added: one assignment to them.
template <typename T>
void meet(const Rows<T> &rows, SeedSampler<T> &sampler, const T *values, std::size_t count)
{
    Rows<T> round = rows;
    round.k = static_cast<std::int32_t>(count);
    Budget &budget = rows.context.budget;
    const auto first_label = static_cast<std::int32_t>(sampler.count());
    std::unique_ptr<Assigner<T>> assigner;
    assign_with<T>(assigner, round, Purpose::distances, [&](Assigner<T> &made) {
        const int block = made.rows_at_once();
        std::vector<Buffer<std::int32_t>> labels;
        std::vector<Buffer<double>> squares;
        for (int worker = 0; worker < rows.pool.size(); ++worker) {
            labels.emplace_back(budget, block);
            squares.emplace_back(budget, block);
        }
        made.begin(values);
        for_blocks(round, block, [&](int worker, std::int64_t first, int count) {
            std::int32_t *label = labels[worker].data();
            double *square = squares[worker].data();
            std::fill_n(label, count, -1);
            made.assign(worker, first, count, label, square);
            for (int i = 0; i < count; ++i)
                if (first_label == 0 || square[i] < sampler.nearest()[first + i]) {
                    sampler.nearest()[first + i] = square[i];
                    sampler.labels()[first + i] = first_label + label[i];
                }
        });
    });
}

template <typename T>
void add(const Rows<T> &all, const SeedRows<T> &rows, SeedSampler<T> &sampler, const RowList &drawn)
{
    meet(all, sampler, values_of(all.context.budget, rows, drawn).data(), drawn.size());
    sampler.add(drawn);
}

// k rows among the sampled candidates.
template <typename T>
RowList choose_among_sampled(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                             const SeedRows<T> &rows, SeedSampler<T> &sampled, const PgkmSeedParams &params)
{
    const RowList &chosen = sampled.chosen();
    const Buffer<T> values = values_of(runner.budget(), rows, chosen);
    const std::vector<Int128> totals =
        masses_by_label(runner, points, problem, sampled.labels(), chosen.size(), rows.counts);
    RowList result;
    for (const std::int64_t candidate : choose_among(runner, values.data(), rows.d, totals, problem.k, params))
        result.push_back(chosen[candidate]);
    return result;
}

template <typename T>
RowList sampled_rows(const BlockRunner &runner, const Rows<T> &all, const PgkmPoints &points,
                     const PgkmProblem &problem, const SeedRows<T> &rows, const RowNumber *order,
                     const PgkmSeedParams &params)
{
    const FirstMasses masses = {nullptr, rows.weights == nullptr ? 1.0 : power_of_two(problem.weight_exponent)};
    SeedSampler<T> sampler(runner, rows, order, masses, params, {Stream::first_centroid, Stream::trial});
    if constexpr (!std::is_same_v<T, BitWord>)
        if (params.kept > 0) {
            const T *const kept = static_cast<const T *>(problem.centroids);
            meet(all, sampler, kept, params.kept);
            sampler.keep(kept, params.kept);
        }
    if (params.kept == 0)
        sampler.choose_first();
    if constexpr (!std::is_same_v<T, BitWord>)
        if (params.init == PGKM_INIT_KMEANS_PARALLEL) {
            for (std::uint32_t round = 0; round < oversampling_rounds; ++round) {
                const RowList drawn = sampler.draw_round(round, problem.k);
                if (drawn.empty())
                    break;
                add(all, rows, sampler, drawn);
            }
            if (static_cast<std::int64_t>(sampler.chosen().size()) > problem.k)
                return choose_among_sampled(runner, points, problem, rows, sampler, params);
        }
    sampler.extend(problem.k);
    return sampler.chosen();
}

// Rows equal to a drawn one are at distance 0 then, and no other distance is needed. Equal rows are neighbours in
// canonical order.
void add_bits(const BlockRunner &runner, const SeedRows<BitWord> &rows, const RowNumber *order,
              SeedSampler<BitWord> &sampler, const RowList &drawn)
{
    double *const nearest = sampler.nearest();
    if (sampler.chosen().empty())
        std::fill_n(nearest, rows.n, 1.0);
    for (const std::int64_t row : drawn)
        nearest[row] = 0.0;
    for (std::int64_t first = 0, end; first < rows.n; first = end) {
        bool is_drawn = false;
        for (end = first; end < rows.n && compare_content(rows.row(order[first]), rows.row(order[end]), rows.d) == 0;
             ++end) {
            if (end % static_cast<std::int64_t>(rows_per_poll) == 0)
                runner.poll();
            is_drawn = is_drawn || nearest[order[end]] == 0.0;
        }
        for (std::int64_t i = first; is_drawn && i < end; ++i)
            nearest[order[i]] = 0.0;
    }
    sampler.add(drawn);
}

// Rows of weights that differ.
template <typename T>
RowList weighted_rows(const BlockRunner &runner, const Rows<T> &all, const SeedRows<T> &rows, const RowNumber *order,
                      double weight_scale, std::int32_t k, const PgkmSeedParams &params)
{
    SeedSampler<T> sampler(runner, rows, order, {nullptr, weight_scale}, params, {});
    for (std::uint32_t round = 0; std::ssize(sampler.chosen()) < k; ++round) {
        const RowList drawn = sampler.draw_by_weight(round, k - std::ssize(sampler.chosen()));
        if (drawn.empty())
            break;
        if constexpr (std::is_same_v<T, BitWord>)
            add_bits(runner, rows, order, sampler, drawn);
        else
            add(all, rows, sampler, drawn);
    }
    return sampler.chosen();
}

// Of all copies, which follow one another in canonical order.
template <typename T>
RowList random_rows(const BlockRunner &runner, const Rows<T> &all, const SeedRows<T> &rows,
                    const Buffer<RowNumber> &order, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    const double scale = power_of_two(problem.weight_exponent);
    const auto differs = [&](double weight) { return drawn_mass(weight, scale) != drawn_mass(*rows.weights, scale); };
    if (rows.weights != nullptr && std::any_of(rows.weights, rows.weights + rows.n, differs))
        return weighted_rows(runner, all, rows, order.data(), scale, problem.k, params);
    Buffer<std::int64_t> ends(runner.budget(), rows.counts == nullptr ? 0 : rows.n); // places, by row in this order
    std::int64_t n = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (i % rows_per_poll == 0)
            runner.poll();
        ends[i] = n += static_cast<std::int64_t>(rows.copies(order[i]));
    }
    const std::int64_t places = rows.counts == nullptr ? rows.n : n, count = std::min<std::int64_t>(problem.k, places);
    const Reservation reservation(runner.budget(), static_cast<std::uint64_t>(count) * bytes_per_random_place);
    RowList chosen = random_places(places, count, params, [&] { runner.poll(); });
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i % rows_per_poll == 0)
            runner.poll();
        const std::int64_t place = chosen[i];
        chosen[i] =
            order[rows.counts == nullptr ? place : std::upper_bound(ends.begin(), ends.end(), place) - ends.begin()];
    }
    return chosen;
}

template <typename T>
RowList choose(const BlockRunner &runner, const Rows<T> &all, const PgkmPoints &points, const PgkmProblem &problem,
               const SeedRows<T> &rows, const Buffer<RowNumber> &order, const PgkmSeedParams &params)
{
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, problem.n_rows));
    if (params.init == PGKM_INIT_FIRST)
        return first_rows(at_most_n);
    if (params.init != PGKM_INIT_RANDOM)
        return sampled_rows(runner, all, points, problem, rows, order.data(), params);
    return random_rows(runner, all, rows, order, problem, params);
}

template <typename T>
void seed_problem(const Data &data, const BlockRunner &runner, ThreadPool &pool, PgkmProblem &problem,
                  Buffer<RowNumber> &order, const PgkmSeedParams &params)
{
    const PgkmPoints &points = data.points;
    constexpr bool are_bits = std::is_same_v<T, BitWord>;
    const auto width = are_bits ? static_cast<std::int32_t>(bit_words(points.d)) : points.d;
    const SeedRows<T> rows = {static_cast<const T *>(points.values) + problem.first_row * width,
                              points.weights == nullptr ? nullptr : points.weights + problem.first_row,
                              problem.n_rows,
                              width,
                              &data,
                              data.counts == nullptr ? nullptr : data.counts + problem.first_row};
    if (order.size() == 0 && params.init != PGKM_INIT_FIRST)
        order = canonical_order(runner, rows);
    if constexpr (!are_bits)
        if (params.init == PGKM_INIT_OPTIMAL)
            return seed_optimum(runner, points, problem, rows, order);
    if (are_bits && (params.init == PGKM_INIT_OPTIMAL || params.init == PGKM_INIT_KMEANS_PARALLEL || params.kept > 0))
        throw Error(PGKM_UNSUPPORTED, "rows of bits are not seeded in this way");
    const RowList chosen = choose(runner, Rows<T>(data, pool, problem), points, problem, rows, order, params);
    auto *out =
        static_cast<std::conditional_t<are_bits, float, T> *>(problem.centroids) + std::int64_t{params.kept} * points.d;
    for (const std::int64_t row : chosen) {
        runner.poll();
        if constexpr (are_bits)
            values_of_bits(rows.row(row), points.d, out);
        else
            std::transform(rows.row(row), rows.row(row) + rows.d, out, without_minus_zero<T>);
        out += points.d;
    }
    problem.k = params.kept + static_cast<std::int32_t>(chosen.size());
}

} // namespace

void seed(Data &data, PgkmProblem *problems, std::int64_t n_problems, const PgkmSeedParams *params)
{
    if (std::any_of(problems, problems + n_problems, [](const PgkmProblem &one) { return one.peers != nullptr; }))
        throw Error(PGKM_UNSUPPORTED, "a CPU seeds rows that are all in one context");
    const BlockRunner whole(data.context, false), blocked(data.context, true);
    const auto seed_one = [&](const BlockRunner &runner, ThreadPool &pool, PgkmProblem &problem,
                              Buffer<RowNumber> &order) {
        if (data.points.element == PGKM_BIT)
            return seed_problem<BitWord>(data, runner, pool, problem, order, *params);
        with_element(data.points, [&](auto element) {
            seed_problem<decltype(element)>(data, runner, pool, problem, order, *params);
        });
    };
    std::vector<std::pair<PgkmProblem *, Buffer<RowNumber> *>> small;
    for (std::int64_t p = 0; p < n_problems; ++p) {
        Buffer<RowNumber> &order = data.row_orders[{problems[p].first_row, problems[p].n_rows}];
        if (n_problems > 1 && problems[p].n_rows * data.points.d <= small_problem_values)
            small.emplace_back(problems + p, &order);
        else
            seed_one(blocked, data.context.pool, problems[p], order);
    }
    side_by_side(data.context, static_cast<std::int64_t>(small.size()), [&](std::int64_t p) {
        ThreadPool alone(1);
        seed_one(whole, alone, *small[p].first, *small[p].second);
    });
}

} // namespace pgkm::cpu
