/*
 * structs.h - small structs that all processes of the server share, with and without preloading.
 */
#ifndef PGKM_PG_SHARED_STRUCTS_H
#define PGKM_PG_SHARED_STRUCTS_H

extern "C" {
#include "postgres.h"
}

/* The struct of that name in shared memory. Whoever asks first makes it, and `init` fills it. NULL when
 * there is no memory for it. Raises nothing. The caller keeps the answer and asks once. */
void *shared_struct(const char *name, Size bytes, void (*init)(void *memory));

/* Asks for so many bytes of shared memory; for _PG_init in the postmaster. */
void shared_struct_request(Size bytes);

#endif
