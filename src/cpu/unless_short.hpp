// unless_short.hpp - what saves time where there is room for it.
#pragma once

#include "numeric/error.hpp"

namespace pgkm::cpu {

// make(), or an empty pointer where memory does not allow it: others may have taken what room there was a moment ago.
template <typename Make>
auto unless_short(Make &&make) -> decltype(make())
{
    try {
        return make();
    } catch (const Error &error) {
        if (error.status() != PGKM_LIMIT)
            throw;
        return nullptr;
    }
}

} // namespace pgkm::cpu
