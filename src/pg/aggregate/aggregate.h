/*
 * aggregate.h - the transition state of the aggregates kmeans and gmm.
 */
#ifndef PGKM_PG_AGGREGATE_AGGREGATE_H
#define PGKM_PG_AGGREGATE_AGGREGATE_H

#include "pg/run/run_job.h"
#include "pg/kmeans/group_arguments.h"
#include "pg/rows/rows.h"

extern "C" {
#include "fmgr.h"
}

/* Lives in the aggregate's memory context, like everything it points to. */
struct AggregateState {
    PgkmGroupArguments group;
    PgkmRows          *rows;
    PgkmJobHolder     *holder; /* of the last fit */
    bool               fitted; /* in a batch: holder has its result */
    int64              place;  /* among the groups of that batch */
    AggregateState    *next;   /* that waits for its fit */
};

/* The memory of the aggregate that a support function is called for; XX000 outside of one. */
MemoryContext pgkm_aggregate_context(FunctionCallInfo fcinfo);

#endif
