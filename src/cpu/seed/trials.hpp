// trials.hpp - the trials of a step of greedy k-means++: which lowers the potential most, and its choice.
//
// What the filter knows of the rows that a trial may win bounds by how much it lowers the potential. Mostly that shows
// which trial is the best. Where it does not, exact distances do, of those trials alone. The chosen one's are taken
// anyway. Where the filter has projections of the rows (encode/projection.hpp), distances of the rows' own precision
// give the bounds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/kernels/exact_kernels.hpp"
#include "cpu/seed/tiles.hpp"
#include "numeric/philox.hpp"

namespace pgkm::cpu {

// squares[i] = D(row i, to[labels[i]]) of all rows; labels NULL: all are 0.
template <typename T>
void distances_to(const BlockRunner &runner, const SeedRows<T> &rows, const T *const *to, const std::int32_t *labels,
                  double *squares);

// The trials that may be the best, in their order, by bounds of what each gains.
std::vector<int> contested_trials(const std::vector<GainBounds> &gains);

// Point: the type of what the filter has of the rows, themselves or their projections.
template <typename T, typename Point = T>
class SeedTrials {
  public:
    // Takes from the mass of a row; from any thread.
    using Subtract = std::function<void(std::int64_t row, std::uint64_t mass)>;

    // nearest and labels are the sampler's; a choice changes them. At most `most` trials a step. points: the rows, or
    // projections, none of which are farther apart than their rows and `error`.
    SeedTrials(const BlockRunner &runner, const SeedRows<T> &rows, double *nearest, std::int32_t *labels, int most,
               const SeedRows<Point> &points, double error);
    ~SeedTrials();

    // Groups the rows around the chosen ones, which stay the caller's.
    void group(const std::vector<const T *> &chosen);
    // The same, when the last time was long enough ago.
    void group_again(const std::vector<const T *> &chosen);

    // The largest weight * squared distance.
    double largest() const { return *std::max_element(largest_.begin(), largest_.end()); }

    // The trial that leaves the smallest potential in integers of this scale, the first on a tie.
    int find_best(const std::vector<const T *> &candidates, double scale);
    // The same in two steps, for trials over several servers: bounds of what each trial takes from the potential; and
    // that number itself, of those that are asked for. The sum of bounds may be off by 2^-40 of itself.
    std::vector<GainBounds> bound_gains(const std::vector<const T *> &candidates, double scale);
    std::vector<UInt128> find_gains(const std::vector<int> &which, double scale);
    // Chooses the trial that was the best; it is the index-th chosen row. Masses are integers of the scale.
    void choose(int best, std::int32_t index, double scale, const Subtract &subtract);

  private:
    // A row that a trial may win: the place within the task in the lower half, the trial in the upper.
    using Hit = std::uint32_t;
    // What a thread works with.
    struct Worker;

    std::int64_t first_tile(std::int64_t task) const { return task * seed_task_tiles; }
    std::int64_t last_tile(std::int64_t task) const { return std::min(tiles_.size(), (task + 1) * seed_task_tiles); }
    // For hits of a task.
    std::int64_t room(std::int64_t task) const
    {
        return hits_.size() == 0 ? 0 : (last_tile(task) - first_tile(task)) * seed_tile_rows;
    }
    Worker &worker(int number);
    std::vector<const Point *> points_of(const std::vector<const T *> &rows) const;
    void look_at(const std::vector<const T *> &candidates);
    GainBounds thin_out(std::int64_t tile, const T *candidate, std::uint64_t &bits) const;
    double copies_of(std::int64_t tile, std::uint64_t bits) const;
    void screen(std::int64_t task, Worker &worker, double scale);
    template <typename Win>
    void settle(std::int64_t task, Worker &worker, Win &&win);
    void find_largest(std::int64_t task);

    const BlockRunner &runner_;
    SeedRows<T> rows_;
    double *nearest_;
    std::int32_t *labels_;
    int most_;
    SeedRows<Point> points_;
    const bool is_projected_;
    SquareBounds<T> square_bounds_; // with projections
    SeedTiles<Point> tiles_;
    std::vector<const Point *> looked_at_; // by workers
    std::size_t next_group_ = 0;           // chosen rows
    std::int64_t tasks_ = 0;
    std::vector<const T *> candidates_; // of the step
    std::vector<int> wanted_;           // the trials whose hits are settled
    Buffer<Hit> hits_;                  // room for as many as the task has places; none where memory is short
    Buffer<std::int64_t> n_hits_;       // per task; more than room(): not all are kept
    Buffer<GainBounds> bounds_;         // tasks x most: by how much each trial lowers the potential
    Buffer<UInt128> gains_;             // the same, exactly
    Buffer<double> largest_;            // per task
    std::vector<std::unique_ptr<Worker>> workers_;
};

} // namespace pgkm::cpu
