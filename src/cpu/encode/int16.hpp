// int16.hpp - rows and centroids as 16-bit integers: scores at twice the speed of float32, within a proven bound.
//
// The bound. All lengths are in a unit g, a power of two near the length of rows. Let X be a row less the middle, t its
// unit and x its integers, r >= |X / t - x|; C, s, c and e >= |C - s c| the same of a centroid. The score stands for
// T / t, T = |C|^2 / 2 - X.C, which orders centroids as distances do. With u = 2^-24 and N = 46140 >= |x|, |c|.
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
// r and e are measured: the float32 residual of int16_kernels.hpp, 0.004 for each feature whose value is rounded
// before it becomes an integer, and 0.01 for centring in float32. Rows that are not kept take r at its most, 0.505
// d^1/2.
//
// A square of a distance follows from a score S: |X|^2 + 2 t S, where |X|^2 is a float32 sum of d squares, off by
// 2.02 u (d + 4) of it and d 2^-147 at most.
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/encode/centre.hpp"
#include "cpu/encode/filter.hpp"
#include "cpu/kernels/int16_kernels.hpp"

namespace pgkm::cpu {

// How points become integers.
template <typename T>
struct Int16Code {
    const T *middle; // d
    std::int32_t d;
    double unit;               // g, a power of two
    double row_residual = 0.0; // r

    static constexpr std::int32_t most_features = 1 << 16;
    // The unit for lengths about so long.
    static double unit_near(double length);
    // r by the largest residual that was measured, or at its most.
    double residual_above(double measured) const;
    double most_residual() const;
    // Of a sum of squares, relative, and for what underflows.
    double sum_error() const { return 2.02 * 0x1p-24 * (d + 4.0); }
    double least_square() const { return d * 0x1p-147; }
    // The T / t of a centroid at such a squared distance from a row, at most.
    double score_above(double square_of_row, double unit_of_row, double square) const
    {
        const double own = square_of_row * (1.0 - sum_error()) - least_square();
        const double inverse = 1.0 / unit;
        return (square * (1.0 + 0x1p-49) * inverse * inverse - own) / (2.0 * unit_of_row);
    }
};

// Rows of a problem as integers: kept, or made each time that they are loaded.
template <typename T>
class Int16Rows {
  public:
    Int16Rows(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre);
    // Kept ones; NULL where memory does not allow them.
    static std::shared_ptr<const Int16Rows> make(const Rows<T> &rows, std::shared_ptr<const Centre<T>> centre);

    const Int16Code<T> &code() const { return code_; }
    bool is_kept() const { return words_.size() != 0; }
    const std::int32_t *row(std::int64_t i) const { return words_.data() + i * int16_words(code_.d); }

  private:
    std::shared_ptr<const Centre<T>> centre_;
    Int16Code<T> code_;
    Buffer<std::int32_t> words_; // n x int16_words(d), or none
};

// Room to encode tiled_width points at a time.
struct Int16Room {
    Int16Room(Budget &budget, std::int32_t d)
        : block(budget, std::int64_t{d} * tiled_width), words(budget, std::int64_t{int16_words(d)} * tiled_width)
    {
    }
    Buffer<float> block;
    Buffer<std::int32_t> words; // as the kernel leaves them
};

// What a score needs of a centroid beside its integers; in units of the row, but the first.
struct Int16Centroid {
    float start;  // half the square of its length, rounded down
    float scale;  // its unit; 0 where float32 does not hold it
    float margin; // M
};

// Encodes `count` centroids, tiled_width at most. Returns whether float32 holds all.
template <typename T>
bool encode_centroids(const Int16Kernels &kernels, const Int16Code<T> &code, const T *const *centroids, int count,
                      Int16Room &room, Int16Centroid *about);

// Encoded centroids as the panels of int16_kernels.hpp.
class Int16Store {
  public:
    Int16Store(Budget &budget, std::int64_t most, std::int32_t d);
    // Puts the i-th of encoded centroids at place j.
    void put(std::int64_t j, const Int16Room &room, int i, const Int16Centroid &about);
    // One that only fills the last panel: it scores too high to be hit.
    void put_none(std::int64_t j);
    Int16Panels from(std::int64_t first) const
    {
        return {values_.data() + first * pairs_, start_.data() + first, scale_.data() + first, margin_.data() + first};
    }

  private:
    std::int64_t pairs_;
    Buffer<std::int32_t> values_;
    Buffer<float> start_, scale_, margin_;
};

template <typename T>
std::unique_ptr<Filter<T>> int16_filter(const Rows<T> &rows, std::shared_ptr<const Int16Rows<T>> integers);

} // namespace pgkm::cpu
