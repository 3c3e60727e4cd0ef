// reduction.hpp - a user's own reduction as an algorithm of jobs.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

extern const Algorithm reductions;

} // namespace pgkm
