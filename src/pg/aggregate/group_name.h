/*
 * group_name.h - names the group, and the row of it or of a partition, that an error is about.
 */
#ifndef PGKM_PG_AGGREGATE_GROUP_NAME_H
#define PGKM_PG_AGGREGATE_GROUP_NAME_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

/* The values of its GROUP BY columns, like "region = north, year = 2024", in the final function called with `fcinfo`.
 * NULL where there are none. */
char *pgkm_group_name(FunctionCallInfo fcinfo);

/* Adds a row to the CONTEXT of whatever is raised while it is read. */
struct PgkmRowContext {
    ErrorContextCallback callback;
    int64 row;               /* from 1 */
    FunctionCallInfo fcinfo; /* of the transition function; NULL: it is a row of a partition */
};

/* For row number `row`, from 1, skipped ones not counted, in the transition function called with `fcinfo`, or, with
 * NULL, of a window function's partition. The struct is the caller's, and must last until pgkm_row_context_end or an
 * error. */
void pgkm_row_context_begin(PgkmRowContext *context, FunctionCallInfo fcinfo, int64 row);

static inline void pgkm_row_context_end(const PgkmRowContext *context)
{
    error_context_stack = context->callback.previous;
}

#endif
