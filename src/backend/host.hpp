// host.hpp - whether the host of a call has cancelled it (PgkmHost in backend.h); from any thread.
#pragma once

#include "backend/backend.h"
#include "numeric/error.hpp"

namespace pgkm {

inline bool is_cancelled(const PgkmHost &host)
{
    return host.cancelled != nullptr && host.cancelled(host.arg) != 0;
}

// Throws PGKM_CANCELLED if so. Call it every few milliseconds of work.
inline void poll(const PgkmHost &host)
{
    if (is_cancelled(host))
        throw Error(PGKM_CANCELLED, "cancelled");
}

} // namespace pgkm
