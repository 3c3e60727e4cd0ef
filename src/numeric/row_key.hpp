// row_key.hpp - the order of rows that their contents alone decide: canonical order.
//
// Seeding draws rows in this order, so that first centroids do not depend on the order in which rows arrive. Rows are
// ordered by key, a hash, then by content. Rows of equal content are interchangeable.
//
// A key is the sum of one term a word, so that lanes, threads and warps may share a row, and a last mix. Words are the
// row's bits cut into 32: one a feature for float32, two for float64, the lower half first. -0 counts as +0.
#pragma once

#include <cstdint>
#include <cstring>

#include "numeric/platform.hpp"

namespace pgkm {

// 2^64 divided by the golden ratio: its multiples mark the positions of words.
inline constexpr std::uint64_t key_step = 0x9E3779B97F4A7C15u;

// The marks of word `index`.
PGKM_HD inline std::uint64_t key_mark(std::uint64_t index)
{
    return (index + 1) * key_step;
}

// What a word adds to the key: a product of 32 x 32 bits.
PGKM_HD inline std::uint64_t key_term(std::uint32_t word, std::uint64_t mark)
{
    const std::uint32_t left = word ^ static_cast<std::uint32_t>(mark);
    const std::uint32_t right = word + static_cast<std::uint32_t>(mark >> 32);
    return std::uint64_t{left} * right;
}

// The last mix (splitmix64's): every bit of the sum reaches the upper bits, which choose buckets.
PGKM_HD inline std::uint64_t finish_key(std::uint64_t sum)
{
    sum = (sum ^ (sum >> 30)) * 0xBF58476D1CE4E5B9u;
    sum = (sum ^ (sum >> 27)) * 0x94D049BB133111EBu;
    return sum ^ (sum >> 31);
}

// The bits of a value; those of +0 for -0.
PGKM_HD inline std::uint32_t key_bits(float value)
{
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits == 0x80000000u ? 0 : bits;
}
PGKM_HD inline std::uint64_t key_bits(double value)
{
    std::uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits == 0x8000000000000000u ? 0 : bits;
}

// What feature `f` of a row adds to the key.
PGKM_HD inline std::uint64_t feature_term(float value, std::int64_t f)
{
    return key_term(key_bits(value), key_mark(static_cast<std::uint64_t>(f)));
}
PGKM_HD inline std::uint64_t feature_term(double value, std::int64_t f)
{
    const std::uint64_t bits = key_bits(value), word = 2 * static_cast<std::uint64_t>(f);
    return key_term(static_cast<std::uint32_t>(bits), key_mark(word)) +
           key_term(static_cast<std::uint32_t>(bits >> 32), key_mark(word + 1));
}

template <typename T>
PGKM_HD inline std::uint64_t row_key(const T *x, int d)
{
    std::uint64_t sum = 0;
    for (int f = 0; f < d; ++f)
        sum += feature_term(x[f], f);
    return finish_key(sum);
}

// Below 0, 0 or above 0: the order of two rows by content, features in order, compared as numbers.
template <typename T>
PGKM_HD inline int compare_content(const T *x, const T *y, int d)
{
    for (int f = 0; f < d; ++f)
        if (x[f] != y[f])
            return x[f] < y[f] ? -1 : 1;
    return 0;
}

// The same of rows of bits in words.
inline int compare_content(const std::uint64_t *x, const std::uint64_t *y, int words)
{
    return std::memcmp(x, y, static_cast<std::size_t>(words) * sizeof *x);
}

// A value as it stands in a first centroid: -0 becomes +0.
template <typename T>
PGKM_HD inline T without_minus_zero(T value)
{
    return value == T(0) ? T(0) : value;
}

} // namespace pgkm
