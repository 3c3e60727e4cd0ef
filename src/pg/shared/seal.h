/*
 * seal.h - whether bytes that come back were written by this server.
 *
 * The state of a parallel aggregate names shared memory, and whoever can call its deserialization function
 * may bring other names. So a state that names memory carries a seal: a keyed hash whose key only the
 * processes of this server know.
 */
#ifndef PGKM_PG_SHARED_SEAL_H
#define PGKM_PG_SHARED_SEAL_H

extern "C" {
#include "postgres.h"
}

#define PGKM_SEAL_BYTES 32

/* Whether this server has a key. Without one nothing can be sealed, and no seal holds. */
bool pgkm_can_seal(void);

/* Writes the PGKM_SEAL_BYTES of the seal of these bytes. Only where pgkm_can_seal(). */
void pgkm_seal(const void *bytes, Size size, char *seal);

/* Whether a process of this server wrote that seal for these bytes. */
bool pgkm_seal_holds(const void *bytes, Size size, const char *seal);

/* For _PG_init: asks for the key's memory in the postmaster. */
void pgkm_seal_install(void);

#endif
