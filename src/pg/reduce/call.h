/*
 * call.h - a call over the rows of a relation: from a reduction and its parameters to rows, and from rows to a result.
 */
#ifndef PGKM_PG_REDUCE_CALL_H
#define PGKM_PG_REDUCE_CALL_H

#include "pg/reduce/object.h"
#include "pg/reduce/parameters.h"
#include "pg/table/call.h"
#include "pg/values/composite.h"

struct ReduceCall {
    TableCall *call;
    const char *function; /* static: the run's name */
    ReduceSource source;
    const List *parameters;
    PgkmNamed *columns; /* call->n_features of them */
    TableRows *rows;
    bool once;             /* there is one job over the rows, of `program` */
    PgkmReduction program; /* then; no objects: it is not made yet */
};

/* Begins the call, finds its columns in the relation and reads its rows. False when there are none. Errors as of
 * table_feature_find and table_call_read; 42703 and 42702 at a name. */
bool reduce_call_read(ReduceCall *call, FunctionCallInfo fcinfo);

/* 42702 where the name is that of a column or of `let`, too. */
void reduce_call_check_parameter(const ReduceCall *call, const char *name);

/* The program of trees (pgkm_program_lower) and of these parameters. It lives as long as the current memory context. */
PgkmReduction reduce_program(const ReduceTexts *texts, const PgkmObjectTree *trees, int n_trees, PgkmNames names,
                             const List *parameters, bool exact, PgkmValueShape *shapes);

/* That of the call, with its columns, once its rows are read. */
PgkmReduction reduce_call_program(const ReduceCall *call);

/*
 * Reduces the rows. The arrays of the result live as long as *holder, which as in pgkm_run_job belongs to `context`;
 * the program has to live that long. Errors as of pgkm_run_job; 22012 and 22003 where a row fails.
 */
const PgkmReduced *reduce_call_run(ReduceCall *call, const PgkmReduction *program, MemoryContext context,
                                   PgkmJobHolder **holder);

/* Makes a request, whose rows are set, one of the program, which is checked here. */
void reduce_request(PgkmRequest *request, const PgkmReduction *program);

/* Raises what a row or a total has failed of, if one has. `call` tells which row; NULL: nothing does. */
void reduce_check(const ReduceTexts *texts, const PgkmReduction *program, const PgkmReduced *reduced,
                  PgkmJobHolder *holder, ReduceCall *call);

#endif
