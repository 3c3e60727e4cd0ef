// bounds.hpp - float32 bounds on distances, every rounding to the safe side.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Float32 rounding moves a value by at most 2^-24 of it; bounds step outward by this share.
inline constexpr float outward = 0x1p-22f;
// The same for values so small that shares of them vanish.
inline constexpr float outward_step = 0x1p-126f;

// Bounds on the true distance from an exact D of float64 arithmetic: its relative error is at most
// (d + 3) 2^-53, and its square root is taken with more than that, and the rounding to float32, to
// the safe side. Squares below 2^-1074 were lost; outward_step covers them.
inline float distance_above(double square)
{
    return static_cast<float>(std::sqrt(square)) * (1.0f + outward) + outward_step;
}

inline float distance_below(double square)
{
    const double root = std::min(std::sqrt(square), static_cast<double>(std::numeric_limits<float>::max()));
    return static_cast<float>(root) * (1.0f - outward) - outward_step;
}

} // namespace pgkm::cpu
