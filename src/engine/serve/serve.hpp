// serve.hpp - answering one request of a server that runs a fit, as an algorithm of jobs.
#pragma once

#include "engine/job/algorithm.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

extern const Algorithm serving;

} // namespace pgkm
