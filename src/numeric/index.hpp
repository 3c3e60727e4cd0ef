// index.hpp - counts and places of the C interfaces, which are int64, as the library's containers take them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numeric/platform.hpp"

namespace pgkm {

// For a value of at least 0.
constexpr std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

} // namespace pgkm
