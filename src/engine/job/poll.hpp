// poll.hpp - where long work looks whether it should end.
#pragma once

#include <functional>

#include "engine/api.h"
#include "numeric/error.hpp"
#include "numeric/platform.hpp"

namespace pgkm {

// May throw.
using Poll = std::function<void()>;

// Throws Error(PGKM_CANCELLED) when the caller of an API function wants no result any more.
inline Poll poll_for(PgkmInterrupted interrupted)
{
    return [interrupted] {
        if (interrupted != nullptr && interrupted() != 0)
            throw Error(PGKM_CANCELLED, "cancelled");
    };
}

} // namespace pgkm
