/*
 * aggregate.h - the transition state of the aggregates kmeans, kmeans_auto and gmm.
 */
#ifndef PGKM_PG_AGGREGATE_AGGREGATE_H
#define PGKM_PG_AGGREGATE_AGGREGATE_H

#include "pg/aggregate/shared_rows.h"
#include "pg/aggregate/group_arguments.h"
#include "pg/rows/rows.h"
#include "pg/run/run_job.h"

extern "C" {
#include "fmgr.h"
}

/* Lives in the aggregate's memory context, like everything it points to. */
struct AggregateState {
    PgkmGroupArguments group;
    PgkmRows *rows;
    SharedRows shared;     /* those of a partial aggregate that are in the query's area already */
    dsa_area *area;        /* where it may leave more; or NULL */
    int64 block;           /* it does so when it has so many in `rows` */
    PgkmJobHolder *holder; /* of the last fit */
    bool fitted;           /* in a batch: holder has its result */
    int64 place;           /* among the groups of that batch */
    AggregateState *next;  /* that waits for its fit */
};

/* The request for a fit of one group's rows; all but what the caller wants of the result. */
void pgkm_group_request(const PgkmGroupArguments *group, const PgkmRows *rows, PgkmRequest *request);

/* The rows may come to be so many: as of pgkm_memory_expect, with the work on them. */
void pgkm_group_expect(const PgkmGroupArguments *group, const PgkmRows *rows, double n, MemoryContext context);

/* Runs the function's fit, or that of many groups; `context`, *holder, result and errors as for pgkm_run_job. */
const PgkmResult *pgkm_aggregate_run(const char *function, const PgkmRequest *request, MemoryContext context,
                                     PgkmJobHolder **holder);

/* The memory of the aggregate that a support function is called for; XX000 outside of one. */
MemoryContext pgkm_aggregate_context(FunctionCallInfo fcinfo);

/* 22P03: these bytes are no state of an aggregate. */
[[noreturn]] void pgkm_raise_state(const char *detail);

extern "C" PGDLLEXPORT Datum pgkm_aggregate_serialize(PG_FUNCTION_ARGS);

#endif
