#include "backend/cpu/seed_sampler.hpp"

#include <algorithm>
#include <limits>

#include "engine/contract.hpp"

namespace pgkm::cpu {
namespace {

// Values touched per block and candidate: a block of greedy trials takes about a millisecond,
// which is how often cancellation is looked at.
constexpr std::int64_t block_values = 1 << 17;
// Candidates that a block meets between two looks at the flag.
constexpr std::int32_t batch_candidates = 16;

std::int64_t rows_per_block(std::int32_t d)
{
    // 2^14 rows at most: that many 46-bit integers fit a 64-bit sum.
    return std::clamp<std::int64_t>(block_values / d, 64, 1 << 14);
}

} // namespace

template <typename T>
SeedSampler<T>::SeedSampler(const BlockRunner &runner, const SeedRows<T> &rows, const FirstMasses &masses,
                            const PgkmSeedParams &params, SeedStreams streams, bool keep_labels)
    : runner_(runner), rows_(rows), masses_(masses), params_(params), streams_(streams),
      block_rows_(rows_per_block(rows.d)), blocks_((rows.n + block_rows_ - 1) / block_rows_),
      nearest_(runner.budget(), static_cast<std::size_t>(rows.n)),
      labels_(runner.budget(), keep_labels ? static_cast<std::size_t>(rows.n) : 0),
      block_sums_(runner.budget(), static_cast<std::size_t>(blocks_))
{
}

template <typename T>
SeedRows<T> SeedSampler<T>::block_of(std::int64_t block) const
{
    const std::int64_t first = first_row(block);
    return rows_.slice(first, std::min(block_rows_, rows_.n - first));
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
Buffer<double> SeedSampler<T>::gather(const std::vector<std::int64_t> &rows) const
{
    Buffer<double> values(runner_.budget(), rows.size() * static_cast<std::size_t>(rows_.d));
    double *out = values.data();
    for (const std::int64_t row : rows)
        out = std::copy(rows_.row(row), rows_.row(row) + rows_.d, out);
    return values;
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
template <typename Mass>
std::int64_t SeedSampler<T>::pick(std::uint64_t bits, Mass &&mass) const
{
    const UInt128 target = scale_draw(bits, total());
    UInt128 running = 0;
    for (std::int64_t block = 0; block < blocks_; ++block) {
        const std::uint64_t sum = block_sums_[static_cast<std::size_t>(block)];
        if (running + sum <= target) {
            running += sum;
            continue;
        }
        for (std::int64_t row = first_row(block);; ++row) {
            running += static_cast<std::uint64_t>(mass(row));
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
        std::uint64_t sum = 0;
        std::fill(nearest_.data() + first, nearest_.data() + end, std::numeric_limits<double>::infinity());
        for (std::int64_t row = first; row < end; ++row)
            sum += static_cast<std::uint64_t>(first_mass(row));
        block_sums_[static_cast<std::size_t>(block)] = sum;
    });
    choose({pick(draw_bits(streams_.first, 0, 0), [&](std::int64_t row) { return first_mass(row); })});
}

// Adds rows to the chosen ones, in this order. A block meets them in batches.
template <typename T>
void SeedSampler<T>::choose(const std::vector<std::int64_t> &rows)
{
    if (rows.empty())
        return;
    const Buffer<double> values = gather(rows);
    const auto count = static_cast<std::int32_t>(rows.size());
    const auto first_index = static_cast<std::int32_t>(chosen_.size());
    Buffer<double> largest(runner_.budget(), static_cast<std::size_t>(blocks_));
    runner_.run(blocks_, [&](std::int64_t block) {
        const SeedRows<T> part = block_of(block);
        std::int32_t *labels = labels_.size() == 0 ? nullptr : labels_.data() + first_row(block);
        for (std::int32_t first = 0; first < count; first += batch_candidates) {
            runner_.poll();
            const SeedCandidates candidates = {values.data() + std::int64_t{first} * rows_.d,
                                               std::min(batch_candidates, count - first), first_index + first};
            largest[static_cast<std::size_t>(block)] =
                lower_nearest(part, candidates, nearest_.data() + first_row(block), labels);
        }
    });
    largest_ = *std::max_element(largest.begin(), largest.end());
    chosen_.insert(chosen_.end(), rows.begin(), rows.end());
    runner_.report(chosen_.size());
}

// The scale of the sampling integers and their sums; false when all are 0.
template <typename T>
bool SeedSampler<T>::weigh()
{
    if (largest_ == 0.0)
        return false;
    scale_ = power_of_two(square_exponent(largest_));
    runner_.run(blocks_, [&](std::int64_t block) {
        block_sums_[static_cast<std::size_t>(block)] =
            sum_masses(block_of(block), nearest_.data() + first_row(block), scale_);
    });
    return true;
}

// Index of the trial that leaves the smallest potential, the first on a tie.
template <typename T>
std::size_t SeedSampler<T>::best_trial(const std::vector<std::int64_t> &trials)
{
    const std::size_t count = trials.size();
    const Buffer<double> values = gather(trials);
    const SeedCandidates candidates = {values.data(), static_cast<std::int32_t>(count), 0};
    Buffer<std::uint64_t> sums(runner_.budget(), static_cast<std::size_t>(blocks_) * count);
    runner_.run(blocks_, [&](std::int64_t block) {
        sum_trials(block_of(block), candidates, nearest_.data() + first_row(block), scale_,
                   sums.data() + static_cast<std::size_t>(block) * count);
    });
    std::vector<UInt128> potentials(count, 0);
    for (std::size_t i = 0; i < sums.size(); ++i)
        potentials[i % count] += sums[i];
    return static_cast<std::size_t>(std::min_element(potentials.begin(), potentials.end()) - potentials.begin());
}

template <typename T>
void SeedSampler<T>::extend(std::int32_t k)
{
    const auto mass = [&](std::int64_t row) {
        return quantise_mass(rows_.weight(row) * nearest_[static_cast<std::size_t>(row)], scale_);
    };
    std::vector<std::int64_t> trials(static_cast<std::size_t>(greedy_trials(k)));
    while (static_cast<std::int32_t>(chosen_.size()) < k && weigh()) {
        const std::uint64_t step = chosen_.size();
        for (std::size_t trial = 0; trial < trials.size(); ++trial)
            trials[trial] = pick(draw_bits(streams_.trial, 0, step * 64 + trial), mass);
        choose({trials[best_trial(trials)]});
    }
}

template <typename T>
bool SeedSampler<T>::oversample(std::uint32_t round, std::int32_t k)
{
    if (!weigh())
        return false;
    const UInt128 all = total();
    const UInt128 factor = UInt128{oversampling_factor} * static_cast<std::uint64_t>(k);
    std::vector<std::vector<std::int64_t>> sampled(static_cast<std::size_t>(blocks_));
    runner_.run(blocks_, [&](std::int64_t block) {
        const std::int64_t end = std::min(first_row(block) + block_rows_, rows_.n);
        for (std::int64_t row = first_row(block); row < end; ++row) {
            const std::int64_t mass =
                quantise_mass(rows_.weight(row) * nearest_[static_cast<std::size_t>(row)], scale_);
            const std::uint64_t bits =
                draw_bits(Stream::oversample, round, static_cast<std::uint64_t>(row)) >> 16; // 48 bits
            if (((bits * all) >> 48) < factor * static_cast<std::uint64_t>(mass))
                sampled[static_cast<std::size_t>(block)].push_back(row);
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
