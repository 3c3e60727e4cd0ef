// tiled.hpp - filter and settle: scores for all centroids, exact distances for few.
//
// Method: distances as a tiled matrix product (Li, Zhao, Chu, Liu 2010, high dimension), here only
// as a filter: centroids whose score is within a proven error bound of the lowest are candidates. Distances of the
// rows' own precision thin them out, and what is still open is settled by the contract's D. Where rows have many
// features and images that pay (images.hpp), scores are those of the images, in float32; where features take two values
// each, sums of integers for those that have the rarer one (marks.hpp); else those of the rows as 16-bit integers
// (narrow.hpp). When to use: many features and many centroids.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/assign/bounds_of_rows.hpp"
#include "cpu/assign/direct.hpp"
#include "cpu/assign/images.hpp"
#include "cpu/assign/marks.hpp"
#include "cpu/assign/narrow.hpp"
#include "cpu/assign/score_bound.hpp"
#include "cpu/kernels/pair_kernels.hpp"
#include "cpu/kernels/tiled_kernels.hpp"

namespace pgkm::cpu {

inline constexpr float largest_float = std::numeric_limits<float>::max();

inline std::int64_t panels_for(std::int64_t count)
{
    return (count + tiled_panel - 1) / tiled_panel;
}

// Rounded up.
inline float float_above(double value)
{
    return static_cast<float>(value + std::fabs(value) * 0x1p-22 + 0x1p-140);
}

template <typename T>
class Tiled final : public Assigner<T> {
  public:
    Tiled(const Rows<T> &rows, Purpose purpose);
    Assignment strategy() const override { return Assignment::tiled; }
    int rows_at_once() const override { return cached_rows(rows_); }
    void begin(const T *centroids) override;
    void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) override;

    // Whether scores are those of images, or of marks; from the first begin() on.
    bool has_images() const { return images_ != nullptr; }
    bool has_marks() const { return marks_ != nullptr; }

    // Labels and bounds of listed rows; count <= tiled_width.
    void assign_block(int worker, const std::int64_t *rows, int count, std::int32_t *labels, const Bounds &bounds);

    const SquareBounds<T> &square_bounds() const { return square_bounds_; }

    // half[j] receives half the distance from centroid j to the nearest other one, at most; 0 without images.
    void halve_distances(float *half);

  private:
    static constexpr int max_candidates = 32; // of a row

    // What scores need: images so many features, narrow rows so many words, marks so many scores of a row.
    struct Room {
        std::int64_t padded = 0;
        int features = 0, words = 0;
        std::int64_t width = 0;
        std::int64_t range = 0; // centroids at a time, else
    };
    // One block of rows.
    struct Scratch {
        Scratch(Budget &budget, const Room &room);
        Buffer<float> block;  // d x tiled_width, of centroids that get images
        Buffer<float> image;  // features x tiled_width
        NarrowScratch narrow; // without images
        MarkScratch marks;
        Buffer<float> scores; // range x tiled_width
        Buffer<Hit> hits;     // the same, or width
        Buffer<float> best, second, index, limit, square;
        Buffer<double> slack, error, length; // of a score; of an image; of the point
        Buffer<Hit> candidates;              // tiled_width x max_candidates, ascending per row
        Buffer<std::int32_t> found;          // candidates of each row; -1: no bound holds
        Buffer<const T *> x, c;              // pairs to settle
        Buffer<std::int32_t> cluster;        // of each pair
        Buffer<double> result;               // their distances
        const T *rows[tiled_width];
        double upper[tiled_width], lower[tiled_width]; // squared distance of the label; distance of the others
        std::int64_t seen = 0;                         // rows since begin(), to see whether the filter pays
        std::int64_t work = 0;                         // candidates that they had
        bool measures = false;                         // distances to the nearest image are worth their time
    };

    void set_shift(const T *centroids);
    void number(const T *centroids);
    double longest_of(const T *centroids) const;
    void begin_first();
    void begin_images();
    double set_images(std::int64_t first, int worker);
    Scratch &scratch(int worker);
    bool pays(const Scratch &scratch) const;
    void forget(Scratch &scratch) const;
    void load(Scratch &scratch, const std::int64_t *rows, int count) const;
    void load_images(Scratch &scratch, const std::int64_t *rows, int count) const;
    void reach(Scratch &scratch, int count) const;
    void multiply(Scratch &scratch, std::int64_t first, std::int64_t panels) const;
    void score(Scratch &scratch, int count) const;
    void score_narrow(Scratch &scratch, int count) const;
    void score_marks(Scratch &scratch, const std::int64_t *rows, int count) const;
    void lower_limits(Scratch &scratch, int count, const float *before) const;
    void measure(Scratch &scratch, int row, float index) const;
    void lower_limit(Scratch &scratch, int row, double square) const;
    void collect(Scratch &scratch, std::int64_t first, std::int64_t hits, int count) const;
    void thin_out(Scratch &scratch, int row, bool exact) const;
    void settle(Scratch &scratch, int count, std::int32_t *labels) const;
    void give_bounds(const Scratch &scratch, int count, const std::int32_t *labels, const Bounds &bounds) const;
    void give_narrow_bounds(Scratch &scratch, int count, const std::int32_t *labels, const Bounds &bounds) const;
    void assign_open(Scratch &scratch, int worker, int count, std::int32_t *labels);
    const T *centroid(std::int64_t unique) const { return centroids_ + std::int64_t{ids_[unique]} * rows_.d; }

    Rows<T> rows_;
    Purpose purpose_;
    const TiledKernels &kernels_;
    const PairKernels &pairs_;
    const SquareBounds<T> square_bounds_;
    const T *centroids_ = nullptr;
    int features_; // of panels: d, or the images'
    std::int64_t panel_count_;
    std::int64_t range_ = 0;   // centroids scored at a time, a multiple of tiled_panel
    std::int64_t count_ = 0;   // different centroids
    Buffer<std::int32_t> ids_; // their numbers, ascending, each the lowest of its twins
    Buffer<char> has_twin_;    // of all centroids
    Buffer<T> shift_;          // d
    std::unique_ptr<Images<T>> images_;
    std::unique_ptr<Marks<T>> marks_;
    std::unique_ptr<Narrow<T>> narrow_; // without images and marks
    bool holds_ = true;                 // the scores of either hold the centroids
    bool any_twin_ = false;
    Buffer<float> panels_;
    Buffer<float> start_; // |c|^2 / 2 per centroid
    Buffer<float> rest_;  // last feature of their images
    ScoreBound bound_;
    double centroid_error_ = 0.0;                   // of their images, at most
    std::vector<std::unique_ptr<Scratch>> scratch_; // made by the worker that needs it
    std::mutex mutex_;
    std::unique_ptr<Direct<T>> direct_;         // for rows without a bound, from the first on
    std::int64_t round_ = 0, direct_round_ = 0; // calls of begin(); the one whose centroids it has
};

} // namespace pgkm::cpu
