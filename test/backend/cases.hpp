// cases.hpp - the data sets on which every strategy of every backend must agree with the
// reference, chosen where k-means goes wrong: odd shapes, ties, extreme values, weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace conformance {

struct Group {
    std::int64_t first;
    std::int64_t n;
    std::int32_t k;
};

struct Case {
    std::string name; // letters, digits and underscores
    PgkmElement element;
    std::int64_t n;
    std::int32_t d;
    std::vector<std::byte> values; // n x d of the element
    std::vector<double> weights;   // n, or empty
    std::vector<Group> groups;
    PgkmMetric metric;
    std::vector<double> start; // centroids of all groups one after another; empty: as seeded
    double tol;                // times the mean variance of a group's features
    bool is_of_magnitudes;     // differs from others in how large its values are, and in nothing else

    PgkmPoints points() const;
    std::int64_t work() const; // of one assignment: rows x clusters x features
    std::size_t element_size() const { return element == PGKM_FLOAT32 ? sizeof(float) : sizeof(double); }
    // Where a group's centroids start, counted in centroids.
    std::int64_t centroid_offset(std::size_t group) const;
    std::int64_t centroid_count() const { return centroid_offset(groups.size()); }
};

// All cases; built on first use. With PGKM_SMALL set in the environment only those that a
// sanitizer or a simulated device gets through quickly.
const std::vector<Case> &all_cases();

const Case &case_named(std::string_view name);

} // namespace conformance
