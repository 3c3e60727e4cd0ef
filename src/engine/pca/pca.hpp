// pca.hpp - principal component analysis as an algorithm of jobs: of rows, or of moments that were merged.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

extern const Algorithm pca;

} // namespace pgkm
