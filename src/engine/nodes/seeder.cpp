// seeder.cpp - greedy k-means++ and k-means|| over several servers.
#include "engine/nodes/seeder.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "backend/host.hpp"
#include "backend/random_places.hpp"
#include "backend/update.hpp"
#include "engine/nodes/draws.hpp"
#include "numeric/contract.hpp"
#include "numeric/philox.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::nodes {
namespace {

// Of k-means++: so many rows a bucket, and no more buckets than this: each server tells of those that have changed.
constexpr double rows_per_bucket = 32.0;
constexpr double most_step_bits = 17.0;

// How many upper bits of a key tell buckets of n rows. Few draws at a time, as of k-means++, read whole buckets. Many
// read keys first, and there are as many buckets as keys then.
std::int32_t bits_of(std::int64_t n, std::int64_t draws, bool by_steps)
{
    const auto rows = static_cast<double>(n);
    const double bits = by_steps ? std::min(most_step_bits, std::log2(rows / rows_per_bucket))
                                 : std::log2(rows * static_cast<double>(draws)) / 2.0;
    return static_cast<std::int32_t>(std::clamp(bits, 0.0, double{cpu::most_bucket_bits}));
}

// The sums over all servers of masses or gains, so many.
template <Operation operation, typename T, typename... Values>
std::vector<Int128> sum_of(NodeSet &nodes, std::size_t count, Values &&...values)
{
    std::vector<Int128> sums(count, 0);
    nodes.ask<operation, T>(
        [&](const std::vector<PgkmInt128> &own) {
            require_shape(own.size() == count);
            for (std::size_t i = 0; i < count; ++i) {
                require_shape(own[i].hi >= 0);
                add_told(sums[i], own[i]);
            }
        },
        std::forward<Values>(values)...);
    return sums;
}

template <typename Row>
Row side_by_side(const std::vector<Row> &rows)
{
    Row values;
    for (const Row &row : rows)
        values.insert(values.end(), row.begin(), row.end());
    return values;
}

// D^2 sampling over the rows of all servers.
template <typename T>
class Sampler {
  public:
    using Content = std::vector<T>;

    // k: how many rows are to be chosen.
    Sampler(NodeSet &nodes, const Masses &first, const PgkmSeedParams &params, std::int32_t k)
        : nodes_(nodes),
          draws_(nodes, nodes.points().d,
                 bits_of(nodes.n(), params.init == PGKM_INIT_RANDOM ? k : std::int64_t{oversampling_factor} * k,
                         params.init == PGKM_INIT_KMEANS_PLUS_PLUS)),
          first_(first), params_(params)
    {
    }

    void choose_first()
    {
        draws_.weigh(first_);
        add(draws_.find({scale_draw(bits(Stream::first_centroid, 0, 0), draws_.total())}));
    }

    // Up to k rows: by weight where weights differ, else any.
    std::vector<Content> random_rows(std::int64_t k)
    {
        const Masses apart = {cpu::Mass::apart, first_.exponent};
        if (nodes_.points().weights != nullptr)
            draws_.weigh(apart);
        if (nodes_.points().weights != nullptr && draws_.masses_differ()) {
            for (std::uint32_t round = 0; std::ssize(chosen_) < k && draws_.total() != 0; ++round) {
                add(draw_contents(Stream::random_rows, round, k - std::ssize(chosen_)));
                draws_.weigh(apart);
            }
            return chosen_;
        }
        draws_.weigh({cpu::Mass::one, 0});
        const std::vector<std::int64_t> places =
            random_places(nodes_.n(), std::min(k, nodes_.n()), params_, [&] { poll(nodes_.open().host); });
        return draws_.find({places.begin(), places.end()});
    }

    // Centroids that go before all chosen rows.
    void begin_with(const T *centroids, std::int32_t count)
    {
        std::vector<Content> rows;
        for (const T *row = centroids; row != centroids + std::int64_t{count} * nodes_.points().d;
             row += nodes_.points().d)
            rows.emplace_back(row, row + nodes_.points().d);
        add(rows);
    }

    // Greedy k-means++ until k rows are chosen or none lies apart.
    void extend(std::int32_t k)
    {
        const int trials = greedy_trials(k);
        while (static_cast<std::int32_t>(chosen_.size()) < k && largest_ != 0.0) {
            draws_.weigh({cpu::Mass::square, square_exponent(largest_)});
            const std::uint64_t step = chosen_.size();
            std::vector<UInt128> targets;
            for (int trial = 0; trial < trials; ++trial)
                targets.push_back(
                    scale_draw(bits(Stream::trial, 0, step * 64 + static_cast<std::uint64_t>(trial)), draws_.total()));
            const std::vector<Content> rows = draws_.find(targets);
            choose(rows, best_of(rows));
        }
    }

    // One round of k-means||; false when no row lies apart.
    bool oversample(std::uint32_t round, std::int32_t k)
    {
        if (largest_ == 0.0)
            return false;
        draws_.weigh({cpu::Mass::square, square_exponent(largest_)});
        add(draw_contents(Stream::oversample, round, std::int64_t{oversampling_factor} * k));
        return true;
    }

    const std::vector<Content> &chosen() const { return chosen_; }

  private:
    std::uint64_t bits(Stream stream, std::uint32_t round, std::uint64_t index) const
    {
        return draw(params_.seed, params_.restart, stream, round, index);
    }

    // So many draws, of which those of a content that was drawn before do not count.
    std::vector<Content> draw_contents(Stream stream, std::uint32_t round, std::int64_t draws)
    {
        std::vector<UInt128> targets;
        for (std::int64_t i = 0; i < draws; ++i)
            targets.push_back(scale_draw(bits(stream, round, static_cast<std::uint64_t>(i)), draws_.total()));
        std::set<Content, ContentOrder> seen;
        std::vector<Content> rows;
        for (const Content &row : draws_.find(targets))
            if (seen.insert(row).second)
                rows.push_back(row);
        return rows;
    }

    void take_largest(double own)
    {
        require_shape(own >= 0.0 && std::isfinite(own));
        largest_ = std::max(largest_, own);
    }

    // These are chosen now.
    void keep(const std::vector<Content> &rows)
    {
        chosen_.insert(chosen_.end(), rows.begin(), rows.end());
        if (nodes_.chunks() != nullptr)
            nodes_.chunks()->set_chosen(
                [all = side_by_side(chosen_)](Share &share) { share.seeding<T>().add(0, all); });
        nodes_.report("seeding", static_cast<std::int32_t>(chosen_.size()), 0.0);
    }

    void add(const std::vector<Content> &rows)
    {
        largest_ = 0.0;
        const auto before = static_cast<std::int32_t>(chosen_.size());
        nodes_.ask<Operation::seed_add, T>([&](double own) { take_largest(own); }, before, side_by_side(rows));
        draws_.forget();
        keep(rows);
    }

    // The trial that leaves the smallest potential, the first on a tie. Mostly bounds tell.
    std::int32_t best_of(const std::vector<Content> &rows)
    {
        using Bounds = std::vector<cpu::GainBounds>;
        Bounds bounds(rows.size(), {0.0, 0.0});
        const auto add_up = [&](const Bounds &own) {
            require_shape(own.size() == rows.size());
            for (std::size_t i = 0; i < own.size(); ++i) {
                require_shape(own[i].least <= own[i].most && std::isfinite(own[i].least) && std::isfinite(own[i].most));
                bounds[i].least += own[i].least;
                bounds[i].most += own[i].most;
            }
        };
        nodes_.ask<Operation::seed_gains, T>(add_up, side_by_side(rows));
        const std::vector<int> contested = cpu::contested_trials(bounds);
        require_shape(!contested.empty()); // not a number
        if (contested.size() == 1)
            return contested[0];
        const std::vector<Int128> gains = sum_of<Operation::seed_exact, T>(nodes_, contested.size(), contested);
        return contested[static_cast<std::size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin())];
    }

    // Takes one of the trials that best_of() was asked about.
    void choose(const std::vector<Content> &trials, std::int32_t best)
    {
        largest_ = 0.0;
        const auto take = [&](const cpu::Changes &own) {
            take_largest(own.largest);
            draws_.apply(own, -1);
        };
        nodes_.ask<Operation::seed_choose, T>(take, best);
        draws_.prepare();
        keep({trials[static_cast<std::size_t>(best)]});
    }

    NodeSet &nodes_;
    Draws<T> draws_;
    Masses first_;
    PgkmSeedParams params_;
    std::vector<Content> chosen_;
    double largest_ = 0.0; // weight times squared distance to the nearest chosen row
};

// k rows among the candidates of k-means||, by the CPU's sampler here.
template <typename T>
std::vector<std::vector<T>> choose_among(NodeSet &nodes, const PgkmProblem &problem,
                                         const std::vector<std::vector<T>> &sampled, const PgkmSeedParams &params)
{
    const std::vector<Int128> totals = sum_of<Operation::seed_masses, T>(
        nodes, sampled.size(), static_cast<std::int32_t>(sampled.size()), problem.weight_exponent);
    const std::vector<T> values = side_by_side(sampled);
    const std::shared_ptr<PgkmContext> context = nodes.cpu();
    const cpu::BlockRunner runner(*cpu::self(context.get()), true);
    std::vector<std::vector<T>> chosen;
    for (const std::int64_t row : cpu::choose_among(runner, values.data(), nodes.points().d, totals, problem.k, params))
        chosen.push_back(sampled[static_cast<std::size_t>(row)]);
    return chosen;
}

template <typename T>
std::vector<std::vector<T>> choose(NodeSet &nodes, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    const bool weighted = nodes.points().weights != nullptr;
    const Masses first = {weighted ? cpu::Mass::weight : cpu::Mass::one, problem.weight_exponent};
    Sampler<T> sampler(nodes, first, params, problem.k);
    if (params.init == PGKM_INIT_RANDOM)
        return sampler.random_rows(problem.k);
    if (params.kept > 0)
        sampler.begin_with(static_cast<const T *>(problem.centroids), params.kept);
    else
        sampler.choose_first();
    if (params.init == PGKM_INIT_KMEANS_PARALLEL) {
        for (std::uint32_t round = 0; round < oversampling_rounds && sampler.oversample(round, problem.k); ++round) {}
        if (static_cast<std::int64_t>(sampler.chosen().size()) > problem.k)
            return choose_among(nodes, problem, sampler.chosen(), params);
    }
    sampler.extend(problem.k);
    return sampler.chosen();
}

} // namespace

double bytes_of_draws(std::int64_t n, std::int64_t k, std::int32_t d)
{
    // Buckets with their sums, as many keys or rows to choose from, and chosen rows; the first sums of k-means++.
    const auto clusters = static_cast<double>(std::min(n, k));
    const double first = 40.0 * static_cast<double>(std::min<std::int64_t>(n / 32, 1 << 17));
    return first + 200.0 * std::sqrt(static_cast<double>(n) * clusters * oversampling_factor) + 300.0 * clusters * d;
}

template <typename T>
void seed(NodeSet &nodes, PgkmProblem &problem, const PgkmSeedParams &params)
{
    if (params.init == PGKM_INIT_FIRST)
        throw Error(PGKM_UNSUPPORTED, "rows that are not all here have no first ones");
    const std::vector<std::vector<T>> chosen = choose<T>(nodes, problem, params);
    T *out = static_cast<T *>(problem.centroids) + std::int64_t{params.kept} * nodes.points().d;
    for (auto row = chosen.begin() + params.kept; row != chosen.end(); ++row)
        out = std::transform(row->begin(), row->end(), out, without_minus_zero<T>);
    problem.k = static_cast<std::int32_t>(chosen.size());
}

template void seed<float>(NodeSet &, PgkmProblem &, const PgkmSeedParams &);
template void seed<double>(NodeSet &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm::nodes
