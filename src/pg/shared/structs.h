/*
 * structs.h - small structs that all processes of the server share, with and without preloading.
 */
#ifndef PGKM_PG_SHARED_STRUCT_H
#define PGKM_PG_SHARED_STRUCT_H

extern "C" {
#include "postgres.h"
}

/* A struct in shared memory, made and initialised by whoever asks for that name first; NULL when there
 * is no room for it. Raises nothing; to be kept by the caller, who is not to ask twice. */
void *shared_struct(const char *name, Size size, void (*init)(void *memory));

/* Asks for the room of so many bytes; for _PG_init in the postmaster. */
void shared_struct_request(Size bytes);

#endif
