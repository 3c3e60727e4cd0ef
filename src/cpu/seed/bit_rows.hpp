// bit_rows.hpp - the trials of a step where the two values of each feature are 1 apart: rows are bits, and distances
// counts of those that differ.
//
// Such a count is the contract's D itself, so nothing is left to settle. Masses are counts times a power of two that is
// at least 1 (square_exponent() of at most 2^46), so without weights a trial's gain is that of its counts. Long rows
// are passed over by the triangle inequality: a trial wins none that is not farther from its chosen row than half as
// far as that lies from the trial.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/encode/bits.hpp"
#include "cpu/seed/runner.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {

// As SeedTrials. Bits: the rows as words, BitRows<T> or the rows themselves.
template <typename T, typename Bits = BitRows<T>>
class BitRowTrials {
  public:
    BitRowTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels, int most,
                 const Bits &bits, std::int64_t words)
        : runner_(runner), rows_(rows), kernels_(bit_kernels(runner.instruction_set())), nearest_(nearest),
          labels_(labels), bits_(bits), words_(words), blocks_((rows.n + max_seed_block - 1) / max_seed_block),
          counts_(runner.budget(), rows.n), gains_(runner.budget(), blocks_ * most), largest_(runner.budget(), blocks_)
    {
        std::copy(nearest, nearest + rows.n, counts_.begin());
        for_blocks([&](std::int64_t block, std::int64_t, std::int64_t) { find_largest(block); });
    }

    void group(const std::vector<const T *> &chosen) { chosen_ = &chosen; }
    void group_again(const std::vector<const T *> &) {}
    double largest() const { return *std::max_element(largest_.begin(), largest_.end()); }

    int find_best(const std::vector<const T *> &candidates, double scale)
    {
        const std::size_t count = candidates.size();
        candidates_.clear();
        for (const T *candidate : candidates)
            candidates_.push_back(words_of(candidate));
        find_reaches();
        for_blocks([&](std::int64_t block, std::int64_t first, std::int64_t rows) {
            std::uint64_t *gains = gains_.data() + block * static_cast<std::int64_t>(count);
            if (rows_.weights == nullptr && !is_long())
                return kernels_.gains(bits_.row(first), rows, words_, counts_.data() + first, candidates_.data(),
                                      static_cast<int>(count), gains);
            std::fill_n(gains, count, 0);
            for (const std::int64_t last = first + rows; first < last; first += cached_rows) {
                for (std::size_t trial = 0; trial < count; ++trial)
                    gains[trial] += gain_of(trial, first, std::min(last - first, cached_rows), scale);
            }
        });
        std::vector<UInt128> all(count, 0);
        for (std::int64_t i = 0; i < blocks_ * static_cast<std::int64_t>(count); ++i)
            all[i % count] += gains_[i];
        return static_cast<int>(std::max_element(all.begin(), all.end()) - all.begin());
    }

    template <typename Subtract>
    void choose(int best, std::int32_t index, double scale, Subtract &&subtract)
    {
        for_blocks([&](std::int64_t block, std::int64_t first, std::int64_t rows) {
            std::int32_t nearer[max_seed_block], counts[max_seed_block];
            const int found = find_nearer(best, first, rows, nearer, counts);
            for (int i = 0; i < found; ++i) {
                const std::int64_t row = first + nearer[i];
                const auto square = static_cast<double>(counts[i]);
                subtract(row, rows_.mass(row, nearest_[row], scale) - rows_.mass(row, square, scale));
                counts_[row] = counts[i];
                nearest_[row] = square;
                labels_[row] = index;
            }
            if (found > 0)
                find_largest(block);
        });
    }

  private:
    template <typename Body> // body(block, first row, rows)
    void for_blocks(Body &&body) const
    {
        runner_.run(blocks_, [&](std::int64_t block) {
            const std::int64_t first = block * max_seed_block;
            body(block, first, std::min(rows_.n - first, max_seed_block));
        });
    }
    static constexpr std::int64_t cached_rows = 128; // which all trials meet before others

    bool is_long() const { return words_ > 4; }
    const std::uint64_t *words_of(const T *row) const { return bits_.row((row - rows_.values) / rows_.d); }
    // How far each candidate is from the chosen rows.
    void find_reaches()
    {
        reaches_.clear();
        for (std::size_t i = 0; is_long() && i < candidates_.size() * chosen_->size(); ++i) {
            if (i % (1 << 12) == 0)
                runner_.poll();
            reaches_.push_back(kernels_.different(candidates_[i / chosen_->size()],
                                                  words_of((*chosen_)[i % chosen_->size()]), words_));
        }
        n_chosen_ = chosen_->size();
    }
    // As the kernel, of a candidate.
    int find_nearer(std::size_t trial, std::int64_t first, std::int64_t rows, std::int32_t *nearer,
                    std::int32_t *fewer) const
    {
        std::int32_t among[max_seed_block], *list = nullptr;
        if (is_long()) {
            const std::int32_t *reach = reaches_.data() + trial * n_chosen_;
            std::int64_t count = 0;
            for (std::int64_t i = 0; i < rows; ++i) {
                among[count] = static_cast<std::int32_t>(i);
                count += 2 * std::int64_t{counts_[first + i]} > reach[labels_[first + i]] ? 1 : 0;
            }
            list = among;
            rows = count;
        }
        return kernels_.nearer(bits_.row(first), list, rows, words_, counts_.data() + first, candidates_[trial], nearer,
                               fewer);
    }
    std::uint64_t gain_of(std::size_t trial, std::int64_t first, std::int64_t rows, double scale) const
    {
        std::int32_t nearer[max_seed_block], fewer[max_seed_block];
        const int found = find_nearer(trial, first, rows, nearer, fewer);
        std::uint64_t gain = 0; // of at most 2^12 masses below 2^46
        for (int i = 0; i < found; ++i) {
            const std::int64_t row = first + nearer[i];
            gain += rows_.mass(row, nearest_[row], scale) - rows_.mass(row, fewer[i], scale);
        }
        return gain;
    }
    void find_largest(std::int64_t block)
    {
        const std::int64_t first = block * max_seed_block, last = std::min(rows_.n, first + max_seed_block);
        double most = 0.0;
        for (std::int64_t row = first; row < last; ++row)
            most = std::max(most, rows_.weight(row) * static_cast<double>(counts_[row]));
        largest_[block] = most;
    }

    const BlockRunner &runner_;
    SeedRows<T> rows_;
    const BitKernels &kernels_;
    double *nearest_;
    std::int32_t *labels_;
    const Bits &bits_;
    std::int64_t words_, blocks_;
    Buffer<std::int32_t> counts_; // the squared distance to the nearest chosen row
    Buffer<std::uint64_t> gains_; // blocks x trials
    Buffer<double> largest_;
    std::vector<const std::uint64_t *> candidates_;
    const std::vector<const T *> *chosen_ = nullptr;
    std::size_t n_chosen_ = 0;          // when the step began
    std::vector<std::int32_t> reaches_; // trials x chosen; empty for short rows
};

} // namespace pgkm::cpu
