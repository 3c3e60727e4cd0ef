// labels_differ.hpp - whether rows would keep their labels under other centroids.
#pragma once

#include "plan/stages.hpp"

namespace pgkm::cuda {

// Enqueues: *differ, on the device, becomes 1 unless `labels` are those of the view's rows under its centroids.
// Where it is 1 already, or becomes so, the other rows are passed over.
template <typename T>
void labels_differ(const Stage<T> &stage, const View<T> &view, const std::int32_t *labels, std::int32_t *differ);

} // namespace pgkm::cuda
