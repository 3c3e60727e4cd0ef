// kept_labels.hpp - labels that iterations keep for themselves (fused/moves.cuh), as others read them.
#pragma once

#include "fused/moves.cuh"
#include "plugin/context.hpp"

namespace pgkm::cuda {

// Enqueues: labels[i] becomes the label of row first + i, for `rows` of the problem's n rows. order: the row of each
// place, where labels are kept by place; else nullptr.
void spread_labels(const Context &context, KeptLabels kept, const std::int32_t *order, std::int64_t n,
                   std::int64_t first, std::int64_t rows, std::int32_t *labels);

} // namespace pgkm::cuda
