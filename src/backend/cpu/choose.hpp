// choose.hpp - which assignment strategy serves a shape: a pure function.
#pragma once

#include <cstdint>

#include "backend/cpu/strategy.hpp"

namespace pgkm::cpu {

struct Shape {
    std::int64_t n;
    std::int32_t d;
    std::int32_t k;
};

inline Assignment choose_assignment(Assignment forced, const Shape &)
{
    return forced == Assignment::automatic ? Assignment::direct : forced;
}

} // namespace pgkm::cpu
