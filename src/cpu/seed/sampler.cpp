// sampler.cpp - draws rows by D^2: greedy trials, and the draws of k-means||.
#include "cpu/seed/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "cpu/seed/bit_rows.hpp"
#include "cpu/seed/few_rows.hpp"
#include "cpu/seed/trials.hpp"
#include "cpu/unless_short.hpp"
#include "numeric/contract.hpp"
#include "backend/random_places.hpp"
#include "backend/update.hpp"
#include "numeric/bit_rows.hpp"
#include "numeric/row_key.hpp"

namespace pgkm::cpu {

template <typename T>
SeedSampler<T>::SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const RowNumber *order,
                            const FirstMasses &masses, const PgkmSeedParams &params, SeedStreams streams)
    : runner_(runner), rows_(rows), first_masses_(masses), params_(params), streams_(streams),
      nearest_(runner.budget(), rows.n), labels_(runner.budget(), rows.n), masses_(runner, rows.n, order)
{
}

template <typename T>
std::int64_t SeedSampler<T>::first_mass(std::int64_t row) const
{
    if (first_masses_.given != nullptr)
        return first_masses_.given[row];
    const auto copies = static_cast<std::int64_t>(rows_.copies(row));
    return rows_.weights == nullptr ? copies : copies * quantise(rows_.weights[row], first_masses_.weight_scale);
}

template <typename T>
void SeedSampler<T>::choose_first()
{
    const auto mass = [&](std::int64_t row) { return first_mass(row); };
    masses_.sum(mass);
    masses_.prepare();
    const std::int64_t chosen = masses_.row_at(masses_.pick(draw_bits(streams_.first, 0, 0), mass));
    const T *first = rows_.row(chosen);
    distances_to(runner_, rows_, &first, nullptr, nearest_.data());
    std::fill(labels_.begin(), labels_.end(), 0);
    add({chosen});
}

template <typename T>
void SeedSampler<T>::add(const std::vector<std::int64_t> &rows)
{
    chosen_.insert(chosen_.end(), rows.begin(), rows.end());
    scale_ = 0.0;
    runner_.report(count());
}

template <typename T>
void SeedSampler<T>::keep(const T *values, std::int32_t count)
{
    for (std::int32_t j = 0; j < count; ++j)
        kept_.push_back(values + std::int64_t{j} * rows_.d);
}

template <typename T>
double largest_square(const BlockRunner &runner, const SeedRows<T> &rows, const double *nearest)
{
    const std::int64_t blocks = (rows.n + max_seed_block - 1) / max_seed_block;
    Buffer<double> each(runner.budget(), blocks);
    runner.run(blocks, [&](std::int64_t block) {
        double most = 0.0;
        for (std::int64_t row = block * max_seed_block; row < std::min(rows.n, (block + 1) * max_seed_block); ++row)
            most = std::max(most, rows.weight(row) * nearest[row]);
        each[block] = most;
    });
    return *std::max_element(each.begin(), each.end());
}

std::vector<Int128> masses_by_label(const BlockRunner &runner, const PgkmPoints &points, const PgkmProblem &problem,
                                    const std::int32_t *labels, std::size_t count, const std::uint16_t *counts)
{
    constexpr std::int64_t rows_per_poll = 1 << 14;
    std::vector<Int128> masses(count, 0);
    for (std::int64_t i = 0; i < problem.n_rows; ++i) {
        if (i % rows_per_poll == 0)
            runner.poll();
        const Int128 one = row_mass(points, problem, problem.first_row + i);
        masses.at(static_cast<std::size_t>(labels[i])) += counts == nullptr ? one : one * counts[i];
    }
    return masses;
}

// The scale of the sampling integers and their sums; false when all are 0.
template <typename T>
bool SeedSampler<T>::weigh(double largest)
{
    if (largest == 0.0)
        return false;
    const double scale = power_of_two(square_exponent(largest));
    if (scale != scale_) {
        scale_ = scale;
        if (rows_.counts != nullptr)
            masses_.sum([&](std::int64_t row) { return mass(row); });
        else // which takes less time
            masses_.sum([&](std::int64_t row) { return rows_.mass_of_one(row, nearest_[row], scale_); });
    }
    masses_.prepare();
    return true;
}

template <typename T>
void SeedSampler<T>::extend(std::int32_t k)
{
    if (count() >= k)
        return;
    if constexpr (std::is_same_v<T, BitWord>)
        extend_by<BitRowTrials<T, SeedRows<T>>>(k, rows_, rows_.d);
    else if (FewRowTrials<T>::serves(rows_))
        extend_by<FewRowTrials<T>>(k);
    else
        extend_by_filters(k);
}

template <typename T>
void SeedSampler<T>::extend_by_filters(std::int32_t k)
{
    Context &context = runner_.context();
    ThreadPool alone(1);
    Rows<T> all(context, runner_.is_threaded() ? context.pool : alone, rows_.values, rows_.n, rows_.d, k);
    all.data = rows_.data;
    const std::shared_ptr<EncodedRows<T>> encoded = EncodedRows<T>::of(all);
    if (rows_.weights == nullptr && rows_.counts == nullptr && kept_.empty())
        if (const auto bits = encoded->bits(all); bits && bits->counts_distances())
            if (const auto trials = unless_short([&] {
                    return std::make_unique<BitRowTrials<T>>(runner_, rows_, nearest_.data(), labels_.data(),
                                                             greedy_trials(k), *bits, bits->words());
                }))
                return extend_with(k, *trials);
    const std::shared_ptr<const Projection<T>> projected = kept_.empty() ? projection(*encoded, all) : nullptr;
    if (!projected)
        return extend_by<SeedTrials<T>>(k, rows_, 0.0);
    const SeedRows<float> points = {projected->row(0),     rows_.weights, rows_.n,
                                    projected->features(), nullptr,       rows_.counts};
    extend_by<SeedTrials<T, float>>(k, points, 2.0 * projected->error(projected->longest()));
}

// A projection of the rows, if it pays. As many trials as one to a step are a pass. Of few chosen rows more trials are
// near, by the logarithm of k in all; and their rows come from memory, which takes six times as long (with a factor of
// 2 projections were made of MNIST, and took 1.17 of the time without). The sample has none of the rows that
// projections are tried on.
template <typename T>
std::shared_ptr<const Projection<T>> SeedSampler<T>::projection(EncodedRows<T> &encoded, const Rows<T> &all) const
{
    constexpr std::uint64_t of_row = 512; // a projection, and what is allocated after it
    const std::uint64_t bytes =
        of_row * static_cast<std::uint64_t>(rows_.n) + sizeof(T) * static_cast<std::uint64_t>(all.k) * rows_.d;
    if (!runner_.is_threaded() || all.k > rows_.n || !runner_.budget().allows(bytes))
        return nullptr;
    Buffer<T> sample(runner_.budget(), std::int64_t{all.k} * rows_.d);
    for (std::int64_t j = 0; j < all.k; ++j)
        std::copy_n(rows_.row((j + 1) * rows_.n / all.k - 1), rows_.d, sample.data() + j * rows_.d);
    auto found = encoded.projection(
        all, {sample.data(), static_cast<double>(greedy_trials(all.k)), 6.0 * std::log(static_cast<double>(all.k))});
    return found && found->longest() < 0x1p60 ? std::move(found) : nullptr;
}

template <typename T>
template <typename Trials, typename... More>
void SeedSampler<T>::extend_by(std::int32_t k, More &&...more)
{
    Trials trials(runner_, rows_, nearest_.data(), labels_.data(), greedy_trials(k), std::forward<More>(more)...);
    extend_with(k, trials);
}

template <typename T>
template <typename Trials>
void SeedSampler<T>::extend_with(std::int32_t k, Trials &trials)
{
    std::vector<const T *> chosen = kept_;
    for (const std::int64_t row : chosen_)
        chosen.push_back(rows_.row(row));
    trials.group(chosen);
    std::vector<const T *> candidates(greedy_trials(k));
    std::vector<std::int64_t> drawn(candidates.size());
    while (count() < k && weigh(trials.largest())) {
        const auto step = static_cast<std::uint64_t>(count());
        for (std::size_t trial = 0; trial < drawn.size(); ++trial) {
            drawn[trial] = masses_.row_at(masses_.pick(draw_bits(streams_.trial, 0, step * 64 + trial),
                                                       [&](std::int64_t row) { return mass(row); }));
            candidates[trial] = rows_.row(drawn[trial]);
        }
        const int best = trials.find_best(candidates, scale_);
        chosen_.push_back(drawn[best]);
        chosen.push_back(candidates[best]);
        trials.choose(best, static_cast<std::int32_t>(count()) - 1, scale_,
                      [&](std::int64_t row, std::uint64_t mass) { masses_.subtract(row, mass); });
        trials.group_again(chosen);
        runner_.report(count());
    }
}

template <typename T>
std::vector<std::int64_t> SeedSampler<T>::draw_round(std::uint32_t round, std::int32_t k)
{
    if (!weigh(largest_square(runner_, rows_, nearest_.data())))
        return {};
    return draw_contents(Stream::oversample, round, std::int64_t{oversampling_factor} * k,
                         [&](std::int64_t row) { return mass(row); });
}

template <typename T>
std::vector<std::int64_t> SeedSampler<T>::draw_by_weight(std::uint32_t round, std::int64_t draws)
{
    const auto mass = [&](std::int64_t row) {
        const bool is_apart = chosen_.empty() || nearest_[row] != 0.0;
        return is_apart ? rows_.copies(row) * drawn_mass(rows_.weights[row], first_masses_.weight_scale) : 0;
    };
    masses_.sum(mass);
    masses_.prepare();
    if (masses_.total() == 0)
        return {};
    return draw_contents(Stream::random_rows, round, draws, mass);
}

// So many draws, of which those of a content that was drawn before do not count.
template <typename T>
template <typename Mass>
std::vector<std::int64_t> SeedSampler<T>::draw_contents(Stream stream, std::uint32_t round, std::int64_t draws,
                                                        Mass &&mass) const
{
    Buffer<std::int64_t> places(runner_.budget(), draws);
    runner_.run((draws + 255) / 256, [&](std::int64_t block) {
        for (std::int64_t i = block * 256; i < std::min(draws, (block + 1) * 256); ++i)
            places[i] = masses_.pick(draw_bits(stream, round, static_cast<std::uint64_t>(i)), mass);
    });
    // Rows of equal content are neighbours in canonical order: of each such run the first draw stays.
    Buffer<std::int64_t> sorted(runner_.budget(), draws);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::sort(sorted.begin(), sorted.end(),
              [&](std::int64_t a, std::int64_t b) { return places[a] != places[b] ? places[a] < places[b] : a < b; });
    std::int64_t *end = sorted.begin(); // of the first draws
    for (const std::int64_t *next = sorted.begin(); next != sorted.end();) {
        std::int64_t first = *next;
        const T *row = rows_.row(masses_.row_at(places[first]));
        for (++next;
             next != sorted.end() && compare_content(row, rows_.row(masses_.row_at(places[*next])), rows_.d) == 0;
             ++next)
            first = std::min(first, *next);
        *end++ = first;
    }
    std::sort(sorted.begin(), end);
    std::vector<std::int64_t> rows;
    for (const std::int64_t *i = sorted.begin(); i != end; ++i)
        rows.push_back(masses_.row_at(places[*i]));
    return rows;
}

template <typename T>
std::vector<std::int64_t> choose_among(const BlockRunner &runner, const T *values, std::int32_t d,
                                       const std::vector<Int128> &totals, std::int32_t k, const PgkmSeedParams &params)
{
    const int shift = mass_shift(static_cast<UInt128>(std::accumulate(totals.begin(), totals.end(), Int128{0})));
    std::vector<double> weights;
    std::vector<std::int64_t> masses;
    for (const Int128 mass : totals) {
        weights.push_back(candidate_weight(mass));
        masses.push_back(static_cast<std::int64_t>(mass >> shift));
    }
    const SeedRows<T> candidates = {values, weights.data(), static_cast<std::int64_t>(totals.size()), d};
    SeedSampler<T> among(runner, candidates, nullptr, {masses.data(), 1.0}, params,
                         {Stream::candidate_first, Stream::candidate_trial});
    among.choose_first();
    among.extend(k);
    return among.chosen();
}

template std::vector<std::int64_t> choose_among(const BlockRunner &, const float *, std::int32_t,
                                                const std::vector<Int128> &, std::int32_t, const PgkmSeedParams &);
template std::vector<std::int64_t> choose_among(const BlockRunner &, const double *, std::int32_t,
                                                const std::vector<Int128> &, std::int32_t, const PgkmSeedParams &);
template double largest_square(const BlockRunner &, const SeedRows<float> &, const double *);
template double largest_square(const BlockRunner &, const SeedRows<double> &, const double *);
template class SeedSampler<float>;
template class SeedSampler<double>;
template SeedSampler<BitWord>::SeedSampler(const BlockRunner &, const SeedRows<BitWord> &, const RowNumber *,
                                           const FirstMasses &, const PgkmSeedParams &, SeedStreams);
template void SeedSampler<BitWord>::choose_first();
template void SeedSampler<BitWord>::add(const std::vector<std::int64_t> &);
template std::vector<std::int64_t> SeedSampler<BitWord>::draw_by_weight(std::uint32_t, std::int64_t);
template void SeedSampler<BitWord>::extend(std::int32_t);

} // namespace pgkm::cpu
