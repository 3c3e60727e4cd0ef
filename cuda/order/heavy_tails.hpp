// heavy_tails.hpp - whether the box of some rows says where they lie.
#pragma once

#include <cstdint>

#include "plugin/context.hpp"

namespace pgkm::cuda {

// Whether a few rows of these lie much farther out than the others, so that the box says little of where rows are.
// Waits for the compute stream.
bool has_heavy_tails(Context &context, const float *values, std::int64_t n, int d, const Box &box);

} // namespace pgkm::cuda
