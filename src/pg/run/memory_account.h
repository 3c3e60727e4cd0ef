/*
 * memory_account.h - the session's account of the memory that holds rows, against pg_kmeans.memory_limit.
 *
 * All numbers are bytes. Whoever allocates memory for rows adds it here first, and takes it off when it is freed.
 */
#ifndef PGKM_PG_RUN_MEMORY_ACCOUNT_H
#define PGKM_PG_RUN_MEMORY_ACCOUNT_H

extern "C" {
#include "postgres.h"
#include "port/atomics.h"
}

/* Adds `change` bytes to the account and to *held, or takes them off. 54000, with nothing added, when the limit would
 * be passed, and 53200 when that of all sessions would; the first names `estimate`, what the rows need about in all (0:
 * not known). */
void pgkm_memory_hold(uint64 *held, int64 change, uint64 estimate = 0);

/* For what the engine takes beside the rows: it counts for all sessions together alone (run/server_limits.h). */
void pgkm_memory_hold_work(uint64 *held, int64 change);

/* A call that is about to begin will take about so much: waits until all sessions together leave so much, and keeps it
 * for the call until the context is reset. 53200 where they do not in time. Nothing in a call within a call. */
void pgkm_memory_expect(double bytes, MemoryContext context);

/* 54000: the rows need at least so many bytes, or more by an estimate. */
[[noreturn]] void pgkm_raise_memory_limit(uint64 least, uint64 estimate);

/* 54000: the engine needs about so many bytes beside the rows. `what` begins a sentence. */
[[noreturn]] void pgkm_raise_working_memory(const char *what, uint64 estimate);

/* 54000: even streamed rows, with the work on them, need about so many bytes. */
[[noreturn]] void pgkm_raise_streamed_memory(uint64 estimate);

/* What may still be reserved; UINT64_MAX without a limit. */
uint64 pgkm_memory_available(void);

/* The same, as far as all sessions together leave it. */
uint64 pgkm_memory_free(void);

/* What may be reserved once all that can be reclaimed is. */
uint64 pgkm_memory_obtainable(void);

/* Reclaims memory until so much is available; nothing when that would not be enough. */
void pgkm_memory_make_room(uint64 bytes);

/* Memory that its owner gives up when others need it. */
struct PgkmReclaimHooks {
    uint64 (*reclaimable)(void); /* how much there is */
    bool (*reclaim)(void);       /* gives up a part of it; false when there is none */
};

/* There is one such owner: the session's loaded rows (pg/table/loaded.cpp). `hooks` stays valid. */
void pgkm_memory_register_reclaim(const PgkmReclaimHooks *hooks);

/* From now on the limit holds for all processes that share this counter. Adds to it what this process has
 * reserved so far. NULL: the limit holds for this process alone again. */
void pgkm_memory_share(pg_atomic_uint64 *total);

#endif
