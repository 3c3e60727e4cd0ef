// tiled.hpp - filter and settle: float32 scores for all centroids, exact distances for few.
//
// Method: distances as a tiled matrix product (Li, Zhao, Chu, Liu 2010, high dimension), here only
// as a filter: centroids whose score is within a proven error bound of the lowest are candidates,
// and more than one candidate is settled by the contract's D. When to use: many features and many
// centroids without structure that bounds could use.
#pragma once

#include <memory>
#include <vector>

#include "cpu/assign/assigner.hpp"
#include "cpu/assign/direct.hpp"
#include "cpu/kernels/pair_kernels.hpp"
#include "cpu/kernels/tiled_kernels.hpp"

namespace pgkm::cpu {

// What separates a float32 score from its exact value; tiled.cpp derives it.
class ScoreBound {
  public:
    ScoreBound() = default;
    ScoreBound(std::int32_t d, double largest_centroid, bool fused);

    // Twice the bound plus what the rounding of D may add: no centroid whose score exceeds the lowest
    // by more can be nearest. Infinite where float32 cannot hold the scores.
    double margin(double norm_square) const;

  private:
    double d_ = 0.0;
    double largest_ = 0.0; // length of the longest centred centroid
    double product_ = 0.0; // relative error of a product x.c, in terms of the lengths
    double half_square_ = 0.0;
};

template <typename T>
class Tiled final : public Assigner<T> {
  public:
    explicit Tiled(const Rows<T> &rows);
    Assignment strategy() const override { return Assignment::tiled; }
    int rows_at_once() const override { return cached_rows(rows_); }
    void begin(const T *centroids) override;
    void assign(int worker, std::int64_t first, int count, std::int32_t *labels, double *distances) override;

    // The same for any rows of the problem, by their addresses; count <= tiled_width.
    void assign_block(int worker, const T *const *rows, int count, std::int32_t *labels, double *distances);

  private:
    static constexpr int max_candidates = 24; // per point; more go to the direct kernel

    struct Scratch {
        Scratch(Budget &budget, std::int32_t d, std::int64_t range);
        Buffer<float> block;  // d x tiled_width
        Buffer<float> scores; // range x tiled_width
        Buffer<Hit> hits;     // the same
        Buffer<float> best, limit, square;
        Buffer<double> margin;
        Buffer<Hit> candidates;      // tiled_width x max_candidates, ascending per point
        Buffer<std::int32_t> found;  // candidates per point; more than fit: direct
        Buffer<const T *> x, c;      // pairs to settle
        Buffer<double> result;       // their distances
        Buffer<const T *> left_rows; // points for the direct kernel
        int left = 0;
        std::int64_t rows = 0; // since begin(), to see whether the filter pays
        std::int64_t work = 0; // distances that had to be settled for them
    };

    void set_shift(const T *centroids);
    double set_panel(const T *centroids, std::int64_t panel);
    void score(Scratch &scratch, int count) const;
    void collect(Scratch &scratch, std::int64_t first, std::int64_t hits, int count) const;
    int list_pairs(Scratch &scratch, const T *const *rows, int count, std::int32_t *labels, bool all) const;
    void settle(Scratch &scratch, int worker, const T *const *rows, int count, std::int32_t *labels, double *distances);
    bool pays(const Scratch &scratch) const;

    Rows<T> rows_;
    const TiledKernels &kernels_;
    const PairKernels &pairs_;
    Direct<T> direct_;
    const T *centroids_ = nullptr;
    std::int64_t panel_count_;
    std::int64_t range_; // centroids scored at a time
    Buffer<T> shift_;    // d
    Buffer<float> panels_;
    Buffer<float> start_; // |c|^2 / 2 per centroid
    ScoreBound bound_;
    std::vector<std::unique_ptr<Scratch>> scratch_; // made by the worker that needs it
};

} // namespace pgkm::cpu
