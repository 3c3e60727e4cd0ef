// path_kernels.hpp - the steps of a search for paths, lanes along clusters.
#pragma once

#include <cstdint>

#include "cpu/kernels/instruction_set.hpp"
#include "numeric/platform.hpp"

namespace pgkm::cpu {

// Of a search among `count` clusters: their distances, as far as they are known; the same, infinity once they are
// settled; the node before each.
struct SearchedNodes {
    std::int32_t count;
    double *distances, *open;
    std::int64_t *before;
};

struct PathKernels {
    // Steps from node `from`, which lies at `so_far`: one to j costs max(0, floors[j] + prices[j] - own). Where that is
    // nearer, j is open at that distance.
    void (*take_steps)(const SearchedNodes &nodes, std::int32_t from, double so_far, double own, const double *floors,
                       const double *prices);
    // The place of the least of count >= 1 values, the first of several.
    std::int32_t (*least_of)(const double *values, std::int32_t count);
};

const PathKernels &path_kernels(InstructionSet set);

} // namespace pgkm::cpu
