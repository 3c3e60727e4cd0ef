// bit_rows.hpp - the trials of a step where all values are 0 or 1: rows are bits, and distances counts of those that
// differ.
//
// Such a count is the contract's D itself, so nothing is left to settle. Masses are counts times a power of two that is
// at least 1 (square_exponent() of at most 2^16), so a trial's gain is that of its counts.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "cpu/kernels/mark_kernels.hpp"
#include "cpu/seed/runner.hpp"
#include "numeric/contract.hpp"

namespace pgkm::cpu {

// As SeedTrials.
template <typename T>
class BitRowTrials {
  public:
    // The bits of all rows without weights; none where a value is neither 0 nor 1, or memory does not allow them.
    static Buffer<std::uint64_t> pack(const BlockRunner &runner, const SeedRows<T> &rows)
    {
        const std::int64_t words = words_of(rows);
        const auto bytes = static_cast<std::uint64_t>(rows.n) * static_cast<std::uint64_t>(8 * words + 4);
        const auto is_bit = [](T value) { return value == T(0) || value == T(1); };
        if (rows.weights != nullptr || rows.d >= 1 << 16 || !std::all_of(rows.values, rows.values + rows.d, is_bit) ||
            !runner.budget().allows(bytes + (1 << 16)))
            return {};
        const std::vector<T> zeros(rows.d, T(0)), ones(rows.d, T(1));
        Buffer<std::uint64_t> bits(runner.budget(), rows.n * words);
        std::atomic<bool> holds = true;
        const std::int64_t size = seed_block_rows(rows.d);
        runner.run((rows.n + size - 1) / size, [&](std::int64_t block) {
            const MarkKernels &kernels = mark_kernels(runner.instruction_set());
            for (std::int64_t i = block * size; i < std::min(rows.n, (block + 1) * size) && holds; ++i)
                if (!kernels.mark(rows.row(i), rows.d, zeros.data(), ones.data(), bits.data() + i * words))
                    holds = false;
        });
        return holds ? std::move(bits) : Buffer<std::uint64_t>();
    }

    BitRowTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels, int most,
                 Buffer<std::uint64_t> bits)
        : runner_(runner), rows_(rows), kernels_(mark_kernels(runner.instruction_set())), nearest_(nearest),
          labels_(labels), words_(words_of(rows)), blocks_((rows.n + max_seed_block - 1) / max_seed_block),
          bits_(std::move(bits)), counts_(runner.budget(), rows.n), gains_(runner.budget(), blocks_ * most),
          largest_(runner.budget(), blocks_)
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
            candidates_.push_back(bits_.data() + (candidate - rows_.values) / rows_.d * words_);
        for_blocks([&](std::int64_t block, std::int64_t first, std::int64_t rows) {
            kernels_.gains(bits_.data() + first * words_, rows, words_, counts_.data() + first, candidates_.data(),
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
            const int found = kernels_.nearer(bits_.data() + first * words_, rows, words_, counts_.data() + first,
                                              candidates_[best], nearer, counts);
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
    static std::int64_t words_of(const SeedRows<T> &rows) { return (rows.d + 63) / 64; }
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
    const MarkKernels &kernels_;
    double *nearest_;
    std::int32_t *labels_;
    std::int64_t words_, blocks_;
    Buffer<std::uint64_t> bits_;
    Buffer<std::int32_t> counts_; // the squared distance to the nearest chosen row
    Buffer<std::uint64_t> gains_; // blocks x trials
    Buffer<double> largest_;
    std::vector<const std::uint64_t *> candidates_;
};

} // namespace pgkm::cpu
