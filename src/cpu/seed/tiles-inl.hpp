// tiles-inl.hpp - the loop of SeedTiles::View over the candidates of a tile.
#pragma once

#include <limits>

namespace pgkm::cpu {

template <typename T>
template <typename Hit>
void SeedTiles<T>::View::find(std::int64_t tile, bool want_gain, Hit &&hit)
{
    const SeedTile &one = tiles_.tiles_[tile];
    if (one.worst == 0.0)
        return;
    if (one.group != group_)
        enter(one.group);
    const std::uint64_t all = ~std::uint64_t{0} >> (seed_tile_rows - one.count);
    const GainBounds any = {0.0, std::numeric_limits<double>::infinity()};
    int near[max_seed_candidates], count = 0;
    for (int c = 0; c < count_; ++c) {
        if (!(below_[c] < one.farthest_row + one.worst && one.nearest_row < above_[c] + one.worst))
            continue;
        if (!is_encoded_ && tiles_.can_compare(one))
            encode();
        if (tiles_.can_compare(one) && about_[c].scale != 0.0f)
            near[count++] = c;
        else
            hit(c, all, any);
    }
    if (count == 0)
        return;
    const Int16Block block = tiles_.block(tile, values_of(tile));
    // The kernel takes some rows of all pairs at a time. From memory they come faster in their order.
    constexpr std::int64_t words_per_line = 16;
    for (std::int64_t i = 0; i < tiles_.pairs() * seed_tile_rows; i += words_per_line)
        __builtin_prefetch(block.values + i);
    const std::int64_t first = tile * seed_tile_rows;
    fill_panels(near, count);
    tiles_.kernels_.score(block, static_cast<int>(tiles_.pairs()), panels_.from(0), count, scores_.data(), nullptr);
    for (int j = 0; j < count; ++j) {
        GainBounds gain = any;
        double gains[2 * seed_tile_rows];
        const bool weighted = tiles_.rows_.weights != nullptr || tiles_.rows_.counts != nullptr;
        const std::uint64_t bits =
            tiles_.kernels_.gain(block, distance_to(near[j]), scores_.data() + std::int64_t{j} * seed_tile_rows,
                                 tiles_.limits_.data() + first, tiles_.nearest_.data() + first,
                                 want_gain ? &gain : nullptr, want_gain && weighted ? gains : nullptr);
        if (bits != 0)
            hit(near[j], bits, want_gain && weighted ? weigh(tile, bits, gains) : gain);
    }
}

} // namespace pgkm::cpu
