// bit_rows.hpp - the trials of a step where the two values of each feature are 1 apart: rows are bits, and distances
// counts of those that differ.
//
// Such a count is the contract's D itself, so nothing is left to settle. Masses are counts times a power of two that is
// at least 1 (square_exponent() of at most 2^16), so a trial's gain is that of its counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/encode/bits.hpp"
#include "cpu/seed/runner.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {

// As SeedTrials.
template <typename T>
class BitRowTrials {
  public:
    BitRowTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels, int most,
                 const BitRows<T> &bits)
        : runner_(runner), rows_(rows), kernels_(bit_kernels(runner.instruction_set())), nearest_(nearest),
          labels_(labels), bits_(bits), words_(bits.words()), blocks_((rows.n + max_seed_block - 1) / max_seed_block),
          counts_(runner.budget(), rows.n), gains_(runner.budget(), blocks_ * most), largest_(runner.budget(), blocks_)
    {
        std::copy(nearest, nearest + rows.n, counts_.begin());
        for_blocks([&](std::int64_t block, std::int64_t, std::int64_t) { find_largest(block); });
    }

    void group(const std::vector<const T *> &) {}
    void group_again(const std::vector<const T *> &) {}
    double largest() const { return *std::max_element(largest_.begin(), largest_.end()); }

    int find_best(const std::vector<const T *> &candidates, double)
    {
        const std::size_t count = candidates.size();
        candidates_.clear();
        for (const T *candidate : candidates)
            candidates_.push_back(bits_.row((candidate - rows_.values) / rows_.d));
        for_blocks([&](std::int64_t block, std::int64_t first, std::int64_t rows) {
            kernels_.gains(bits_.row(first), rows, words_, counts_.data() + first, candidates_.data(),
                           static_cast<int>(count), gains_.data() + block * static_cast<std::int64_t>(count));
        });
        std::vector<std::uint64_t> all(count, 0); // at most 2^16 for each of 2^32 rows
        for (std::int64_t i = 0; i < blocks_ * static_cast<std::int64_t>(count); ++i)
            all[i % count] += gains_[i];
        return static_cast<int>(std::max_element(all.begin(), all.end()) - all.begin());
    }

    template <typename Subtract>
    void choose(int best, std::int32_t index, double scale, Subtract &&subtract)
    {
        for_blocks([&](std::int64_t block, std::int64_t first, std::int64_t rows) {
            std::int32_t nearer[max_seed_block], counts[max_seed_block];
            const int found = kernels_.nearer(bits_.row(first), rows, words_, counts_.data() + first, candidates_[best],
                                              nearer, counts);
            for (int i = 0; i < found; ++i) {
                const std::int64_t row = first + nearer[i];
                const auto square = static_cast<double>(counts[i]);
                subtract(row, static_cast<std::uint64_t>(quantise_mass(nearest_[row], scale) -
                                                         quantise_mass(square, scale)));
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
    void find_largest(std::int64_t block)
    {
        const std::int64_t first = block * max_seed_block, last = std::min(rows_.n, first + max_seed_block);
        largest_[block] = static_cast<double>(*std::max_element(counts_.data() + first, counts_.data() + last));
    }

    const BlockRunner &runner_;
    SeedRows<T> rows_;
    const BitKernels &kernels_;
    double *nearest_;
    std::int32_t *labels_;
    const BitRows<T> &bits_;
    std::int64_t words_, blocks_;
    Buffer<std::int32_t> counts_; // the squared distance to the nearest chosen row
    Buffer<std::uint64_t> gains_; // blocks x trials
    Buffer<double> largest_;
    std::vector<const std::uint64_t *> candidates_;
};

} // namespace pgkm::cpu
