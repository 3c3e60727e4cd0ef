// measure.hpp - what an assignment is asked for beside labels: distances, sizes, within sums.
#pragma once

#include <cstdint>

#include "plugin/check.hpp"
#include "device/view.cuh"

namespace pgkm::cuda {

// Six 64-bit sums per cluster: four 23-bit limbs of the squared distances (of weight * D,
// scaled to 92 bits), most significant first, then the row count and an unused one.
inline constexpr int measure_sums = 6;

template <typename T>
struct MeasureArguments {
    View<T> view;
    const std::int32_t *labels;
    double *distances;  // or nullptr
    std::int64_t *sums; // k x measure_sums, added to; or nullptr
    std::int32_t distance_exponent;
    const Control *control; // or nullptr
};

template <typename T>
void measure(const MeasureArguments<T> &arguments, int multiprocessors, int shared_bytes, cudaStream_t stream);

} // namespace pgkm::cuda
