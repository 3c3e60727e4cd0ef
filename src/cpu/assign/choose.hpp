// choose.hpp - which assignment strategy serves a shape: a pure function of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/strategies.hpp"

namespace pgkm::cpu {

struct Shape {
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
    bool fused;              // the instruction set has a fused multiply-add
    bool repeats;            // more than one iteration is to come
    bool measures = false;   // D of the centroid that is found is wanted as well
    bool wide = false;       // rows of float64
    std::int32_t scored = 0; // features that take a filter as long as its own; 0: d
};

// Cycles per row, fitted to measurements with AVX-512 (bench/fits --strategies 1); the other sets change
// both by about the same factor.
inline double direct_cost(const Shape &shape)
{
    return 15.0 + 0.8 * shape.d + shape.k * (2.0 * shape.d + 3.0) / 16.0;
}

inline double tiled_cost(const Shape &shape)
{
    constexpr double width = 64.0; // of a block, which a few rows do not fill
    const double features = shape.scored == 0 ? shape.d : shape.scored;
    const double encoding = shape.repeats || shape.scored > 0 ? 0.0 : 1.5 * shape.d;
    return (56.0 + 0.72 * features + encoding + shape.k * (features + 12.0) / 50.0) *
           std::max(1.0, width / static_cast<double>(shape.n));
}

inline constexpr std::int32_t most_few = 16;

// Whether rows are compared with few centroids as they lie (distance_filter.hpp). Bounds then spare most rows of an
// iteration where clusters lie apart: on sets of that kind that is worth far more than integers gain on others.
inline bool has_few(const Shape &shape)
{
    const double features = shape.wide ? 2.0 * shape.d : shape.d;
    const double cost =
        38.0 + 0.17 * features + shape.k * (0.084 * features + 3.0) + (shape.measures ? 0.6 * shape.d : 0.0);
    return shape.fused && shape.k >= 2 && shape.k <= most_few &&
           cost * (shape.repeats ? 0.9 : 1.0) < direct_cost(shape) &&
           cost * (shape.repeats ? 0.7 : 1.0) < tiled_cost(shape);
}

// The best of those that look at every centroid.
inline Assignment choose_dense(const Shape &shape)
{
    constexpr std::int32_t most_features = 1 << 16; // a block of so many leaves the cache
    if (shape.k == 1 || shape.d > most_features)
        return Assignment::direct;
    if (!shape.fused) // an exact distance then calls a function per feature
        return shape.k < 4 ? Assignment::direct : Assignment::tiled;
    return has_few(shape) || tiled_cost(shape) < direct_cost(shape) ? Assignment::tiled : Assignment::direct;
}

// Whether bounds on distances hold, and those between the centroids take 64 MB at most.
inline bool may_bound(const Shape &shape)
{
    return shape.k <= 4096 && shape.d <= 1 << 22; // distance_above() covers (d + 3) 2^-53
}

inline Assignment choose_assignment(const Shape &shape)
{
    // Bounds cost two numbers per row and a second visit; in a single pass only lists are left
    // of them, and those take more centroids to pay. With few rows the distances between the
    // centroids would cost more than they save.
    const std::int32_t enough = shape.repeats ? (has_few(shape) ? 2 : 32) : 128;
    if (may_bound(shape) && shape.fused && shape.k >= enough && shape.n >= 8 * std::int64_t{shape.k})
        return Assignment::hamerly;
    return choose_dense(shape);
}

} // namespace pgkm::cpu
