// marks.hpp - rows whose features take two values each, as sets of bits, and scores that filter.
//
// Of each feature the usual value is one of the two, the more frequent in a sample; a row's mark is a feature that has
// the other. Let m be the mean of the sample, and T = |x - c|^2 - |x - m|^2, which orders centroids as distances do. T
// is that of the row without marks and, for each mark, a step: 2 (other - usual) (m_f - c_f). So a score is a sum of
// one line of integers for each mark (mark_kernels.hpp), where products take one multiplication for each feature.
// Columns of 0 and 1, of which a row has few, become fast so; any two values do.
//
// The bound. Let R be at least |x - m| of all rows, C at least |c - m| of all centroids. T lies between L and C^2 + 2 R
// C, where L = C^2 - 2 R C, or -R^2 if C > R. A unit u is taken so that this range is at most 60000 u. A score is E,
// the start less L, and s steps, each rounded to a multiple of u, so it is off from E + (T - L) / u by e = (s + 1) (1/2
// + 2^-10) at most. E keeps it above 0, and sums modulo 2^16 lose nothing, since the whole is below. 2^-10 covers what
// float64 does to start and steps: |a - m|, a without marks, is at most R, as no feature has its other value in more
// than half of the sample; and |other - usual| is at most 2 R. u is at least (R + C)^2 (d + 4) 2^-38, so that it covers
// the error of the contract's D as well. So the nearest centroid by D scores at most 2 e more than the lowest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/kernels/mark_kernels.hpp"
#include "cpu/rows.hpp"

namespace pgkm::cpu {

// What a worker needs of a block of rows.
struct MarkScratch {
    MarkScratch(Budget &budget, std::int64_t width) : scores(budget, tiled_width * width) {}
    Buffer<std::uint16_t> scores;    // tiled_width x width
    std::int32_t sizes[tiled_width]; // marks of each row
    double squares[tiled_width];     // |x - m|^2
};

template <typename T>
class Marks {
  public:
    // Of rows whose features take two values each, if there is room; else none.
    static std::unique_ptr<Marks> make(const Rows<T> &rows);

    // The centroids ids[0 .. count) of `centroids` (k x d) from now on. False where scores cannot hold them.
    bool set(const T *centroids, const std::int32_t *ids, std::int64_t count);
    std::int64_t width() const { return width_; } // scores of a row, of all k centroids

    // Scores of listed rows with all centroids: the lowest of each, and how much a candidate's may be above it.
    void score(MarkScratch &scratch, const std::int64_t *rows, int count, const Lowest &lowest, float *limit) const;
    // The i-th row's hits at a limit.
    std::int64_t pick(const MarkScratch &scratch, int i, float limit, Hit *hits) const
    {
        return kernels_.at_most(scratch.scores.data() + i * used_, used_, static_cast<int>(limit), i, hits);
    }
    // Squares of distances of `count` rows: at most those of `scores`, at least those of `others`.
    void squares(const MarkScratch &scratch, int count, const float *scores, const float *others, double *most,
                 double *least) const;
    // The score of a centroid at such a squared distance from the i-th row, at most.
    double score_above(const MarkScratch &scratch, int i, double square) const;

  private:
    explicit Marks(const Rows<T> &rows);
    // 2 e of the i-th row, rounded up.
    static int slack(const MarkScratch &scratch, int i) { return scratch.sizes[i] + 2 + scratch.sizes[i] / 256; }
    bool sample();
    bool fill();
    const std::uint64_t *row(std::int64_t i) const { return bits_.data() + i * words_; }

    Rows<T> rows_;
    const MarkKernels &kernels_;
    std::int64_t words_; // of a row
    std::int64_t width_;
    std::vector<T> usual_, other_;
    std::vector<double> mean_;
    Buffer<std::uint64_t> bits_;
    Buffer<double> squares_; // |x - m|^2
    Buffer<std::uint16_t> start_, steps_;
    std::int64_t used_ = 0; // centroids, filled up
    double reach_ = 0.0;    // R
    int most_ = 0;          // marks of a row
    double unit_ = 1.0;     // u
    double lowest_ = 0.0;   // L - E u
};

} // namespace pgkm::cpu
