// missing.hpp - values that rows lack, which are NaN until something takes their place.
#pragma once

#include <functional>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm {

// pgkm_fill_missing(): 0, or the number (from 1) of a feature without any value. `values` are those of the points. Asks
// poll(), which may throw, every few milliseconds.
template <typename T>
std::int32_t fill_missing(T *values, const PgkmPoints &points, double *means, const std::function<void()> &poll);

} // namespace pgkm
