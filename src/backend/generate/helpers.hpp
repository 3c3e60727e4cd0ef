// helpers.hpp (generate) - the device functions that a text begins with.
#pragma once

#include <string>

#include "backend/generate/layout.hpp"

namespace pgkm::generate {

// Conversions, checks, and the changes of R that the plan needs: by the owner of a copy, or atomic where threads share.
std::string helper_functions(const Plan &plan);

} // namespace pgkm::generate
