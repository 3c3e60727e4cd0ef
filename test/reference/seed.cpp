#include "reference/seed.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "numeric/contract.hpp"
#include "numeric/philox.hpp"
#include "numeric/row_key.hpp"
#include "backend/update.hpp"

namespace pgkm {
namespace {

// Rows to choose from: the problem's own in canonical order, or the candidates of k-means||.
template <typename T>
struct Rows {
    std::vector<T> values;            // n x d
    std::vector<double> weights;      // n
    std::vector<std::int64_t> masses; // n: the weights as integers, for the first draw
    std::int32_t d;
    std::vector<Int128> sums = {}; // n: the weights as they enter sums; empty for candidates

    std::int64_t size() const { return static_cast<std::int64_t>(weights.size()); }
    const T *row(std::int64_t i) const { return values.data() + i * d; }
};

// The purposes of the random numbers: rows and candidates must not share them.
struct Streams {
    Stream first;
    Stream trial;
};

// The first row whose running sum passes the draw; the last where all masses are 0.
std::int64_t pick(const std::vector<std::int64_t> &masses, std::uint64_t bits)
{
    UInt128 total = 0;
    for (const std::int64_t mass : masses)
        total += static_cast<std::uint64_t>(mass);
    const UInt128 target = scale_draw(bits, total);
    UInt128 running = 0;
    for (std::size_t i = 0; i < masses.size(); ++i) {
        running += static_cast<std::uint64_t>(masses[i]);
        if (running > target)
            return static_cast<std::int64_t>(i);
    }
    return static_cast<std::int64_t>(masses.size()) - 1; // all are 0
}

template <typename T>
class Seeder {
  public:
    Seeder(Rows<T> rows, const PgkmSeedParams &params, Streams streams)
        : rows_(std::move(rows)), params_(params), streams_(streams),
          nearest_(rows_.weights.size(), std::numeric_limits<double>::infinity())
    {
    }

    void add(std::int64_t row)
    {
        chosen_.push_back(row);
        meet(rows_.row(row));
    }

    // Centroids that are no rows, and go before all that are chosen.
    void keep(const T *values, std::int32_t count)
    {
        kept_ = count;
        for (std::int32_t j = 0; j < count; ++j)
            meet(values + std::int64_t{j} * rows_.d);
    }

    void add_first() { add(pick(rows_.masses, draw(params_.seed, params_.restart, streams_.first, 0, 0))); }

    // The integers of the v_i and their scale; false when every v_i is 0.
    bool weigh(std::vector<std::int64_t> &masses, double &scale) const
    {
        double largest = 0.0;
        for (std::int64_t i = 0; i < rows_.size(); ++i)
            largest = std::max(largest, weighted(i, nearest_[static_cast<std::size_t>(i)]));
        if (largest == 0.0)
            return false;
        scale = power_of_two(square_exponent(largest));
        masses.resize(nearest_.size());
        for (std::int64_t i = 0; i < rows_.size(); ++i)
            masses[static_cast<std::size_t>(i)] =
                quantise_mass(weighted(i, nearest_[static_cast<std::size_t>(i)]), scale);
        return true;
    }

    // Greedy k-means++ until k are chosen or no row lies apart.
    void extend(std::int32_t k)
    {
        std::vector<std::int64_t> masses;
        double scale;
        while (kept_ + static_cast<std::int32_t>(chosen_.size()) < k && weigh(masses, scale)) {
            const std::uint64_t step = static_cast<std::uint64_t>(kept_) + chosen_.size();
            std::int64_t best_row = 0;
            UInt128 best = 0;
            for (int trial = 0; trial < greedy_trials(k); ++trial) {
                const std::uint64_t index = step * 64 + static_cast<std::uint64_t>(trial);
                const std::int64_t row = pick(masses, draw(params_.seed, params_.restart, streams_.trial, 0, index));
                const UInt128 potential = potential_with(row, scale);
                if (trial == 0 || potential < best) {
                    best = potential;
                    best_row = row;
                }
            }
            add(best_row);
        }
    }

    // One round of k-means||: true unless every v_i is 0.
    bool oversample(std::uint32_t round, std::int32_t k)
    {
        std::vector<std::int64_t> masses;
        double scale;
        if (!weigh(masses, scale))
            return false;
        add_drawn(Stream::oversample, round, std::int64_t{oversampling_factor} * k, masses);
        return true;
    }

    // One round of rows by weight: true unless no row lies apart.
    bool add_weighted(std::uint32_t round, std::int32_t k)
    {
        std::vector<std::int64_t> masses;
        for (std::int64_t i = 0; i < rows_.size(); ++i)
            masses.push_back(at(i) == 0.0 ? 0 : std::max<std::int64_t>(1, rows_.masses[static_cast<std::size_t>(i)]));
        if (std::all_of(masses.begin(), masses.end(), [](std::int64_t mass) { return mass == 0; }))
            return false;
        add_drawn(Stream::random_rows, round, k - static_cast<std::int64_t>(chosen_.size()), masses);
        return true;
    }

    const std::vector<std::int64_t> &chosen() const { return chosen_; }
    const Rows<T> &rows() const { return rows_; }

  private:
    void meet(const T *centroid)
    {
        for (std::int64_t i = 0; i < rows_.size(); ++i)
            at(i) = std::min(at(i), exact_distance(rows_.row(i), centroid, rows_.d));
    }

    // Of draws of equal rows the first.
    void add_drawn(Stream stream, std::uint32_t round, std::int64_t draws, const std::vector<std::int64_t> &masses)
    {
        std::vector<std::int64_t> sampled;
        for (std::int64_t i = 0; i < draws; ++i) {
            const std::int64_t row =
                pick(masses, draw(params_.seed, params_.restart, stream, round, static_cast<std::uint64_t>(i)));
            const auto repeats = [&](std::int64_t other) {
                return compare_content(rows_.row(row), rows_.row(other), rows_.d) == 0;
            };
            if (std::none_of(sampled.begin(), sampled.end(), repeats))
                sampled.push_back(row);
        }
        for (const std::int64_t row : sampled)
            add(row);
    }

    double &at(std::int64_t i) { return nearest_[static_cast<std::size_t>(i)]; }
    double weighted(std::int64_t i, double distance) const
    {
        return rows_.weights[static_cast<std::size_t>(i)] * distance;
    }

    UInt128 potential_with(std::int64_t row, double scale) const
    {
        UInt128 sum = 0;
        for (std::int64_t i = 0; i < rows_.size(); ++i) {
            const double distance =
                std::min(nearest_[static_cast<std::size_t>(i)], exact_distance(rows_.row(i), rows_.row(row), rows_.d));
            sum += static_cast<std::uint64_t>(quantise_mass(weighted(i, distance), scale));
        }
        return sum;
    }

    Rows<T> rows_;
    PgkmSeedParams params_;
    Streams streams_;
    std::vector<double> nearest_; // m_i
    std::int32_t kept_ = 0;
    std::vector<std::int64_t> chosen_;
};

// The problem's rows, -0 turned into +0, in canonical order or as they come.
template <typename T>
Rows<T> problem_rows(const PgkmPoints &points, const PgkmProblem &problem, bool canonical)
{
    const std::int32_t d = points.d;
    const T *values = static_cast<const T *>(points.values) + problem.first_row * d;
    std::vector<std::int64_t> order(static_cast<std::size_t>(problem.n_rows));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [&](std::int64_t a, std::int64_t b) {
        const std::uint64_t key_a = row_key(values + a * d, d), key_b = row_key(values + b * d, d);
        return key_a != key_b ? key_a < key_b : compare_content(values + a * d, values + b * d, d) < 0;
    };
    if (canonical)
        std::sort(order.begin(), order.end(), before);
    Rows<T> rows = {{}, {}, {}, d};
    for (const std::int64_t i : order) {
        std::transform(values + i * d, values + (i + 1) * d, std::back_inserter(rows.values), without_minus_zero<T>);
        const double weight = points.weights == nullptr ? 1.0 : points.weights[problem.first_row + i];
        rows.weights.push_back(weight);
        rows.masses.push_back(points.weights == nullptr ? 1 : quantise(weight, power_of_two(problem.weight_exponent)));
        rows.sums.push_back(row_mass(points, problem, problem.first_row + i));
    }
    return rows;
}

template <typename T>
std::vector<std::int64_t> kmeans_parallel(Seeder<T> &seeder, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    seeder.add_first();
    for (std::uint32_t round = 0; round < oversampling_rounds; ++round)
        if (!seeder.oversample(round, problem.k))
            break;
    if (static_cast<std::int64_t>(seeder.chosen().size()) <= problem.k) {
        seeder.extend(problem.k);
        return seeder.chosen();
    }
    // Candidates weighted by the mass nearest to them, then weighted k-means++ among them.
    const Rows<T> &rows = seeder.rows();
    const std::vector<std::int64_t> &chosen = seeder.chosen();
    std::vector<T> values;
    for (const std::int64_t row : chosen)
        values.insert(values.end(), rows.row(row), rows.row(row) + rows.d);
    Rows<T> candidates = {std::move(values), {}, {}, rows.d};
    std::vector<Int128> masses(chosen.size(), 0);
    Int128 total = 0;
    for (std::int64_t i = 0; i < rows.size(); ++i) {
        std::size_t label = 0;
        double best = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < chosen.size(); ++c) {
            const double distance = exact_distance(rows.row(i), candidates.row(static_cast<std::int64_t>(c)), rows.d);
            if (distance < best) {
                best = distance;
                label = c;
            }
        }
        const Int128 mass = rows.sums[static_cast<std::size_t>(i)];
        masses[label] += mass;
        total += mass;
    }
    const int shift = mass_shift(static_cast<UInt128>(total));
    for (const Int128 mass : masses) {
        candidates.weights.push_back(candidate_weight(mass));
        candidates.masses.push_back(static_cast<std::int64_t>(mass >> shift));
    }
    Seeder<T> among(std::move(candidates), params, {Stream::candidate_first, Stream::candidate_trial});
    among.add_first();
    among.extend(problem.k);
    std::vector<std::int64_t> result;
    for (const std::int64_t candidate : among.chosen())
        result.push_back(chosen[static_cast<std::size_t>(candidate)]);
    return result;
}

// Floyd's sampling of k out of n without replacement, in the order of insertion.
std::vector<std::int64_t> random_rows(std::int64_t n, std::int32_t k, const PgkmSeedParams &params)
{
    std::vector<std::int64_t> chosen;
    for (std::int64_t j = n - k; j < n; ++j) {
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto row = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        const bool taken = std::find(chosen.begin(), chosen.end(), row) != chosen.end();
        chosen.push_back(taken ? j : row);
    }
    return chosen;
}

template <typename T>
std::vector<std::int64_t> weighted_rows(Seeder<T> seeder, std::int32_t k)
{
    for (std::uint32_t round = 0; static_cast<std::int32_t>(seeder.chosen().size()) < k; ++round)
        if (!seeder.add_weighted(round, k))
            break;
    return seeder.chosen();
}

template <typename T>
std::vector<std::int64_t> choose(const Rows<T> &rows, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    const auto at_most_n = static_cast<std::int32_t>(std::min<std::int64_t>(problem.k, problem.n_rows));
    if (params.init == PGKM_INIT_RANDOM) {
        const auto [least, most] = std::minmax_element(rows.masses.begin(), rows.masses.end());
        return *most <= std::max<std::int64_t>(1, *least) ? random_rows(problem.n_rows, at_most_n, params)
                                                          : weighted_rows(Seeder<T>(rows, params, {}), problem.k);
    }
    if (params.init == PGKM_INIT_FIRST) {
        std::vector<std::int64_t> first(static_cast<std::size_t>(at_most_n));
        std::iota(first.begin(), first.end(), 0);
        return first;
    }
    Seeder<T> seeder(rows, params, {Stream::first_centroid, Stream::trial});
    if (params.init == PGKM_INIT_KMEANS_PARALLEL)
        return kmeans_parallel(seeder, problem, params);
    if (params.kept > 0)
        seeder.keep(static_cast<const T *>(problem.centroids), params.kept);
    else
        seeder.add_first();
    seeder.extend(problem.k);
    return seeder.chosen();
}

} // namespace

template <typename T>
void reference_seed_problem(const PgkmPoints &points, PgkmProblem &problem, const PgkmSeedParams &params)
{
    const Rows<T> rows = problem_rows<T>(points, problem, params.init != PGKM_INIT_FIRST);
    const std::vector<std::int64_t> chosen = choose(rows, problem, params);
    T *out = static_cast<T *>(problem.centroids) + std::int64_t{params.kept} * points.d;
    for (const std::int64_t row : chosen)
        out = std::copy(rows.row(row), rows.row(row) + rows.d, out);
    problem.k = params.kept + static_cast<std::int32_t>(chosen.size());
}

template void reference_seed_problem<float>(const PgkmPoints &, PgkmProblem &, const PgkmSeedParams &);
template void reference_seed_problem<double>(const PgkmPoints &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm
