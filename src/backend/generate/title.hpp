// title.hpp (generate) - the comment that a text begins with.
#pragma once

#include "backend/generate/kernel.hpp"
#include "backend/generate/text.hpp"

namespace pgkm::generate {

// The layout, and where each variable lies.
void title(Text &text, const Plan &plan, const Rows &rows);

} // namespace pgkm::generate
