// bytes.hpp - device memory that has to be there beside the rows, in bytes: pure functions of a problem's shape.
#pragma once

#include <cstdint>

#include "numeric/contract.hpp"
#include "plugin/tuning.hpp"

namespace pgkm::cuda {

// 64-bit integers of the sums of features and masses: two limbs each, of weighted rows in two parts.
constexpr std::uint64_t sums_of(const Shape &shape)
{
    const std::uint64_t parts = shape.weighted ? 2 : 1;
    return parts * 2 * static_cast<std::uint64_t>(shape.k) * (static_cast<std::uint64_t>(shape.d) + 1);
}

// What all peers' sums take beside a peer's own (fit/peer_sums.hpp): two copies for the others, and their total.
constexpr std::uint64_t peer_copy_bytes(std::uint64_t sums)
{
    return 2 * 8 * sums;
}
constexpr std::uint64_t peer_bytes(std::uint64_t sums)
{
    return peer_copy_bytes(sums) + 8 * sums;
}

// What a fit or an assignment needs, whatever the strategies.
constexpr std::uint64_t least_bytes(const Shape &shape, bool has_peers)
{
    const auto k = static_cast<std::uint64_t>(shape.k), d = static_cast<std::uint64_t>(shape.d);
    const std::uint64_t element = shape.float64 ? 8 : 4, sums = sums_of(shape);
    // Three sets of centroids and fresh ones, sums, shifts and what goes with a cluster, scales.
    return 4 * element * k * d + 8 * sums + (has_peers ? peer_bytes(sums) : 0) + 56 * k + 16 * d + 65536;
}

// What greedy k-means++ by filter and gains (seed/greedy.hpp) takes.
inline std::uint64_t greedy_bytes(const Shape &shape)
{
    constexpr std::uint64_t most_pivots = 16;
    const auto n = static_cast<std::uint64_t>(shape.n), k = static_cast<std::uint64_t>(shape.k),
               d = static_cast<std::uint64_t>(shape.d), halves = 2 * ((d + 7) / 8 * 8);
    const auto trials = static_cast<std::uint64_t>(greedy_trials(shape.k));
    // Of a row its halves, their sums, its place, pivot, position and facts, its nearest distance and weight, masses,
    // an entry of each trial's list; the pivots; the rows that are chosen.
    return n * (halves + 8 + 4 + 1 + 4 + 12 + 24 + 4 * trials) + most_pivots * d * (shape.float64 ? 18 : 10) + 8 * k +
           (std::uint64_t{1} << 20);
}

} // namespace pgkm::cuda
