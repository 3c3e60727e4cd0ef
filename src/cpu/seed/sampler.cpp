// sampler.cpp - draws rows by D^2, greedy k-means++ trials, rounds of k-means||.
#include "cpu/seed/sampler.hpp"

#include <algorithm>
#include <limits>

#include "numeric/contract.hpp"

namespace pgkm::cpu {
namespace {

// Candidates of k-means|| that the rows meet at once. Few, because each batch also makes rows
// safe from the next.
constexpr std::int32_t batch_candidates = 16;

} // namespace

template <typename T>
SeedSampler<T>::SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const FirstMasses &masses,
                            const PgkmSeedParams &params, SeedStreams streams)
    : runner_(runner), kernels_(seed_kernels(runner.instruction_set())), rows_(rows), masses_(masses), params_(params),
      streams_(streams), block_rows_(seed_block_rows(rows.d)), blocks_((rows.n + block_rows_ - 1) / block_rows_),
      nearest_(runner.budget(), rows.n), labels_(runner.budget(), rows.n), block_sums_(runner.budget(), blocks_),
      block_largest_(runner.budget(), blocks_), safety_(runner, rows.n, rows.d)
{
}

template <typename T>
SeedBlock<T> SeedSampler<T>::block_of(std::int64_t block, const double *safe)
{
    const std::int64_t first = first_row(block);
    return {rows_.row(first),
            rows_.weights == nullptr ? nullptr : rows_.weights + first,
            std::min(block_rows_, rows_.n - first),
            rows_.d,
            nearest_.data() + first,
            labels_.data() + first,
            safe};
}

template <typename T>
std::uint64_t SeedSampler<T>::draw_bits(Stream stream, std::uint32_t round, std::uint64_t index) const
{
    return draw(params_.seed, params_.restart, stream, round, index);
}

template <typename T>
std::int64_t SeedSampler<T>::first_mass(std::int64_t row) const
{
    if (masses_.given != nullptr)
        return masses_.given[row];
    return rows_.weights == nullptr ? 1 : quantise(rows_.weights[row], masses_.weight_scale);
}

template <typename T>
std::int64_t SeedSampler<T>::mass(std::int64_t row) const
{
    return quantise_mass(rows_.weight(row) * nearest_[row], scale_);
}

template <typename T>
UInt128 SeedSampler<T>::total() const
{
    UInt128 sum = 0;
    for (const std::uint64_t part : block_sums_)
        sum += part;
    return sum;
}

template <typename T>
Buffer<double> SeedSampler<T>::gather(const std::int64_t *rows, std::size_t count) const
{
    Buffer<double> values(runner_.budget(), count * rows_.d);
    double *out = values.data();
    for (std::size_t i = 0; i < count; ++i)
        out = std::copy(rows_.row(rows[i]), rows_.row(rows[i]) + rows_.d, out);
    return values;
}

template <typename T>
template <typename Term>
std::int64_t SeedSampler<T>::pick(std::uint64_t bits, Term &&term) const
{
    const UInt128 target = scale_draw(bits, total());
    UInt128 running = 0;
    for (std::int64_t block = 0; block < blocks_; ++block) {
        const std::uint64_t sum = block_sums_[block];
        if (running + sum <= target) {
            running += sum;
            continue;
        }
        for (std::int64_t row = first_row(block);; ++row) {
            running += static_cast<std::uint64_t>(term(row));
            if (running > target)
                return row;
        }
    }
    return rows_.n - 1; // not reached: target < total
}

template <typename T>
void SeedSampler<T>::choose_first()
{
    runner_.run(blocks_, [&](std::int64_t block) {
        const std::int64_t first = first_row(block);
        const std::int64_t end = std::min(first + block_rows_, rows_.n);
        std::fill(nearest_.data() + first, nearest_.data() + end, std::numeric_limits<double>::infinity());
        std::fill(labels_.data() + first, labels_.data() + end, 0);
        std::uint64_t sum = 0;
        for (std::int64_t row = first; row < end; ++row)
            sum += static_cast<std::uint64_t>(first_mass(row));
        block_sums_[block] = sum;
    });
    choose({pick(draw_bits(streams_.first, 0, 0), [&](std::int64_t row) { return first_mass(row); })});
}

// Adds rows to the chosen ones, in this order.
template <typename T>
void SeedSampler<T>::choose(const std::vector<std::int64_t> &rows)
{
    scale_ = 0.0;
    const auto count = static_cast<std::int64_t>(rows.size());
    for (std::int64_t first = 0; first < count; first += batch_candidates)
        choose_batch(rows.data() + first,
                     static_cast<std::int32_t>(std::min<std::int64_t>(batch_candidates, count - first)));
}

template <typename T>
void SeedSampler<T>::choose_batch(const std::int64_t *rows, std::int32_t count)
{
    const Buffer<double> values = gather(rows, count);
    const SeedCandidates candidates = {values.data(), count, static_cast<std::int32_t>(chosen_.size())};
    const double *safe = safety_.find(candidates);
    runner_.run(blocks_,
                [&](std::int64_t block) { block_largest_[block] = kernels_.lower(block_of(block, safe), candidates); });
    for (std::int32_t i = 0; i < count; ++i) {
        chosen_.push_back(rows[i]);
        safety_.add(rows_.row(rows[i]));
    }
    runner_.report(chosen_.size());
}

// The scale of the sampling integers and their sums; false when all are 0.
template <typename T>
bool SeedSampler<T>::weigh()
{
    const double largest = *std::max_element(block_largest_.begin(), block_largest_.end());
    if (largest == 0.0)
        return false;
    const double scale = power_of_two(square_exponent(largest));
    if (scale == scale_)
        return true; // the sums are those that the last trial left
    scale_ = scale;
    runner_.run(blocks_,
                [&](std::int64_t block) { block_sums_[block] = kernels_.sum(block_of(block, nullptr), scale_); });
    return true;
}

// Chooses the trial that leaves the smallest potential, the first on a tie.
template <typename T>
void SeedSampler<T>::choose_trial(const std::vector<std::int64_t> &trials)
{
    const std::size_t count = trials.size();
    const Buffer<double> values = gather(trials.data(), count);
    const SeedCandidates candidates = {values.data(), static_cast<std::int32_t>(count), 0};
    const double *safe = safety_.find(candidates);
    Buffer<std::uint64_t> sums(runner_.budget(), std::int64_t{blocks_} * count);
    runner_.run(blocks_, [&](std::int64_t block) {
        const auto at = static_cast<std::size_t>(block);
        kernels_.try_each(block_of(block, safe), candidates, scale_, block_sums_[at], sums.data() + at * count);
    });
    std::vector<UInt128> potentials(count, 0);
    for (std::size_t i = 0; i < sums.size(); ++i)
        potentials[i % count] += sums[i];
    const auto best =
        static_cast<std::size_t>(std::min_element(potentials.begin(), potentials.end()) - potentials.begin());
    for (std::size_t block = 0; block < block_sums_.size(); ++block)
        block_sums_[block] = sums[block * count + best];
    choose_batch(&trials[best], 1);
}

template <typename T>
void SeedSampler<T>::extend(std::int32_t k)
{
    std::vector<std::int64_t> trials(greedy_trials(k));
    while (static_cast<std::int32_t>(chosen_.size()) < k && weigh()) {
        const std::uint64_t step = chosen_.size();
        for (std::size_t trial = 0; trial < trials.size(); ++trial)
            trials[trial] =
                pick(draw_bits(streams_.trial, 0, step * 64 + trial), [&](std::int64_t row) { return mass(row); });
        choose_trial(trials);
    }
}

template <typename T>
bool SeedSampler<T>::oversample(std::uint32_t round, std::int32_t k)
{
    if (!weigh())
        return false;
    const UInt128 all = total();
    const UInt128 factor = UInt128{oversampling_factor} * static_cast<std::uint64_t>(k);
    std::vector<std::vector<std::int64_t>> sampled(blocks_);
    runner_.run(blocks_, [&](std::int64_t block) {
        const std::int64_t end = std::min(first_row(block) + block_rows_, rows_.n);
        for (std::int64_t row = first_row(block); row < end; ++row) {
            const std::uint64_t bits =
                draw_bits(Stream::oversample, round, static_cast<std::uint64_t>(row)) >> 16; // 48 bits
            if (((bits * all) >> 48) < factor * static_cast<std::uint64_t>(mass(row)))
                sampled[block].push_back(row);
        }
    });
    std::vector<std::int64_t> rows;
    for (const std::vector<std::int64_t> &part : sampled)
        rows.insert(rows.end(), part.begin(), part.end());
    choose(rows);
    return true;
}

template class SeedSampler<float>;
template class SeedSampler<double>;

} // namespace pgkm::cpu
