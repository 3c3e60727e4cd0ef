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
    PgkmRows *rows;
    PgkmJobHolder *holder; /* of the last fit */
    bool fitted;           /* in a batch: holder has its result */
    int64 place;           /* among the groups of that batch */
    AggregateState *next;  /* that waits for its fit */
};

/* The request for a fit of one group's rows; all but what the caller wants of the result. */
void pgkm_group_request(const PgkmGroupArguments *group, const PgkmRows *rows, PgkmRequest *request);

/* Runs an aggregate's fit, or that of many groups; `context`, *holder, result and errors as for pgkm_run_job. */
const PgkmResult *pgkm_aggregate_run(const PgkmRequest *request, MemoryContext context, PgkmJobHolder **holder);

/* The memory of the aggregate that a support function is called for; XX000 outside of one. */
MemoryContext pgkm_aggregate_context(FunctionCallInfo fcinfo);

#endif
