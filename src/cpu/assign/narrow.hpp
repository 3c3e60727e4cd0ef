// narrow.hpp - rows and centroids as 16-bit integers: scores at twice the speed of float32, within a proven bound.
//
// The bound. All lengths are in a unit g, a power of two near the length of the first centroids. Let X be a centred
// row, t its unit and x its integers, r >= |X / t - x|; C, s, c and e >= |C - s c| the same of a centroid. The score
// stands for T / t, T = |C|^2 / 2 - X.C, which orders centroids as distances do. With u = 2^-24 and N = 46140 >= |x|,
// |c|.
// N holds for all d up to 2^16: float32 sums squares to at least 1 - (d + 1) u of them, in one lane and without a fused
// operation, so |X / t| <= 45800 (1 - (2^16 + 1) u)^(-1/2) (1 + 8 u) < 45890, and whole numbers add d^1/2 / 2 <= 128.
//
//   1. |(X / t).C - s (x.c)| <= |x| e + r |C| <= N e + r |C|. The integer x.c is exact: it is below N^2 < 2^31.
//   2. Float32 takes x.c, its product with s, and the difference: 8 u N (|C| + e) covers them.
//   3. |C|^2 / 2 / t is rounded five times at most. It is taken smaller by 16 u first, so that no score is too high.
//
// So with margin M = 1.001 (N e + r |C| + 8 u N (|C| + e)) the score less M is at most T / t, and falls short of it by
// 2 M + 32 u |C|^2 / 2 / t at most. `limits` adds that to the lowest score, and what D's float64 may be off: with
// q = (d + 4) 2^-51, the nearest by D has a T / t that is larger by 3 q (|X|^2 + |C|^2) / t at most. The part of |C| is
// in a larger share of |C|^2 / 2 / t, that of |X| is added to each row's limit: |X| / t <= N + r.
//
// r and e are measured: the float32 residual of narrow_kernels.hpp, 0.004 for each feature whose value is rounded
// before it becomes an integer, and 0.01 for centring in float32. Rows that are not kept take r at its most, 0.505
// d^1/2.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/kernels/narrow_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

// What a worker needs of a block of rows.
struct NarrowScratch {
    NarrowScratch(Budget &budget, int words);
    const float *head(int word) const { return reinterpret_cast<const float *>(block.data()) + word * tiled_width; }
    const float *inverse() const { return head(0); }
    const float *unit() const { return head(1); }
    const float *square() const { return head(2); }
    const float *length() const { return head(3); }
    Buffer<std::int32_t> rows;  // tiled_width x words, where rows are not kept
    Buffer<std::int32_t> block; // words x tiled_width: a NarrowRow and pairs
};

template <typename T>
class Narrow {
  public:
    // Rows less `shift` (d; it stays the caller's), of which centroids are about `length` long. `keep`: they are made
    // once and kept, if there is room.
    Narrow(const Rows<T> &rows, const T *shift, double length, bool keep);

    // The centroids ids[0 .. count) of `centroids` (k x d) from now on. False where float32 does not hold them.
    bool set(const T *centroids, const std::int32_t *ids, std::int64_t count);

    // Packs listed rows. open[i] < 0 from then on where float32 does not hold row i.
    void load(NarrowScratch &scratch, const T *const *points, const std::int64_t *rows, int count,
              std::int32_t *open) const;
    // Scores of the block with `count` panels from centroid `first` on.
    void score(const NarrowScratch &scratch, std::int64_t first, std::int64_t count, float *scores,
               const Lowest &lowest) const;
    // Lowers the limits by the lowest scores.
    void limits(const NarrowScratch &scratch, const Lowest &lowest, float *limit) const;

    int words() const { return words_; }
    // squares[i]: that of the distance from row i to a centroid of such a score (T / t), at most or at least.
    void squares_above(const NarrowScratch &scratch, const float *scores, double *squares) const;
    void squares_below(const NarrowScratch &scratch, const float *scores, double *squares) const;
    // The score of a centroid at such a squared distance from row i, at most.
    double score_above(const NarrowScratch &scratch, int i, double square) const;

  private:
    static constexpr std::int64_t most_features = 1 << 16;
    void keep_rows();
    double set_panel(const T *centroids, const std::int32_t *ids, std::int64_t count, std::int64_t panel);

    Rows<T> rows_;
    const NarrowKernels &kernels_;
    const T *shift_;
    int words_;           // of a row
    double unit_;         // g
    double sum_error_;    // of a sum of squares, relative
    double row_residual_; // r
    NarrowBlock block_of(const NarrowScratch &scratch) const;
    Buffer<std::int32_t> kept_; // n x words, or none
    Buffer<std::int32_t> panels_;
    Buffer<float> start_, scale_, margin_;
};

} // namespace pgkm::cpu
