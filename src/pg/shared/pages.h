/*
 * pages.h - pages of memory: how much there is, asked for at once, and given back.
 */
#ifndef PGKM_PG_SHARED_PAGES_H
#define PGKM_PG_SHARED_PAGES_H

extern "C" {
#include "postgres.h"
#include "storage/dsm.h"
}

/* Whether the system has so much shared memory left, as far as can be told. Containers often have 64 MB,
 * and to do without shared memory is better than an error. */
bool pgkm_fits_shared_memory(double bytes);

/* The length of a page of memory. */
Size shared_page_bytes(void);

/* Asks for the pages of this memory at once, which costs less than one fault at a time. Where the system
 * cannot, the faults come. */
void shared_populate(char *begin, Size bytes);

/* Gives pages whose contents nobody needs any more back to the system, as far as it can: those of memory that is shared
 * for all processes that map it. Calls nothing of the server. */
void shared_discard(void *memory, Size bytes, bool shared);

#endif
