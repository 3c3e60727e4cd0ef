/*
 * batch.h - the groups of a hash aggregate, fitted together.
 *
 * A hash aggregate has all groups of its table complete before it asks for the first result.
 * So the first final call fits them all, up to some thousand, in one call of the backend, where threads (or a GPU)
 * share out what would each be too small for them; the calls that follow find their results.
 * Each result is the same bits as one by one.
 *
 * Groups of a sorted or plain aggregate, of the sorted phases of GROUPING SETS, and of a window
 * are not complete when another is asked for: they are fitted one by one.
 */
#ifndef PGKM_PG_AGGREGATE_BATCH_H
#define PGKM_PG_AGGREGATE_BATCH_H

#include "pg/aggregate/aggregate.h"

/* Rows of more bytes keep the threads busy by themselves and are not worth a copy. */
#define PGKM_LARGE_GROUP_BYTES (16 * 1024 * 1024)

/* The algorithm's part: k and options are those of `first`, rows those of the groups. */
struct PgkmBatchKind {
    /* Bytes that a call needs whatever its groups, and that one of them adds. */
    uint64 (*fixed)(const AggregateState *first);
    uint64 (*estimate)(const AggregateState *first, const PgkmGroup *group);
    /* Runs all fits; *holder as for pgkm_run_fit. */
    void (*fit)(const AggregateState *first, const PgkmGroup *groups, int64 count, MemoryContext context,
                PgkmJobHolder **holder);
};

/* A state was made in `context` by the transition or combine function called with `fcinfo`. */
void pgkm_batch_enlist(FunctionCallInfo fcinfo, MemoryContext context, AggregateState *state);

/* In the final function called with `fcinfo`: fits the state together with others that are
 * complete, unless an earlier call did. False when it has to be fitted alone. */
bool pgkm_batch_fit(FunctionCallInfo fcinfo, const PgkmBatchKind *kind, AggregateState *state);

#endif
