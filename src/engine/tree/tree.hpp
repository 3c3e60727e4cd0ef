// tree.hpp - clusters that are divided into clusters, as an algorithm of jobs.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

extern const Algorithm trees;

} // namespace pgkm
