// grower.hpp - grows a tree of clusters: nodes with their centroids and rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api.h"
#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// The nodes of a tree, the root first, each behind its parent.
struct Tree : Models {
    void get(std::int64_t, PgkmResult *result) const override;

    std::int64_t n = 0; // rows
    std::int32_t d = 0;
    std::vector<std::int32_t> parents; // -1 of the root
    std::vector<std::int32_t> levels;  // 0 of the root
    std::vector<double> centroids;     // nodes x d, in the space of the distance
    std::vector<std::int64_t> sizes;
    std::vector<double> within_ss; // inertia of the node's rows about its centroid
    std::vector<double> center;    // d, or empty unless standardized
    std::vector<double> scale;
    std::int32_t n_iter = 0; // most iterations of a fit
    bool converged = true;   // all fits

    std::int32_t nodes() const { return static_cast<std::int32_t>(parents.size()); }
};

// Of a checked request. Throws Error.
std::unique_ptr<Tree> grow(const PgkmRequest &request, Workplace &place, Monitor &monitor);

} // namespace pgkm
