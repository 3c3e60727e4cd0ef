/*
 * server_limits.h - what all sessions have together, within pg_kmeans.max_memory and pg_kmeans.max_threads.
 *
 * It is counted in shared memory; where there is none for that, nothing is. A session that holds memory never waits for
 * more, so no two sessions wait for one another. What a process still has at its end is given back then.
 */
#ifndef PGKM_PG_RUN_SERVER_LIMITS_H
#define PGKM_PG_RUN_SERVER_LIMITS_H

extern "C" {
#include "postgres.h"
}

/* Adds bytes to what the session holds, or takes them off. What does not fit waits if the session holds nothing, for
 * pg_kmeans.queue_timeout at most. False, with nothing added, when there is no room. Heeds interrupts. */
bool pgkm_server_hold(int64 change);

/* The same for what a call will hold in all beside what the session holds now: so much counts, although the call takes
 * it bit by bit. There is one such promise at a time, until it is dropped. */
bool pgkm_server_promise(uint64 bytes);
bool pgkm_server_has_promised(void);
void pgkm_server_drop_promise(void);

/* What the session may still hold without waiting; UINT64_MAX: no limit. */
uint64 pgkm_server_room(void);

/* 53200: so many bytes are not to be had; and who holds how much. */
[[noreturn]] void pgkm_server_raise(uint64 bytes);

/* Takes as many threads as are left of these, but at least one, the session's own: so many. Of a negative number: gives
 * them back. */
int32 pgkm_server_threads(int32 change);

#endif
