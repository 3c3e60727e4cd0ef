// philox.hpp - Philox4x32-10, the counter-based generator of Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), and the way draws are keyed.
//
// A draw depends on (seed, restart, stream, index) alone, never on what was drawn
// before, so any thread of any device can make any draw.
#pragma once

#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm {

struct PhiloxBlock {
    std::uint32_t word[4];
};

PGKM_HD inline PhiloxBlock philox4x32_10(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1)
{
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter.word[0];
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
        const PhiloxBlock mixed = {{static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0,
                                    static_cast<std::uint32_t>(product1),
                                    static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1,
                                    static_cast<std::uint32_t>(product0)}};
        counter = mixed;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

// What a draw is for; part of the key, so that no two purposes share random numbers.
enum class Stream : std::uint32_t {
    random_rows = 0,     // index: position in Floyd's sampling
    first_centroid = 1,  // index: 0
    trial = 2,           // index: step * 64 + trial
    oversample = 3,      // index: draw of the round; the round is added to the stream as round << 8
    candidate_first = 4, // as first_centroid, among k-means|| candidates
    candidate_trial = 5, // as trial, among k-means|| candidates
    split = 6,           // index: cluster * d + feature; round as above
};

// 64 random bits for (seed, restart, stream, round, index).
PGKM_HD inline std::uint64_t draw(std::uint64_t seed, std::uint32_t restart, Stream stream, std::uint32_t round,
                                  std::uint64_t index)
{
    const PhiloxBlock counter = {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                  static_cast<std::uint32_t>(stream) | (round << 8), restart}};
    const PhiloxBlock block =
        philox4x32_10(counter, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    return (std::uint64_t{block.word[1]} << 32) | block.word[0];
}

// floor(bits * bound / 2^64): uniform on [0, bound) up to 2^-64 x bound.
PGKM_HD inline UInt128 scale_draw(std::uint64_t bits, UInt128 bound)
{
    const UInt128 high = bound >> 64;
    const UInt128 low = bound & ~std::uint64_t{0};
    return bits * high + ((bits * low) >> 64);
}

} // namespace pgkm
