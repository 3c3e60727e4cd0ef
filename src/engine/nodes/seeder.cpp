// seeder.cpp - draws over several servers, greedy k-means++ and k-means||.
#include "engine/nodes/seeder.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "backend/update.hpp"
#include "cpu/cpu_backend.hpp"
#include "engine/nodes/part_seed.hpp"
#include "numeric/contract.hpp"
#include "numeric/philox.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::nodes {
namespace {

// The purposes of the random numbers: rows and candidates must not share them.
struct Streams {
    Stream first;
    Stream trial;
};

// The integers by which rows are drawn.
struct Masses {
    Mass kind;
    std::int32_t exponent;
};

UInt128 join_unsigned(PgkmInt128 value)
{
    return static_cast<UInt128>(join(value));
}

template <typename T>
class Draws {
  public:
    using Content = std::vector<T>;

    Draws(NodeSet &nodes, std::int32_t d) : nodes_(nodes), d_(static_cast<std::size_t>(d)) {}

    // Sums masses anew, for so many draws; the total.
    UInt128 weigh(const Masses &masses, std::int64_t draws)
    {
        masses_ = masses;
        bits_ = static_cast<std::int32_t>(
            std::clamp(std::log2(static_cast<double>(nodes_.n()) * static_cast<double>(draws)) / 2.0, 0.0,
                       double{most_bucket_bits}));
        Writer request = about(Operation::seed_sums);
        request.put(bits_);
        ends_.assign(std::size_t{1} << bits_, 0);
        for (const Bytes &reply : nodes_.ask(request)) {
            const std::vector<PgkmInt128> sums = Reader(reply).get_all<PgkmInt128>(ends_.size());
            for (std::size_t b = 0; b < sums.size(); ++b)
                ends_[b] += join_unsigned(sums[b]);
        }
        for (std::size_t b = 1; b < ends_.size(); ++b)
            ends_[b] += ends_[b - 1];
        return ends_.back();
    }

    // The contents of the first rows in canonical order whose running sums pass these targets, of which each lies
    // below the total; the last row's where that is 0.
    std::vector<Content> find(const std::vector<UInt128> &targets)
    {
        if (ends_.back() == 0)
            return std::vector<Content>(targets.size(), last());
        std::vector<std::uint64_t> buckets;
        std::vector<UInt128> left;
        for (const UInt128 target : targets) {
            const auto b =
                static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), target) - ends_.begin());
            buckets.push_back(b);
            left.push_back(target - (b == 0 ? 0 : ends_[b - 1]));
        }
        return rows_of(keys_of(buckets, left), left);
    }

  private:
    Writer about(Operation operation) const
    {
        Writer request(operation);
        request.put(masses_.kind);
        request.put(masses_.exponent);
        return request;
    }

    template <typename Value>
    static std::vector<Value> distinct(std::vector<Value> values)
    {
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        return values;
    }

    // The first entry in order whose running sum passes `left`, which is lowered by those before it.
    template <typename Key, typename Order>
    static const Key &pass(const std::map<Key, UInt128, Order> &masses, UInt128 &left)
    {
        for (const auto &[key, mass] : masses) {
            if (left < mass)
                return key;
            left -= mass;
        }
        throw Error(PGKM_INTERNAL, "masses of nodes do not add up");
    }

    std::vector<std::uint64_t> keys_of(const std::vector<std::uint64_t> &buckets, std::vector<UInt128> &left)
    {
        const std::vector<std::uint64_t> wanted = distinct(buckets);
        Writer request = about(Operation::seed_keys);
        request.put(bits_);
        request.put(wanted);
        std::vector<std::map<std::uint64_t, UInt128, std::less<>>> found(wanted.size());
        for (const Bytes &bytes : nodes_.ask(request)) {
            Reader reply(bytes);
            const std::vector<std::uint64_t> counts = reply.get_all<std::uint64_t>(wanted.size());
            const std::vector<std::uint64_t> keys = reply.get_all<std::uint64_t>();
            const std::vector<PgkmInt128> masses = reply.get_all<PgkmInt128>(keys.size());
            std::size_t next = 0;
            for (std::size_t b = 0; b < wanted.size(); ++b)
                for (std::uint64_t i = 0; i < counts[b]; ++i, ++next)
                    found[b][keys.at(next)] += join_unsigned(masses.at(next));
        }
        std::vector<std::uint64_t> keys;
        for (std::size_t i = 0; i < buckets.size(); ++i) {
            const auto b = std::lower_bound(wanted.begin(), wanted.end(), buckets[i]) - wanted.begin();
            keys.push_back(pass(found[static_cast<std::size_t>(b)], left[i]));
        }
        return keys;
    }

    std::vector<Content> rows_of(const std::vector<std::uint64_t> &keys, std::vector<UInt128> &left)
    {
        const auto before = [](const Content &a, const Content &b) {
            return compare_content(a.data(), b.data(), static_cast<int>(a.size())) < 0;
        };
        const std::vector<std::uint64_t> wanted = distinct(keys);
        Writer request = about(Operation::seed_rows);
        request.put(wanted);
        using Found = std::map<Content, UInt128, decltype(before)>;
        std::vector<Found> found(wanted.size(), Found(before));
        for (const Bytes &bytes : nodes_.ask(request)) {
            Reader reply(bytes);
            const std::vector<std::uint64_t> counts = reply.get_all<std::uint64_t>(wanted.size());
            const std::vector<PgkmInt128> masses = reply.get_all<PgkmInt128>();
            const std::vector<T> values = reply.get_all<T>(masses.size() * d_);
            std::size_t next = 0;
            for (std::size_t b = 0; b < wanted.size(); ++b)
                for (std::uint64_t i = 0; i < counts[b]; ++i, ++next) {
                    const auto from = values.begin() + static_cast<std::ptrdiff_t>(next * d_);
                    found[b][Content(from, from + static_cast<std::ptrdiff_t>(d_))] += join_unsigned(masses.at(next));
                }
        }
        std::vector<Content> rows;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const auto b = std::lower_bound(wanted.begin(), wanted.end(), keys[i]) - wanted.begin();
            rows.push_back(pass(found[static_cast<std::size_t>(b)], left[i]));
        }
        return rows;
    }

    Content last()
    {
        std::uint64_t last_key = 0;
        Content last;
        for (const Bytes &bytes : nodes_.ask(Writer(Operation::seed_last))) {
            Reader reply(bytes);
            const auto key = reply.get<std::uint64_t>();
            Content content = reply.get_all<T>(d_);
            if (last.empty() || key > last_key ||
                (key == last_key && compare_content(content.data(), last.data(), static_cast<int>(d_)) > 0)) {
                last_key = key;
                last = std::move(content);
            }
        }
        return last;
    }

    NodeSet &nodes_;
    std::size_t d_;
    Masses masses_ = {};
    std::int32_t bits_ = 0;
    std::vector<UInt128> ends_; // prefix sums of the buckets
};

// D^2 sampling over the rows of all servers.
template <typename T>
class Sampler {
  public:
    using Content = std::vector<T>;

    Sampler(NodeSet &nodes, std::int32_t d, const Masses &first, const PgkmSeedParams &params, Streams streams)
        : nodes_(nodes), draws_(nodes, d), first_(first), params_(params), streams_(streams)
    {
        nodes_.ask(Writer(Operation::seed_begin));
    }

    void choose_first()
    {
        const UInt128 total = draws_.weigh(first_, 1);
        add(draws_.find({scale_draw(bits(streams_.first, 0, 0), total)}));
    }

    // The row of so many places in canonical order.
    std::vector<Content> at_places(const std::vector<UInt128> &places)
    {
        draws_.weigh({Mass::one, 0}, static_cast<std::int64_t>(places.size()));
        return draws_.find(places);
    }

    // Greedy k-means++ until k rows are chosen or none lies apart.
    void extend(std::int32_t k)
    {
        const int trials = greedy_trials(k);
        while (static_cast<std::int32_t>(chosen_.size()) < k && largest_ != 0.0) {
            const UInt128 total = draws_.weigh({Mass::square, square_exponent(largest_)}, trials);
            const std::uint64_t step = chosen_.size();
            std::vector<UInt128> targets;
            for (int trial = 0; trial < trials; ++trial)
                targets.push_back(
                    scale_draw(bits(streams_.trial, 0, step * 64 + static_cast<std::uint64_t>(trial)), total));
            const std::vector<Content> rows = draws_.find(targets);
            add({rows[best_of(rows)]});
        }
    }

    // One round of k-means||; false when no row lies apart.
    bool oversample(std::uint32_t round, std::int32_t k)
    {
        if (largest_ == 0.0)
            return false;
        const std::int64_t draws = std::int64_t{oversampling_factor} * k;
        const UInt128 total = draws_.weigh({Mass::square, square_exponent(largest_)}, draws);
        std::vector<UInt128> targets;
        for (std::int64_t i = 0; i < draws; ++i)
            targets.push_back(scale_draw(bits(Stream::oversample, round, static_cast<std::uint64_t>(i)), total));
        const auto before = [](const Content &a, const Content &b) {
            return compare_content(a.data(), b.data(), static_cast<int>(a.size())) < 0;
        };
        std::set<Content, decltype(before)> seen(before);
        std::vector<Content> rows;
        for (const Content &row : draws_.find(targets))
            if (seen.insert(row).second)
                rows.push_back(row);
        add(rows);
        return true;
    }

    const std::vector<Content> &chosen() const { return chosen_; }

  private:
    std::uint64_t bits(Stream stream, std::uint32_t round, std::uint64_t index) const
    {
        return draw(params_.seed, params_.restart, stream, round, index);
    }

    static std::vector<T> side_by_side(const std::vector<Content> &rows)
    {
        std::vector<T> values;
        for (const Content &row : rows)
            values.insert(values.end(), row.begin(), row.end());
        return values;
    }

    void add(const std::vector<Content> &rows)
    {
        Writer request(Operation::seed_add);
        request.put(static_cast<std::int32_t>(chosen_.size()));
        request.put(side_by_side(rows));
        largest_ = 0.0;
        for (const Bytes &reply : nodes_.ask(request))
            largest_ = std::max(largest_, Reader(reply).get<double>());
        chosen_.insert(chosen_.end(), rows.begin(), rows.end());
        nodes_.report("seeding", static_cast<std::int32_t>(chosen_.size()), 0.0);
    }

    // The trial that leaves the smallest potential, the first on a tie.
    std::size_t best_of(const std::vector<Content> &rows)
    {
        Writer request(Operation::seed_gains);
        request.put(square_exponent(largest_));
        request.put(side_by_side(rows));
        std::vector<UInt128> gains(rows.size(), 0);
        for (const Bytes &reply : nodes_.ask(request)) {
            const std::vector<PgkmInt128> part = Reader(reply).get_all<PgkmInt128>(rows.size());
            for (std::size_t i = 0; i < part.size(); ++i)
                gains[i] += join_unsigned(part[i]);
        }
        return static_cast<std::size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
    }

    NodeSet &nodes_;
    Draws<T> draws_;
    Masses first_;
    PgkmSeedParams params_;
    Streams streams_;
    std::vector<Content> chosen_;
    double largest_ = 0.0; // weight times squared distance to the nearest chosen row
};

// Weighted k-means++ among the candidates, each weighing what lies nearest to it. They are rows of this server here.
template <typename T>
std::vector<std::vector<T>> choose_among(NodeSet &nodes, const PgkmProblem &problem,
                                         const std::vector<std::vector<T>> &chosen, const PgkmSeedParams &params)
{
    const std::int32_t d = nodes.points().d;
    Writer request(Operation::seed_masses);
    request.put(static_cast<std::int32_t>(chosen.size()));
    request.put(problem.weight_exponent);
    std::vector<Int128> totals(chosen.size(), 0);
    Int128 total = 0;
    for (const Bytes &reply : nodes.ask(request)) {
        const std::vector<PgkmInt128> part = Reader(reply).get_all<PgkmInt128>(chosen.size());
        for (std::size_t i = 0; i < part.size(); ++i) {
            totals[i] += join(part[i]);
            total += join(part[i]);
        }
    }
    const int shift = mass_shift(static_cast<UInt128>(total));
    std::vector<T> values;
    std::vector<double> weights;
    std::vector<std::int64_t> masses;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        values.insert(values.end(), chosen[i].begin(), chosen[i].end());
        weights.push_back(candidate_weight(totals[i]));
        masses.push_back(static_cast<std::int64_t>(totals[i] >> shift));
    }
    PgkmOpen open = nodes.open();
    open.host.progress = nullptr;
    open.tuning = {}; // what is forced may be a strategy of a device
    NodeSet candidates({cpu_backend(), -1, 0}, open, std::move(masses));
    candidates.load(
        {values.data(), nodes.points().element, static_cast<std::int64_t>(chosen.size()), d, weights.data()});
    Sampler<T> among(candidates, d, {Mass::given, 0}, params, {Stream::candidate_first, Stream::candidate_trial});
    among.choose_first();
    among.extend(problem.k);
    return among.chosen();
}

// Floyd's sampling of k places out of n without replacement, in the order of insertion.
std::vector<UInt128> random_places(const NodeSet &nodes, std::int64_t n, std::int64_t k, const PgkmSeedParams &params)
{
    std::vector<UInt128> places;
    std::unordered_set<std::int64_t> taken;
    for (std::int64_t j = n - k; j < n; ++j) {
        if (j % 16384 == 0)
            nodes.poll();
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto place = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        const std::int64_t chosen = taken.insert(place).second ? place : j;
        taken.insert(chosen);
        places.push_back(static_cast<UInt128>(chosen));
    }
    return places;
}

template <typename T>
std::vector<std::vector<T>> choose(NodeSet &nodes, const PgkmProblem &problem, const PgkmSeedParams &params)
{
    const bool weighted = nodes.points().weights != nullptr;
    const Masses first = {weighted ? Mass::weight : Mass::one, problem.weight_exponent};
    Sampler<T> sampler(nodes, nodes.points().d, first, params, {Stream::first_centroid, Stream::trial});
    if (params.init == PGKM_INIT_RANDOM)
        return sampler.at_places(
            random_places(nodes, problem.n_rows, std::min<std::int64_t>(problem.k, problem.n_rows), params));
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

template <typename T>
void seed(NodeSet &nodes, PgkmProblem &problem, const PgkmSeedParams &params)
{
    if (params.init == PGKM_INIT_FIRST)
        throw Error(PGKM_UNSUPPORTED, "rows of several servers have no first ones");
    const std::vector<std::vector<T>> chosen = choose<T>(nodes, problem, params);
    T *out = static_cast<T *>(problem.centroids);
    for (const std::vector<T> &row : chosen)
        out = std::transform(row.begin(), row.end(), out, without_minus_zero<T>);
    problem.k = static_cast<std::int32_t>(chosen.size());
}

template void seed<float>(NodeSet &, PgkmProblem &, const PgkmSeedParams &);
template void seed<double>(NodeSet &, PgkmProblem &, const PgkmSeedParams &);

} // namespace pgkm::nodes
