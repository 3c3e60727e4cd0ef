// spread.hpp - several devices of a backend as one: PgkmBackend whose rows lie on all of them.
//
// Integers of the contexts add up to the bits of one device. A problem whose rows lie on several contexts is seeded and
// fitted by all at once (PgkmPeers). Problems that lie on one context each are shared out and need no word between
// them. Reductions of a user's, and what peers cannot do, want all rows of a problem together: these are brought to one
// context for it. Sums in float64, of PCA and mixtures, are added in the order of the contexts.
#pragma once

#include <cstring>

#include "backend/backend.h"
#include "numeric/platform.hpp"

namespace pgkm::spread {

// Devices of different kinds would wait for the slowest.
inline bool is_same_kind(const PgkmDevice &a, const PgkmDevice &b)
{
    return std::strcmp(a.name, b.name) == 0 && a.capability_major == b.capability_major &&
           a.capability_minor == b.capability_minor;
}

// Opens `inner` on the options' devices, each by its number; the context is for table() alone.
PgkmStatus open(const PgkmBackend &inner, const PgkmOpen &options, PgkmContext **context, PgkmError *error);

// Its open() refuses: it does not know what to open.
const PgkmBackend *table();

} // namespace pgkm::spread
