// bits.hpp - rows of which most features take two values each, as sets of bits, and scores that filter.
//
// Of each such feature the usual value is one of the two, the more frequent in a sample; a row's bit says that the
// feature has the other. Let m be the mean of the sample, and T = |x - c|^2 - |x - m|^2, which orders centroids as
// distances do. T is that of the row a and, for each bit, a step: 2 (other - usual) (m_f - c_f). a is the row that has
// the usual values. So a score is a sum of one line of integers for each bit (bit_kernels.hpp), where products take one
// multiplication for each feature. Columns of 0 and 1, of which a row has few, become fast so; any two values do.
//
// The other features are numbers, an eighth of all at most. There a_f is m_f, and the row's step is 2 (x_f - m_f) (m_f
// - c_f): a line as if the values were g apart, times y = (x_f - m_f) / g, rounded to a whole number of 2^15ths.
//
// Rows that fit no such form, since a feature has a third value or a number is far out, have no bound. They are few.
//
// The bound. Let R be at least |x - m| of all other rows, C at least |c - m| of all centroids. T lies between L and C^2
// + 2 R C, where L = C^2 - 2 R C, or -R^2 if C > R. A unit u is taken so that this range is at most 60000 u, and that a
// number's line l is at most 32000 u. A score is E, the start less L, s steps and N products, each rounded to a
// multiple of u. Of a product y l / u the line is rounded as well, and y by 2^-16. So a score is off from E + (T - L) /
// u by e = (s + 1 + N + sum |y| + sum |l| 2^-15) (1/2 + 2^-10) at most. E keeps it above 0, and sums modulo 2^16 lose
// nothing, since the whole is below. 2^-10 covers what float64 does to start, steps, and y: |a - m| is at most R, as no
// feature has its other value in more than half of the sample; and |other - usual| is at most 2 R. u is at least (R +
// C)^2 (d + 4) 2^-38, so that it covers the error of the contract's D as well. So the nearest centroid by D scores at
// most 2 e more than the lowest.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpu/encode/filter.hpp"
#include "cpu/kernels/bit_kernels.hpp"

namespace pgkm::cpu {

// A block's scores with so many stay in cache.
inline constexpr std::int32_t most_bit_centroids = 4096;

template <typename T>
class BitRows {
  public:
    // Of rows of which most features take two values, if there is room; else NULL. can_be: false where they do not.
    static std::shared_ptr<const BitRows> make(const Rows<T> &rows, bool &can_be);

    std::int64_t words() const { return words_; } // of a row
    const std::uint64_t *row(std::int64_t i) const { return bits_.data() + i * words_; }
    // |x - m|^2; infinite where a row has no bound
    double square(std::int64_t i) const { return squares_[i]; }
    // Features that are numbers; what a row has of them, in 2^-15ths of their step, and the sum of their magnitudes.
    const std::vector<std::int32_t> &numbers() const { return numbers_; }
    const std::int16_t *values(std::int64_t i) const { return values_.data() + i * value_stride(); }
    double magnitude(std::int64_t i) const { return 0x1p-6 * values(i)[numbers_.size()]; }
    // Of each feature: a, and what a bit, or 2^15 of a number, adds to it.
    double start(std::int32_t f) const { return is_number(f) ? mean_[f] : static_cast<double>(usual_[f]); }
    double step(std::int32_t f) const
    {
        return is_number(f) ? steps_[f] : static_cast<double>(other_[f]) - static_cast<double>(usual_[f]);
    }
    const std::vector<double> &mean() const { return mean_; }
    double reach() const { return reach_; } // R
    int most() const { return most_; }      // bits of a row
    // What a row's scores take, in features of 16-bit integers.
    std::int32_t work() const { return most_ + 2 * static_cast<std::int32_t>(numbers_.size()); }
    // Whether the squared distance of two rows is the number of bits in which they differ.
    bool counts_distances() const;

  private:
    explicit BitRows(const Rows<T> &rows);
    bool sample(const Rows<T> &rows);
    bool find_values(const Rows<T> &rows, std::vector<std::int64_t> &others);
    bool fill(const Rows<T> &rows);
    double fill_values(const T *x, std::int16_t *values) const;
    bool is_number(std::int32_t f) const { return (marked_[f / 64] >> f % 64 & 1) == 0; }
    std::int64_t value_stride() const { return numbers_.empty() ? 0 : std::ssize(numbers_) + 1; }

    std::int64_t words_;
    std::vector<T> usual_, other_;
    std::vector<double> mean_;
    std::vector<std::uint64_t> marked_; // a bit for each feature of two values
    std::vector<std::int32_t> numbers_;
    std::vector<double> steps_; // of numbers: g
    Buffer<std::uint64_t> bits_;
    Buffer<std::int16_t> values_; // n x value_stride()
    Buffer<double> squares_;
    std::int64_t strange_ = 0; // rows without a bound
    double reach_ = 0.0;
    int most_ = 0;
};

// NULL where scores of k centroids, or sums of as many bits, do not fit.
template <typename T>
std::unique_ptr<Filter<T>> bit_filter(const Rows<T> &rows, std::shared_ptr<const BitRows<T>> bits);

} // namespace pgkm::cpu
