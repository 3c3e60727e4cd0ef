// random_places.hpp - for PGKM_INIT_RANDOM: k places of n rows in canonical order, by Floyd's sampling without
// replacement. And the masses by which rows are drawn where their weights differ.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "numeric/contract.hpp"
#include "numeric/philox.hpp"

namespace pgkm {

// What one place costs while places are drawn: an element of an unordered_set (its link, a bucket, the allocator).
inline constexpr std::uint64_t bytes_per_random_place = 64;

// A weight as an integer of this scale, at least 1: light rows count, too, once the heavy ones are drawn.
inline std::uint64_t drawn_mass(double weight, double scale)
{
    return static_cast<std::uint64_t>(std::max<std::int64_t>(1, quantise(weight, scale)));
}

// In the order of insertion; k <= n. Calls poll() now and then.
template <typename Poll>
std::vector<std::int64_t> random_places(std::int64_t n, std::int64_t k, const PgkmSeedParams &params, Poll &&poll)
{
    constexpr std::int64_t steps_per_poll = 1 << 14;
    std::vector<std::int64_t> chosen;
    std::unordered_set<std::int64_t> taken;
    for (std::int64_t j = n - k; j < n; ++j) {
        if (j % steps_per_poll == 0)
            poll();
        const std::uint64_t bits =
            draw(params.seed, params.restart, Stream::random_rows, 0, static_cast<std::uint64_t>(j - (n - k)));
        const auto place = static_cast<std::int64_t>(scale_draw(bits, static_cast<std::uint64_t>(j) + 1));
        chosen.push_back(taken.insert(place).second ? place : j);
        taken.insert(chosen.back());
    }
    return chosen;
}

} // namespace pgkm
