/*
 * row_context.h - names the row of a group or a partition that an error is about, in the CONTEXT of whatever
 * is raised while that row is read.
 */
#ifndef PGKM_PG_RUN_ROW_CONTEXT_H
#define PGKM_PG_RUN_ROW_CONTEXT_H

extern "C" {
#include "postgres.h"
#include "fmgr.h"
}

struct PgkmRowContext {
    ErrorContextCallback callback;
    int64 row; /* from 1 */
    bool of_partition;
    struct Node *node; /* the executor's, of an aggregate */
};

/* For row number `row`, from 1, skipped ones not counted, in the transition function called with `fcinfo`.
 * The struct is the caller's, and must last until pgkm_row_context_end or an error. */
void pgkm_row_of_group(PgkmRowContext *context, FunctionCallInfo fcinfo, int64 row);

/* For row number `row`, from 1, of a window function's partition. */
void pgkm_row_of_partition(PgkmRowContext *context, int64 row);

static inline void pgkm_row_context_end(const PgkmRowContext *context)
{
    error_context_stack = context->callback.previous;
}

#endif
