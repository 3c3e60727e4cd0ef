// spread.hpp - several devices of a backend as one: PgkmBackend whose rows lie on all of them.
//
// Integers of the contexts add up to the bits of one device. A problem whose rows lie on several contexts is seeded and
// fitted by all at once (PgkmPeers). Problems that lie on one context each are shared out and need no word between
// them. Reductions of a user's, and what peers cannot do, want all rows of a problem together: these are brought to one
// context for it. Sums in float64, of PCA and mixtures, are added in the order of the contexts.
#pragma once

#include <cstring>

#include "backend/calls.hpp"
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

// Device memory that each of its contexts may take, in bytes: its limit, or what was free. 0: not known.
std::uint64_t device_memory(PgkmContext *context);

// Whether each of so many contexts has room for its own ones of these rows, and for all of them and a fit: then it does
// problems of the same rows by itself, with no word to the others. No, where it is not known how much memory there is.
bool have_room(const RowShape &rows, std::int64_t contexts, std::uint64_t device_memory);

// Its open() refuses: it does not know what to open.
const PgkmBackend *table();

} // namespace pgkm::spread
