// choose_pivots.hpp - which of a sample of rows become pivots (pivots.hpp), on the host.
//
// By turns the row farthest from the pivots so far (farthest first, Gonzalez 1985) and one that lies farther from them
// than four fifths of the rows do. The first ones keep what is far away out of the others' radii. The second ones go
// where the rows are, which the farthest rows of heavy tails are not. Any pivots are right; good ones save time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace pgkm::cuda {

inline float squared(const float *a, const float *b, std::size_t d)
{
    constexpr std::size_t lanes = 8; // sums apart, which the processor's vectors take
    float part[lanes] = {};
    std::size_t f = 0;
    for (; f + lanes <= d; f += lanes)
        for (std::size_t i = 0; i < lanes; ++i)
            part[i] += (a[f + i] - b[f + i]) * (a[f + i] - b[f + i]);
    for (; f < d; ++f)
        part[0] += (a[f] - b[f]) * (a[f] - b[f]);
    return std::accumulate(part, part + lanes, 0.0f);
}

inline std::size_t largest_of(const std::vector<float> &values)
{
    return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// The place of the value that so large a share of the others are below.
inline std::size_t place_of(const std::vector<float> &values, double share)
{
    std::vector<std::size_t> places(values.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto nth = static_cast<std::ptrdiff_t>(share * static_cast<double>(places.size() - 1));
    std::nth_element(places.begin(), places.begin() + nth, places.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return places[static_cast<std::size_t>(nth)];
}

// One pivot, the mean, where more would not bring rows much nearer.
template <typename T>
std::vector<T> choose_pivots(const std::vector<T> &sample, std::size_t d, int most)
{
    const std::size_t n = sample.size() / d;
    std::vector<T> mean(d);
    std::vector<double> sum(d, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t f = 0; f < d; ++f)
            sum[f] += static_cast<double>(sample[i * d + f]) / static_cast<double>(n);
    for (std::size_t f = 0; f < d; ++f)
        mean[f] = static_cast<T>(sum[f]);
    // Differences from the mean, in float32: pivots need no more.
    std::vector<float> rows(sample.size()), nearest(n);
    for (std::size_t i = 0; i < sample.size(); ++i)
        rows[i] = static_cast<float>(static_cast<double>(sample[i]) - sum[i % d]);
    const std::vector<float> origin(d, 0.0f);
    for (std::size_t i = 0; i < n; ++i)
        nearest[i] = squared(&rows[i * d], origin.data(), d);
    const float farthest = nearest[largest_of(nearest)], usual = nearest[place_of(nearest, 0.5)];
    if (!std::isfinite(farthest))
        return mean;
    std::vector<T> pivots;
    std::fill(nearest.begin(), nearest.end(), std::numeric_limits<float>::infinity());
    std::size_t pick = 0;
    for (int a = 0; a < most; ++a) {
        const auto at = static_cast<std::ptrdiff_t>(pick * d);
        pivots.insert(pivots.end(), sample.begin() + at, sample.begin() + at + static_cast<std::ptrdiff_t>(d));
        for (std::size_t i = 0; i < n; ++i)
            nearest[i] = std::min(nearest[i], squared(&rows[i * d], &rows[pick * d], d));
        pick = largest_of(nearest);
        if (nearest[pick] <= farthest / 400 && nearest[place_of(nearest, 0.9)] <= usual / 400)
            break;
        if (a % 2 == 0) {
            const std::size_t other = place_of(nearest, 0.8);
            pick = nearest[other] > 0.0f ? other : pick;
        }
    }
    // A quarter of the distance (a sixteenth of its square) is the least gain worth an order.
    const bool gains = nearest[largest_of(nearest)] * 16 <= farthest || nearest[place_of(nearest, 0.5)] * 16 <= usual;
    return gains ? pivots : mean;
}

} // namespace pgkm::cuda
