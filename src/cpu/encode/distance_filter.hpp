// distance_filter.hpp - the filter of few centroids: the rows as they lie, without an encoding.
//
// A score is the square of the distance by arithmetic of the rows' own precision, in float32. Rows come from memory one
// after the other, and nothing is packed.
#pragma once

#include <memory>

#include "cpu/encode/filter.hpp"

namespace pgkm::cpu {

template <typename T>
std::unique_ptr<Filter<T>> distance_filter(const Rows<T> &rows);

} // namespace pgkm::cpu
