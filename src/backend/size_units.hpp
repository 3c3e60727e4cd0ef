// size_units.hpp - what sizes of clusters count where rows have weights: whole units, so that sums are exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "numeric/contract.hpp"

namespace pgkm {

// A unit is 2^-exponent. All rows together have at most 2^61 of them.
inline int size_exponent(std::int64_t n, int weight_exponent)
{
    return weight_exponent + 60 - value_bits - std::bit_width(static_cast<std::uint64_t>(n));
}

// At least one, so that no row is for nothing.
inline std::int64_t size_units(double weight, int exponent)
{
    return std::max<std::int64_t>(1, std::llrint(std::ldexp(weight, exponent)));
}

// As a weight, for messages.
inline std::string weight_text(double units, int exponent)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", std::ldexp(units, -exponent));
    return text;
}

} // namespace pgkm
