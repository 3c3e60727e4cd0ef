// tiles-inl.hpp - the loop of SeedTiles::View over the candidates of a tile.
#pragma once

#include <algorithm>

namespace pgkm::cpu {

template <typename T>
template <typename Hit>
void SeedTiles<T>::View::find(std::int64_t tile, Hit &&hit)
{
    const SeedTile &one = tiles_.tiles_[tile];
    if (one.worst == 0.0)
        return;
    if (one.group != group_)
        enter(one.group);
    int near[max_seed_candidates], count = 0;
    for (int c = 0; c < count_; ++c)
        if (below_[c] < one.farthest_row + one.worst && one.nearest_row < above_[c] + one.worst)
            near[count++] = c;
    if (count == 0)
        return;
    if (!tiles_.filters_) {
        const std::uint64_t all = ~std::uint64_t{0} >> (seed_tile_rows - one.count);
        for (int c = 0; c < count; ++c)
            hit(near[c], all, nullptr);
        return;
    }
    const std::int32_t *values = values_of(tile);
    const int passes = (count + max_kernel_candidates - 1) / max_kernel_candidates;
    for (int pass = 0; pass < passes; ++pass) {
        const int first = count * pass / passes, last = count * (pass + 1) / passes;
        const ScreenedCandidate *turned[max_kernel_candidates];
        float scores[max_kernel_candidates * seed_tile_rows];
        std::uint64_t hits[max_kernel_candidates];
        for (int c = first; c < last; ++c) {
            turn(near[c]);
            turned[c - first] = &screened_[near[c]];
        }
        tiles_.kernels_.screen(values, tiles_.rows_.d, turned, last - first, tiles_.about(tile), scores, hits);
        for (int c = first; c < last; ++c)
            if (hits[c - first] != 0) {
                screened_[near[c]].scores = scores + std::int64_t{c - first} * seed_tile_rows;
                hit(near[c], hits[c - first], &screened_[near[c]]);
            }
    }
}

} // namespace pgkm::cpu
