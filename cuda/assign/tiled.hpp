// tiled.hpp - labels of the rows on a list, by distances in tiles (tiled.cu).
#pragma once

#include "plan/stages.hpp"

namespace pgkm::cuda {

// Rows of a view, so many as a count on the device says; without a count all of them.
struct RowList {
    const std::int32_t *count = nullptr;
    const std::int32_t *rows = nullptr;
};

// Enqueues: labels[row] of every row of the list.
void label_listed(const Stage<float> &stage, const View<float> &view, const RowList &list, std::int32_t *labels);

} // namespace pgkm::cuda
