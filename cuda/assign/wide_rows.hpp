// wide_rows.hpp - labels of float32 rows that fits_wide() (plan/choose.hpp) takes.
#pragma once

#include "plan/stages.hpp"

namespace pgkm::cuda {

void assign_wide(const Stage<float> &stage, const View<float> &view, std::int32_t *labels);

} // namespace pgkm::cuda
