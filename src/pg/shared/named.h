/*
 * named.h - structs in shared memory that all processes of the server find by name.
 */
#ifndef PGKM_PG_SHARED_NAMED_H
#define PGKM_PG_SHARED_NAMED_H

extern "C" {
#include "postgres.h"
}

/* A struct of this process's that says which one it is, and where it was found. */
struct NamedStruct {
    const char *name;           /* another layout gets another one: two versions of the library may be loaded at once */
    void (*init)(void *memory); /* for whoever asks first */
    void *found;
    bool tried;
};

/* The struct, of so many bytes; NULL when there is no shared memory for it. No lock of the server's may be held. */
void *pgkm_named_struct(NamedStruct *of, Size bytes);

#endif
