// algorithms.hpp - the table of what the engine can fit.
#pragma once

#include "engine/job/algorithm.hpp"

namespace pgkm {

// That of the request.
const Algorithm &algorithm_of(const PgkmRequest &request);

} // namespace pgkm
