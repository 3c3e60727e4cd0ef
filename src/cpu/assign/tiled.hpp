// tiled.hpp - filter and settle: scores for all centroids, exact distances for few.
//
// Method: distances as a tiled matrix product (Li, Zhao, Chu, Liu 2010, high dimension), here only
// as a filter: centroids whose score is within a proven error bound of the lowest are candidates. Distances of the
// rows' own precision thin them out, and what is still open is settled by the contract's D. The filter is one of
// cpu/encode: distances of the rows' own precision to few centroids; bits where most features take two values;
// projections where rows have many features and they pay; else 16-bit integers. When to use: many features and many
// centroids, or few centroids.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/assign/direct.hpp"
#include "cpu/encode/encoded.hpp"
#include "cpu/kernels/exact_kernels.hpp"

namespace pgkm::cpu {

// What an assignment tells about rows beside their labels: distances to their centroid, at most, and to any other one,
// at least.
struct Bounds {
    float *upper;
    float *lower;
};

template <typename T>
class Tiled final : public Assigner<T> {
  public:
    Tiled(const Rows<T> &rows, Purpose purpose);
    Assignment strategy() const override { return Assignment::tiled; }
    int rows_at_once() const override { return cached_rows(rows_); }
    void begin(const T *centroids) override;
    void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) override;

    // From the first begin() on.
    const Filter<T> &filter() const { return *filter_; }

    // Labels and bounds of listed rows; count <= tiled_width.
    void assign_block(int worker, const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds);

  private:
    static constexpr int max_candidates = 32; // of a row

    // One block of rows.
    struct Scratch {
        void make_room(Budget &budget); // for candidates
        FilterBlock block;
        const T *rows[tiled_width];
        Buffer<Hit> candidates;       // tiled_width x max_candidates, ascending per row
        Buffer<const T *> x, c;       // pairs to settle
        Buffer<std::int32_t> cluster; // of each pair
        Buffer<double> result;        // their distances
        // Squares that were measured: of the label, at most; of others, at least.
        double upper[tiled_width], lower[tiled_width];
        std::int64_t seen = 0; // rows since begin(), to see whether the filter pays
        std::int64_t work = 0; // candidates that they had
        bool measures = false; // distances to the lowest score are worth their time
    };

    std::unique_ptr<Filter<T>> choose_filter();
    bool pays(const Scratch &scratch) const;
    void score(Scratch &scratch) const;
    void measure(Scratch &scratch, int row) const;
    void lower_limit(Scratch &scratch, int row, double square) const;
    void collect(Scratch &scratch, std::int64_t first, std::int64_t hits) const;
    void thin_out(Scratch &scratch, int row, bool exact) const;
    void settle(Scratch &scratch, std::int32_t *labels) const;
    void give_bounds(Scratch &scratch, const std::int32_t *labels, const Bounds &bounds) const;
    void assign_open(Scratch &scratch, int worker, std::int32_t *labels);

    Rows<T> rows_;
    Purpose purpose_;
    const ExactKernels &exact_;
    const SquareBounds<T> square_bounds_;
    const T *values_ = nullptr; // of all centroids
    DifferentCentroids<T> centroids_;
    std::unique_ptr<Filter<T>> filter_;
    bool holds_ = false;           // the scores hold the centroids
    std::vector<Scratch> scratch_; // of each worker
    std::mutex mutex_;
    std::unique_ptr<Direct<T>> direct_;         // for rows without a bound, from the first on
    std::int64_t round_ = 0, direct_round_ = 0; // calls of begin(); the one whose centroids it has
};

} // namespace pgkm::cpu
