/*
 * pages.h - pages of memory: how much there is, taken, and given back.
 */
#ifndef PGKM_PG_SHARED_PAGES_H
#define PGKM_PG_SHARED_PAGES_H

extern "C" {
#include "postgres.h"
#include "utils/dsa.h"
}

/* Whether the system has so much shared memory left, as far as can be told. Containers often have 64 MB,
 * and to do without shared memory is better than an error. */
bool pgkm_fits_shared_memory(double bytes);

/* Memory in an area of dynamic shared memory; InvalidDsaPointer where the system has no
 * room for it, or the area gets none. `last`: something that lies in the area's last segment, as far as this process
 * knows. */
dsa_pointer shared_allocate(dsa_area *area, dsa_pointer last, Size bytes);

/* Asks for large pages where they fit into this memory: to touch one for the first time costs less than to touch many
 * small ones. */
void shared_large_pages(void *memory, Size bytes);

/* Gives pages whose contents nobody needs any more back to the system, as far as it can: those of memory that is shared
 * for all processes that map it. Calls nothing of the server. */
void shared_discard(void *memory, Size bytes, bool shared);

#endif
