// list_kernels.hpp - what the bounds of hamerly.cpp need: which rows to look at again, and which
// centroids can matter to them.
#pragma once

#include <cstdint>

#include "cpu/kernels/exact_kernels.hpp"

namespace pgkm::cpu {

inline constexpr int list_room = 16; // lists are written by whole vectors

// How far an iteration's centroids drifted, per cluster, and what that does to the bounds.
struct Drift {
    const float *own;    // how far the centroid went, rounded up
    const float *others; // how far any other one went
    const float *half;   // half the distance to the nearest other centroid, rounded down
};

struct ListKernels {
    // Adjusts the bounds of `count` rows to the drift and lists the rows whose label may have
    // changed: all but those with upper < max(lower, half). Returns how many are listed; there is
    // room for `count` and list_room more.
    int (*screen)(const std::int32_t *labels, int count, const Drift &drift, float *upper, float *lower,
                  std::int32_t *rows);

    // Replaces the upper bounds of the `count` listed rows (of `values`, d each) by their distances
    // and keeps in the list only the rows that must still be searched. Returns how many.
    template <typename T>
    using Tighten = int(const T *values, int d, const T *centroids, const std::int32_t *labels, const Drift &drift,
                        const float *lower, float *upper, std::int32_t *rows, int count);
    ForElements<Tighten> tighten;

    // Lists in ascending order the centroids with distance[j] <= radius; *beyond is lowered to the
    // smallest distance of the others. There is room for `count` and list_room more.
    int (*select)(const float *distance, int count, float radius, std::int32_t *list, float *beyond);

    // above[i] and below[i] bound the distances of which squares[i] is the exact D; count is a
    // multiple of list_step. One of them may be NULL.
    void (*roots)(const double *squares, int count, float *above, float *below);
};

const ListKernels &list_kernels(InstructionSet set);

} // namespace pgkm::cpu
