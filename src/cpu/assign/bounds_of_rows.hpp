// bounds_of_rows.hpp - what an assignment tells about rows beside their labels.
#pragma once

namespace pgkm::cpu {

// Distances of rows to their centroid, at most, and to any other one, at least.
struct Bounds {
    float *upper;
    float *lower;
};

} // namespace pgkm::cpu
