// few_rows.hpp - the trials of a step where rows are few: exact distances of all rows to all trials.
//
// Tiles (trials.hpp) take longer to make than they spare there. The groups of a GROUP BY are mostly so small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/seed/trials.hpp"

namespace pgkm::cpu {

// As SeedTrials.
template <typename T>
class FewRowTrials {
  public:
    static bool serves(const SeedRows<T> &rows) { return rows.n <= 256 && rows.n * rows.d <= 4096; }

    FewRowTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels, int most)
        : runner_(runner), rows_(rows), nearest_(nearest), labels_(labels), squares_(runner.budget(), most * rows.n),
          own_(runner.budget(), rows.n)
    {
    }

    void group(const std::vector<const T *> &) {}
    void group_again(const std::vector<const T *> &) {}

    double largest() const
    {
        double most = 0.0;
        for (std::int64_t row = 0; row < rows_.n; ++row)
            most = std::max(most, rows_.weight(row) * nearest_[row]);
        return most;
    }

    int find_best(const std::vector<const T *> &candidates, double scale)
    {
        for (std::int64_t row = 0; row < rows_.n; ++row)
            own_[row] = rows_.mass(row, nearest_[row], scale);
        int best = 0;
        std::uint64_t most = 0;
        for (std::size_t trial = 0; trial < candidates.size(); ++trial) {
            double *squares = squares_.data() + static_cast<std::int64_t>(trial) * rows_.n;
            distances_to(runner_, rows_, &candidates[trial], nullptr, squares);
            // Without a branch, which nothing could predict. The masses of a bucket of masses.hpp, as many, do not
            // overflow.
            std::uint64_t gain = 0;
            for (std::int64_t row = 0; row < rows_.n; ++row)
                gain += own_[row] - rows_.mass(row, std::min(squares[row], nearest_[row]), scale);
            if (gain > most) {
                most = gain;
                best = static_cast<int>(trial);
            }
        }
        return best;
    }

    template <typename Subtract>
    void choose(int best, std::int32_t index, double scale, Subtract &&subtract)
    {
        const double *squares = squares_.data() + best * rows_.n;
        for (std::int64_t row = 0; row < rows_.n; ++row) {
            if (!(squares[row] < nearest_[row]))
                continue;
            subtract(row, own_[row] - rows_.mass(row, squares[row], scale));
            nearest_[row] = squares[row];
            labels_[row] = index;
        }
    }

  private:
    const BlockRunner &runner_;
    SeedRows<T> rows_;
    double *nearest_;
    std::int32_t *labels_;
    Buffer<double> squares_;    // trials x n, of the last step
    Buffer<std::uint64_t> own_; // mass of each row before the step
};

} // namespace pgkm::cpu
