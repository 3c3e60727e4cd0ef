/*
 * memory_account.h - the session's account of memory that holds rows, against pg_kmeans.memory_limit.
 */
#ifndef PGKM_PG_MEMORY_ACCOUNT_H
#define PGKM_PG_MEMORY_ACCOUNT_H

extern "C" {
#include "postgres.h"
#include "port/atomics.h"
}

/* Adds bytes to the account. 54000, with nothing added, when the limit would be passed. */
void pgkm_memory_reserve(uint64 bytes);

/* The same for a part of rows that will take `estimate` bytes in all (0: nobody knows), which the
 * error then tells. */
void pgkm_memory_reserve_part(uint64 bytes, uint64 estimate);

void pgkm_memory_release(uint64 bytes);

/* Raises 54000 for rows that need at least so many bytes, or more by an estimate. */
[[noreturn]] void pgkm_raise_memory_limit(uint64 least, uint64 estimate);

/* The same for what needs so many bytes beside the rows; `what` begins a sentence. */
[[noreturn]] void pgkm_raise_working_memory(const char *what, uint64 estimate);

/* Bytes that may still be reserved; UINT64_MAX without a limit. */
uint64 pgkm_memory_available(void);

/* Bytes that could be reserved if all were given up that may be. */
uint64 pgkm_memory_obtainable(void);

/* Has memory given up until so many bytes are available; none when that would not be enough. */
void pgkm_memory_make_room(uint64 bytes);

/* Who holds memory that it would give up for others' rows. */
struct PgkmMemoryHolder {
    uint64 (*reclaimable)(void); /* bytes in all */
    bool (*give_up)(void);       /* gives up a part; false when there is none */
};

/* There is one such holder: the session's loaded rows. `holder` stays valid. */
void pgkm_memory_set_holder(const PgkmMemoryHolder *holder);

/* From now on the limit holds for all processes that share this counter, which the bytes
 * reserved so far are added to; with NULL for this process alone again. */
void pgkm_memory_share(pg_atomic_uint64 *total);

#endif
