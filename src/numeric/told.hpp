// told.hpp - checks of what another process has told. A message decides where memory is read and written, and anybody
// may send it: so shapes, and values that would leave no nearest centroid, are checked. All throw Error(PGKM_INVALID).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/contract.hpp"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

[[noreturn]] inline void raise_shape()
{
    throw Error(PGKM_INVALID, "a message between nodes has another shape than expected");
}
inline void require_shape(bool holds)
{
    if (!holds)
        raise_shape();
}
template <typename T>
void check_values(const T *values, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        if (!(std::fabs(static_cast<double>(values[i])) <= max_magnitude))
            throw Error(PGKM_INVALID, "a message between nodes has values that are not finite");
}
// One or more rows of d values.
template <typename T>
void check_rows(const std::vector<T> &values, std::int32_t d)
{
    require_shape(!values.empty() && values.size() % static_cast<std::size_t>(d) == 0);
    check_values(values.data(), values.size());
}

} // namespace pgkm
