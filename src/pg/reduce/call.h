/*
 * call.h - a call of reduce(): from its objects and parameters to rows, and from rows to a result.
 */
#ifndef PGKM_PG_REDUCE_CALL_H
#define PGKM_PG_REDUCE_CALL_H

#include "pg/reduce/object.h"
#include "pg/reduce/parameters.h"
#include "pg/table/call.h"
#include "pg/values/composite.h"

struct ReduceCall {
    TableCall *call;
    ReduceObjects *objects;
    const ReduceParameters *parameters;
    bool exact;
    const char *function; /* static: the run's name */
    ReduceColumns columns;
    TableRows *rows;
    bool once;                /* there is one job over the rows */
    TableReduction reduction; /* where it is, of `request` */
    PgkmRequest request;
    ReduceProgram *program; /* NULL: not made yet */
};

/* Parses the objects, finds their columns in the relation and reads its rows. False when there are none. Errors as of
 * reduce_objects_parse, table_feature_find and table_call_read; 42703 and 42702 at a name. */
bool reduce_call_read(ReduceCall *call, FunctionCallInfo fcinfo);

/* 42702 where the name is that of a column or of `let`, too. */
void reduce_call_check_parameter(const ReduceCall *call, const char *name);

/*
 * Reduces the rows. The arrays of the result live as long as *holder, which as in pgkm_run_job belongs to `context`.
 * The program is valid that long. Errors as of reduce_lower and pgkm_run_job; 22012 and 22003 where a row fails.
 */
const PgkmReduced *reduce_call_run(ReduceCall *call, const ReduceProgram *program, MemoryContext context,
                                   PgkmJobHolder **holder);

/* The program of the call, once its rows are read. */
ReduceProgram *reduce_call_lower(const ReduceCall *call);

/* The program as the engine takes it. */
PgkmReduction reduce_program_of(const ReduceProgram *program, bool exact);

/* Makes a request, whose rows are set, one of the program, which is checked here. */
void reduce_request(PgkmRequest *request, const ReduceProgram *program, bool exact);

/* Raises what a reduction came to, if it failed. `texts` are where its expressions stand, or NULL, and then `text`
 * is; `place` tells where the row is, a sentence, or is NULL. */
void reduce_raise_fault(const PgkmReduced *reduced, const ReduceProgram *program, const ReduceText *text,
                        const char *place);

/* Values of one cell of an object. */
int64 reduce_object_width(const ReduceProgram *program, int object);

#endif
