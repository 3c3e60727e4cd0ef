// bit_rows.hpp - rows of bits in words of 64 (backend.h says which feature is which bit).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm {

using BitWord = std::uint64_t;
inline constexpr int word_bits = 64;

constexpr std::int64_t bit_words(std::int32_t d)
{
    return (std::int64_t{d} + word_bits - 1) / word_bits;
}

// The feature at place p of a word, counted from the lowest bit; and the place of that feature.
constexpr int in_word(int p)
{
    return p ^ (std::endian::native == std::endian::little ? 7 : word_bits - 1);
}

constexpr bool bit_of(const BitWord *row, std::int64_t feature)
{
    return (row[feature / word_bits] >> in_word(static_cast<int>(feature % word_bits)) & 1) != 0;
}

// A row of d bits as values of 0 and 1, and back.
template <typename T>
void values_of_bits(const BitWord *row, std::int32_t d, T *values)
{
    for (std::int32_t f = 0; f < d; ++f)
        values[f] = bit_of(row, f) ? T{1} : T{0};
}
template <typename T>
void bits_of_values(const T *values, std::int32_t d, BitWord *row)
{
    std::fill_n(row, bit_words(d), BitWord{0});
    for (std::int32_t f = 0; f < d; ++f)
        row[f / word_bits] |= BitWord{values[f] != T{0}} << in_word(f % word_bits);
}

} // namespace pgkm
