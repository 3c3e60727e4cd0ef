// bits.hpp - rows whose features take two values each, as sets of bits, and scores that filter.
//
// Of each feature the usual value is one of the two, the more frequent in a sample; a row's bit says that the feature
// has the other. Let m be the mean of the sample, and T = |x - c|^2 - |x - m|^2, which orders centroids as distances
// do. T is that of the row without bits and, for each bit, a step: 2 (other - usual) (m_f - c_f). So a score is a sum
// of one line of integers for each bit (bit_kernels.hpp), where products take one multiplication for each feature.
// Columns of 0 and 1, of which a row has few, become fast so; any two values do.
//
// The bound. Let R be at least |x - m| of all rows, C at least |c - m| of all centroids. T lies between L and C^2 + 2 R
// C, where L = C^2 - 2 R C, or -R^2 if C > R. A unit u is taken so that this range is at most 60000 u. A score is E,
// the start less L, and s steps, each rounded to a multiple of u, so it is off from E + (T - L) / u by e = (s + 1) (1/2
// + 2^-10) at most. E keeps it above 0, and sums modulo 2^16 lose nothing, since the whole is below. 2^-10 covers what
// float64 does to start and steps: |a - m|, a without bits, is at most R, as no feature has its other value in more
// than half of the sample; and |other - usual| is at most 2 R. u is at least (R + C)^2 (d + 4) 2^-38, so that it covers
// the error of the contract's D as well. So the nearest centroid by D scores at most 2 e more than the lowest.
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
    // Of rows whose features take two values each, if there is room; else NULL. can_be: false where they do not.
    static std::shared_ptr<const BitRows> make(const Rows<T> &rows, bool &can_be);

    std::int64_t words() const { return words_; } // of a row
    const std::uint64_t *row(std::int64_t i) const { return bits_.data() + i * words_; }
    // |x - m|^2
    double square(std::int64_t i) const { return squares_[i]; }
    const std::vector<T> &usual() const { return usual_; }
    const std::vector<T> &other() const { return other_; }
    const std::vector<double> &mean() const { return mean_; }
    double reach() const { return reach_; } // R
    int most() const { return most_; }      // bits of a row
    // Whether the squared distance of two rows is the number of bits in which they differ.
    bool counts_distances() const;

  private:
    explicit BitRows(const Rows<T> &rows);
    bool sample(const Rows<T> &rows);
    bool fill(const Rows<T> &rows);

    std::int64_t words_;
    std::vector<T> usual_, other_;
    std::vector<double> mean_;
    Buffer<std::uint64_t> bits_;
    Buffer<double> squares_;
    double reach_ = 0.0;
    int most_ = 0;
};

// NULL where scores of k centroids, or sums of as many bits, do not fit.
template <typename T>
std::unique_ptr<Filter<T>> bit_filter(const Rows<T> &rows, std::shared_ptr<const BitRows<T>> bits);

} // namespace pgkm::cpu
